"""The steps of a mutation as plain data, and the checks of what an UPDATE may set."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from olapdb.engine.layout import TableLayout
from olapdb.errors import CannotUpdateColumn, MultipleAssignments, NoSuchColumn
from olapdb.model.schema import Table
from olapdb.records import dataclass
from olapdb.sql import nodes


@dataclass(frozen=True, slots=True)
class SetStep:
    """The step `UPDATE a = x, b = y WHERE …`; `where` None: every row. `recompute` names
    MATERIALIZED columns whose expression is evaluated again for these rows."""

    assignments: tuple[tuple[str, nodes.Expression], ...]
    where: nodes.Expression | None
    partition_id: str | None = None
    recompute: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteStep:
    """The step `DELETE WHERE …`."""

    where: nodes.Expression
    partition_id: str | None = None


@dataclass(frozen=True, slots=True)
class MaterializeColumnStep:
    """A step that writes a column into the parts that are too old to hold it, with the values
    that they now read as: no row changes."""

    column: str
    partition_id: str | None = None


@dataclass(frozen=True, slots=True)
class RewriteStep:
    """A step that writes every file again in the table's current layout, without the index or projection
    `omitted`: no row changes."""

    partition_id: str | None = None
    omitted: str = ""


@dataclass(frozen=True, slots=True)
class FillNullsStep:
    """A step for columns that are no longer Nullable: a NULL in a part becomes the column's
    default."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeduplicateStep:
    """A step that keeps the first of the rows of a partition that are equal in these columns."""

    columns: tuple[str, ...]
    partition_id: str | None = None


Step: TypeAlias = (
    SetStep | DeleteStep | DeduplicateStep | MaterializeColumnStep | RewriteStep | FillNullsStep
)


def check_assignments(table: Table, names: Sequence[str]) -> None:
    """Raise an error if an UPDATE of the columns `names` may not be done.

    Raises NoSuchColumn for a column that is not stored, and CannotUpdateColumn for a MATERIALIZED,
    key or engine column: the latter decide the row's place, or which row survives a merge. Raises
    MultipleAssignments if a name is repeated.
    """
    keys = _key_columns(table)
    where = f"{table.database}.{table.name}"
    for name in names:
        column = table.column(name)
        if column is None or not column.stored:
            have = ", ".join(c.name for c in table.stored_columns)
            raise NoSuchColumn(
                f"There is no stored column {name} in {where}.", hint=f"It has {have}."
            )
        if name in keys:
            raise CannotUpdateColumn(
                f"Cannot UPDATE key column {name} of {where}.",
                hint="DELETE the rows and INSERT them anew.",
            )
        if column.default_kind == "MATERIALIZED":
            raise CannotUpdateColumn(
                f"Cannot UPDATE MATERIALIZED column {name} of {where}: it is computed.",
                hint="UPDATE the columns that it is computed from.",
            )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise MultipleAssignments(f"Column {twice} is assigned twice in one UPDATE.")


def refuse_computed_keys(table: Table, again: Sequence[str], given: Collection[str]) -> None:
    """Raise CannotUpdateColumn if a key or engine column is in `again`: columns recomputed
    from `given`."""
    for name in again:
        if name in _key_columns(table):
            raise CannotUpdateColumn(
                f"Cannot change {', '.join(sorted(given))} of {table.database}.{table.name}: key"
                f" column {name} is computed from it.",
                hint="DELETE the rows and INSERT them anew.",
            )


def _key_columns(table: Table) -> frozenset[str]:
    """Return the key and engine columns: they place a row and decide which row survives a merge."""
    layout = TableLayout(table)
    engine = table.engine
    roles = [role for role in (engine.version, engine.sign, engine.is_deleted) if role is not None]
    return frozenset((*layout.sorting_columns, *layout.partition_columns, *roles))

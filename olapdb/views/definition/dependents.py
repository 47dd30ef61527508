"""Dependents of a table or view: the views that read it, the tables that they write, and so on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Literal, TypeAlias

from olapdb.bind.analysis import referenced_tables
from olapdb.model.schema import MaterializedView, RefreshableView, SchemaObject, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.sql.parser import parse_query
from olapdb.views.definition.column_dependencies import (
    ColumnUse,
    check_altered,
    refuse_needed_column,
    views_needing_column,
)
from olapdb.views.definition.column_rename import views_after_column_rename

__all__ = [
    "ColumnUse",
    "Dependency",
    "Kind",
    "check_altered",
    "impact_of",
    "refuse_needed_column",
    "views_after_column_rename",
    "views_needing_column",
]

Kind: TypeAlias = Literal["table", "view", "materialized view", "dimension"]


@dataclass(frozen=True, slots=True)
class Dependency:
    """An object that a change reaches from `reached_from`, as `how` says, `level` steps away.

    A "dimension" is a table that a reached view reads too: it is listed, but not followed.
    """

    level: int
    kind: Kind
    name: str
    reached_from: str
    how: str


def impact_of(item: SchemaObject, snapshot: Snapshot) -> tuple[Dependency, ...]:
    """Return everything that a change of `item` reaches, by level; the item itself is level 0.

    An object that is reached twice is listed at its first level only, and followed once. A
    dimension is listed each time that a view joins it, and not followed.
    """
    dependencies = [Dependency(0, _kind(item), _name(item), "", "")]
    seen = {item.id}
    queue: deque[tuple[int, SchemaObject]] = deque([(0, item)])
    while queue:
        level, entry = queue.popleft()
        for kind, dependent, how in _direct_dependents(entry, snapshot):
            if dependent.id in seen and kind != "dimension":
                continue
            dependencies.append(Dependency(level + 1, kind, _name(dependent), _name(entry), how))
            if kind != "dimension":
                seen.add(dependent.id)
                queue.append((level + 1, dependent))
    return tuple(sorted(dependencies, key=lambda entry: entry.level))


def _direct_dependents(
    item: SchemaObject, snapshot: Snapshot
) -> Iterator[tuple[Kind, SchemaObject, str]]:
    """Yield (kind, object, how) for each object that is one step away from the item."""
    if isinstance(item, RefreshableView):
        written = snapshot.by_id(item.target_id)
        if written is not None:
            yield "table", written, "is written by its next refresh"
        return
    if isinstance(item, MaterializedView):
        target = snapshot.by_id(item.target_id)
        if target is not None:
            yield "table", target, "is written by it"
        for table_id in item.dimension_ids:
            dimension = snapshot.by_id(table_id)
            if dimension is not None:
                yield "dimension", dimension, "is joined, or read in a subquery, by it"
        return
    for other in snapshot.objects():
        match other:
            case MaterializedView() if item.id == other.source_id:
                how = (
                    "fires on each INSERT" if other.attached else "is detached: misses each INSERT"
                )
                yield "materialized view", other, how
            case MaterializedView() if item.id in other.dimension_ids:
                yield "materialized view", other, "joins it: a change makes what it made stale"
            case MaterializedView() if isinstance(item, View) and item.id in other.references:
                yield "materialized view", other, "reads through it"
            case View() if _reads(other, item):
                yield "view", other, "reads it"
            case RefreshableView() if _reads(other, item):
                yield "materialized view", other, "reads it at its next refresh"


def _reads(view: View | RefreshableView, item: SchemaObject) -> bool:
    """Return whether the view's query names the item."""
    return any(
        (name.database or view.database, name.name) == (item.database, item.name)
        for name in referenced_tables(parse_query(view.query))
    )


def _kind(item: SchemaObject) -> Kind:
    """Return the kind of the object, as it is listed."""
    match item:
        case Table():
            return "table"
        case View():
            return "view"
        case MaterializedView() | RefreshableView():
            return "materialized view"


def _name(item: SchemaObject) -> str:
    """Return "database.name" of the object."""
    return f"{item.database}.{item.name}"

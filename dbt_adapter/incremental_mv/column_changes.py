"""The columns that a changed model adds, removes or gives another type, for on_schema_change."""

from __future__ import annotations

from dataclasses import dataclass, replace

from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_one, parse_query

from .model_definition import ModelDefinition, column_name
from .names import ModelNames
from .warehouse import ModelState, Warehouse


@dataclass(frozen=True)
class ColumnChanges:
    """The columns of the target that differ from the model's.

    `alone` says that nothing else differs: neither the expression of another column, nor source,
    conditions or groups of the trigger."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()
    alone: bool = False

    def __bool__(self) -> bool:
        """Return whether any column differs."""
        return bool(self.added or self.removed or self.retyped)

    def sentence(self) -> str:
        """Return the columns that differ, as a sentence."""
        listed = [
            f"{what} {', '.join(names)}"
            for what, names in (
                ("it adds", self.added),
                ("it lacks", self.removed),
                ("it gives another type to", self.retyped),
            )
            if names
        ]
        return f"The model's columns differ: {'; '.join(listed)}."


def column_changes(
    warehouse: Warehouse, names: ModelNames, definition: ModelDefinition, state: ModelState
) -> ColumnChanges:
    """Return how the columns of the model differ from those of its live target."""
    if state.target is None or state.view is None:
        return ColumnChanges()
    created = parse_one(definition.create_target(names))
    assert isinstance(created, nodes.CreateTable)
    expected = {column.name: str(column.type) for column in created.columns}
    target = warehouse.sql_name(names, names.target)
    described = warehouse.describe(f"SELECT * FROM {target}")
    live = {name: str(data_type) for name, data_type in described}
    added = tuple(name for name in expected if name not in live)
    removed = tuple(name for name in live if name not in expected)
    retyped = tuple(name for name in live if name in expected and live[name] != expected[name])
    others = frozenset((*added, *removed, *retyped))
    queries = (state.view.as_select, warehouse.stored_query(definition.trigger))
    alone = len({_without(query, others) for query in queries}) == 1
    return ColumnChanges(added, removed, retyped, alone)


def _without(query: str, names: frozenset[str]) -> str:
    """Return the query without the columns of these names."""
    parsed = parse_query(query)
    if not isinstance(parsed, nodes.Select):
        return to_sql(parsed)
    kept = tuple(column for column in parsed.columns if column_name(column) not in names)
    return to_sql(replace(parsed, columns=kept or parsed.columns))

"""Columns of type Nested: the parser makes arrays of them, `flatten_nested = 0` one column again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from olapdb.sql import nodes
from olapdb.types import Array, Nested, Tuple


def whole_nested(columns: Sequence[nodes.ColumnDefinition]) -> tuple[nodes.ColumnDefinition, ...]:
    """Return the columns with one of type Nested in place of the arrays that the parser made of it."""
    result: list[nodes.ColumnDefinition] = []
    for name, group in groupby(columns, key=lambda column: column.nested_of):
        parts = list(group)
        result += [_joined(name, parts)] if name else parts
    return tuple(result)


def with_whole_nested(statement: nodes.Statement) -> nodes.Statement:
    """Return a CREATE TABLE with its columns of type Nested whole, another statement as given.

    The text of a table whose Nested was flattened names the arrays."""
    if not isinstance(statement, nodes.CreateTable):
        return statement
    return replace(statement, columns=whole_nested(statement.columns))


def whole_nested_actions(actions: Sequence[nodes.AlterAction]) -> tuple[nodes.AlterAction, ...]:
    """Return the actions with one ADD COLUMN in place of those of the arrays of a Nested."""
    result: list[nodes.AlterAction] = []
    for name, group in groupby(actions, key=_nested_of):
        added = [action for action in group if isinstance(action, nodes.AddColumn) or not name]
        if name and isinstance(added[0], nodes.AddColumn):
            parts = [action.column for action in added if isinstance(action, nodes.AddColumn)]
            result.append(replace(added[0], column=_joined(name, parts)))
        else:
            result += added
    return tuple(result)


def _nested_of(action: nodes.AlterAction) -> str:
    """Return the name of the Nested to which an added column belongs, "" for every other action."""
    return action.column.nested_of if isinstance(action, nodes.AddColumn) else ""


def _joined(name: str, parts: list[nodes.ColumnDefinition]) -> nodes.ColumnDefinition:
    """Return the column of type Nested whose elements the arrays are."""
    elements = tuple(part.type.inner for part in parts if isinstance(part.type, Array))
    names = tuple(part.name.removeprefix(f"{name}.") for part in parts)
    return replace(parts[0], name=name, type=Nested(Tuple(elements, names)), nested_of="")

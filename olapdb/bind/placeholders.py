"""The number of positional parameters that a statement takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from olapdb.bind.syntax import walk
from olapdb.errors import BadArguments
from olapdb.lazy import LazyModule
from olapdb.sql import nodes as sql

if TYPE_CHECKING:
    from olapdb.sql.values import csv_values
else:
    csv_values = LazyModule("olapdb.sql.values.csv_values")


def positional_count(statements: Iterable[sql.Statement]) -> int:
    """Return how many parameters the `?` and `$n` need: their highest number, 0 for none.

    The `?` in the rows of VALUES are counted from 1 again."""
    return max((index + 1 for s in statements for index in _indexes(s)), default=0)


def refuse_surplus(count: int, parameters: object) -> None:
    """Raise BadArguments for a sequence of more than `count` parameters.

    Unused names are no error: one mapping may serve several statements."""
    if not isinstance(parameters, Sequence) or isinstance(parameters, str | bytes | Mapping):
        return
    if len(parameters) > count:
        raise BadArguments(
            f"The statement takes {count} parameters, {len(parameters)} were given.",
            hint="Write a ? for each of them, outside of quotes.",
        )


def _indexes(statement: sql.Statement) -> Iterator[int]:
    """Yield the index, from 0, of each `?` and `$n` in the statement, rows of VALUES included."""
    for node in walk(statement):
        if isinstance(node, sql.Parameter) and node.index is not None:
            yield node.index
        elif isinstance(node, sql.ValuesData) and any(mark in node.text for mark in "?$"):
            rows = csv_values.parse_value_rows(node.text, node.position)
            expressions = (e for row in rows for e in row if e is not None)
            marks = (n for e in expressions for n in walk(e) if isinstance(n, sql.Parameter))
            yield from (n.index for n in marks if n.index is not None)

"""The number of positional parameters that a statement takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, Sized
from typing import TYPE_CHECKING, Any

from olapdb.bind.syntax import walk
from olapdb.errors import BadArguments, UnknownQueryParameter
from olapdb.lazy import LazyModule
from olapdb.sql import nodes as sql

if TYPE_CHECKING:
    from olapdb.bind.scope import Parameters
    from olapdb.sql.values import csv_values
else:
    csv_values = LazyModule("olapdb.sql.values.csv_values")


def positional_count(statements: Iterable[sql.Statement]) -> int:
    """Return how many parameters the `?` and `$n` need: their highest number, 0 for none.

    The `?` in the rows of VALUES are counted from 1 again."""
    return max((index + 1 for s in statements for index in _indexes(s)), default=0)


def parameter_sets(sets: Iterable[Parameters], count: int) -> list[Any]:
    """Return the sets of parameters of executemany() as a list; None is a set without any.

    Raises BadArguments for a frame, whose rows iteration does not give, for what is no list at all, for a set that is no
    sequence and no mapping, such as the 1 of `[1, 2]`, and for a sequence of more than `count` values;
    UnknownQueryParameter for fewer."""
    if hasattr(sets, "__dataframe__") or hasattr(sets, "__arrow_c_stream__"):
        raise BadArguments(
            f"executemany() takes rows, not a {type(sets).__name__}.",
            hint="Use connection.insert('table', data), which is also faster.",
        )
    if not isinstance(sets, Iterable):
        raise BadArguments(
            f"executemany() takes rows, not an object of the class {type(sets).__name__}.",
            hint=_ROWS,
        )
    whole: list[Any] = [() if values is None else values for values in sets]
    for number, values in enumerate(whole, 1):
        if isinstance(values, Mapping):
            continue
        if isinstance(values, str | bytes | Set) or not _has_length(values):
            raise BadArguments(
                f"Set {number} of the parameters is of the class {type(values).__name__}: {values!r:.80}.",
                hint=_ROWS,
            )
        if len(values) != count:
            kind = BadArguments if len(values) > count else UnknownQueryParameter
            raise kind(
                f"The statement takes {count} parameters, {len(values)} were given in set {number}.",
                hint=_HINT,
            )
    return whole


_HINT = "Write a ? for each value, outside of quotes; :name takes a mapping."
_ROWS = "executemany() takes a list of rows: [(1,), (2,)], or [{'name': 1}] for :name."


def _has_length(parameters: object) -> bool:
    """Return whether the object has a number of values; an array of numpy without dimensions has none."""
    return isinstance(parameters, Sized) and getattr(parameters, "ndim", 1) > 0


def refuse_surplus(count: int, parameters: object) -> None:
    """Raise BadArguments for a sequence of more than `count` parameters.

    Unused names are no error: one mapping may serve several statements."""
    if not isinstance(parameters, Sequence) or isinstance(parameters, str | bytes | Mapping):
        return
    if len(parameters) > count:
        raise BadArguments(
            f"The statement takes {count} parameters, {len(parameters)} were given.", hint=_HINT
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

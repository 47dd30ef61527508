"""How many positional parameters a text takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from olapdb.bind.syntax import walk
from olapdb.errors import BadArguments
from olapdb.sql import nodes as sql


def positional_count(statements: Iterable[sql.Statement]) -> int:
    """One more than the highest place that `?` or `$1` names. VALUES count from their own start."""
    return max((index + 1 for one in statements for index in _indexes(one)), default=0)


def refuse_surplus(taken: int, parameters: object) -> None:
    """BadArguments where more parameters are given by position than are taken. Names that are not
    used are no error: a mapping may serve several statements."""
    if not isinstance(parameters, Sequence) or isinstance(parameters, str | bytes | Mapping):
        return
    if len(parameters) > taken:
        raise BadArguments(
            f"The statement takes {taken} parameters, {len(parameters)} were given.",
            hint="Write a ? for each of them, outside of quotes.",
        )


def _indexes(statement: sql.Statement) -> Iterator[int]:
    from olapdb.sql.values.csv_values import parse_value_rows

    for node in walk(statement):
        if isinstance(node, sql.Parameter) and node.index is not None:
            yield node.index
        elif isinstance(node, sql.ValuesData) and any(mark in node.text for mark in "?$"):
            rows = parse_value_rows(node.text, node.position)
            expressions = (e for row in rows for e in row if e is not None)
            found = (n for e in expressions for n in walk(e) if isinstance(n, sql.Parameter))
            yield from (n.index for n in found if n.index is not None)

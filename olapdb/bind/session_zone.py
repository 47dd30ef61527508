"""Columns of a query whose zone, that of the setting session_timezone, is not the warehouse's.

A key, an index or a projection on `toDate(ts)` has dates of the warehouse's zone. The same words in
such a query mean others. So the query reads the columns of expressions like this one through
`identity`: its expressions are equal to none of the table's. Conditions on the column itself still
exclude parts and granules, since `identity` keeps the order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from olapdb.functions.base import ScalarCall
from olapdb.model.schema import Table
from olapdb.plan.expressions import Call, ColumnRef

_WORD = re.compile(r"\w+")


def computed_columns(table: Table) -> frozenset[str]:
    """Return the table's columns that a key, an index or a projection names within an expression, such as `ts` in
    `toDate(ts)`. A key that is a column alone names none."""
    names = {column.name for column in table.columns}
    words = {
        word for text in _texts(table) if text.strip(" `") not in names for word in _words(text)
    }
    return frozenset(name for name in names if words & set(_words(name)))


def _texts(table: Table) -> Iterator[str]:
    """Yield the texts of the table's keys, indexes and projections."""
    yield from (item.expression for item in table.sorting_key)
    yield table.partition_key
    yield table.sampling_key
    yield from (index.expression for index in table.indexes)
    yield from (str(projection) for projection in table.projections)


def _words(text: str) -> list[str]:
    """Return the words of a text, which contain those of each name in it."""
    return _WORD.findall(text)


def unlike_stored(column: ColumnRef) -> Call:
    """Return `identity(column)`: it has the column's value and order, but is equal to no expression of the table's
    keys, indexes and projections, so that these do not serve the query."""
    call = ScalarCall("identity", column.type, lambda v, rows, e: v[0], monotonic=True)
    return Call(column.type, "identity", (column,), call)

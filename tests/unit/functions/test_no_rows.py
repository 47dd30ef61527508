"""Every function of no row: what is left of a block where an argument is NULL in all of its rows."""

from __future__ import annotations

import pytest

from olapdb.errors import Error
from olapdb.functions import Environment
from olapdb.functions.kernels import columns
from tests.harness import typed_table
from tests.harness.expressions import Reader, Value
from tests.oracle.function_expressions import FAMILIES

VALUES = typed_table.values()
NO_ROWS = {name: Value(one.type, columns.single(one.column)[:0]) for name, one in VALUES.items()}


@pytest.mark.parametrize("family", FAMILIES)
def test_no_row_makes_no_row(family: str) -> None:
    some = Reader(VALUES, typed_table.ROWS, Environment(database="t"))
    none = Reader(NO_ROWS, 0, Environment(database="t"))
    for text in FAMILIES[family]:
        try:
            wanted = some.evaluate(text)
        except Error:
            continue
        made = none.evaluate(text)
        assert made.type == wanted.type, text
        assert columns.as_array(made.column, 0).to_pylist() == [], text

"""Every function on a block without rows, as a kernel sees it if an argument is NULL in all rows."""

from __future__ import annotations

import pytest

from olapdb.errors import Error
from olapdb.functions import Environment
from olapdb.functions.kernels import columns
from tests.harness import typed_table
from tests.harness.expressions import Reader, Value
from tests.oracle.function_expressions import FAMILIES

pytestmark = pytest.mark.feature("functions")

VALUES = typed_table.values()
NO_ROWS = {n: Value(v.type, columns.single(v.column)[:0]) for n, v in VALUES.items()}


@pytest.mark.parametrize("family", FAMILIES)
def test_no_rows_give_no_rows(family: str) -> None:
    all_rows = Reader(VALUES, typed_table.ROWS, Environment(database="t"))
    no_rows = Reader(NO_ROWS, 0, Environment(database="t"))
    for text in FAMILIES[family]:
        try:
            expected = all_rows.evaluate(text)
        except Error:
            continue
        result = no_rows.evaluate(text)
        assert result.type == expected.type, text
        assert columns.as_array(result.column, 0).to_pylist() == [], text

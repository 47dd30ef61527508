"""The tables that operations print."""

from __future__ import annotations

import pytest
from dbt.adapters.olapdb.incremental_mv.operations.table import table_lines

pytestmark = pytest.mark.feature("dbt")


def test_rows_of_different_columns_share_a_table() -> None:
    rows = [
        {"model": "a", "did": "nothing to repair"},
        {"model": "b", "partition": "201307", "did": "replayed", "rows": 1200},
    ]
    assert table_lines(rows) == [
        "model  partition  did                 rows",
        "-----  ---------  -----------------  -----",
        "a                 nothing to repair",
        "b      201307     replayed           1,200",
    ]


def test_a_text_that_is_cut_is_whole_below_the_table() -> None:
    because = "the query is not the model's. " * 5
    lines = table_lines([{"model": "a", "because": "short"}, {"model": "b", "because": because}])
    assert [len(line) for line in lines[:4]] == [14, 127, 12, 127]
    assert lines[3].endswith("…")
    assert lines[4:] == [f"b: {because.strip()}"]

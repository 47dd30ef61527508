"""Shared codes equal the codes that each view would compute alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olapdb.compute import shared_group_codes
from olapdb.compute.group_codes import factorise
from olapdb.compute.shared_group_codes import SharedCodes
from olapdb.config import tuning

pytestmark = pytest.mark.feature("select")

VALUES = {
    "number": st.one_of(st.none(), st.integers(0, 5)),
    "text": st.sampled_from(["", "a", "b", None]),
    "float": st.sampled_from([0.0, -0.0, float("nan"), None]),
}
TYPES = {"number": pa.int32(), "text": pa.string(), "float": pa.float64()}


def block_of(pattern: dict[str, list[object]], rows: int) -> pa.Table:
    return pa.table(
        {name: pa.array((values * rows)[:rows], TYPES[name]) for name, values in pattern.items()}
    )


@given(
    st.fixed_dictionaries(
        {name: st.lists(v, min_size=1, max_size=7) for name, v in VALUES.items()}
    ),
    st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3, unique=True),
    st.sampled_from([tuning.RENUMBER_RADIX_MAX, 1]),
)
@settings(max_examples=60)
def test_as_factorise(pattern: dict[str, list[object]], names: list[str], radix_max: int) -> None:
    block = block_of(pattern, tuning.SHARED_CODES_ROWS_MIN + 7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "RENUMBER_RADIX_MAX", radix_max)
        shared = SharedCodes(block, 2)
        for start in (0, 7, 0):
            columns = [
                block.column(name).chunk(0).slice(start, tuning.SHARED_CODES_ROWS_MIN)
                for name in names
            ]
            expected = factorise(columns, tuning.SHARED_CODES_ROWS_MIN)
            found = shared.factorise(columns, tuning.SHARED_CODES_ROWS_MIN, grouped_anyway=True)
            assert found is not None
            np.testing.assert_array_equal(found.codes, expected.codes)
            np.testing.assert_array_equal(found.first, expected.first)


def test_they_are_made_once_and_only_for_the_block() -> None:
    block = block_of({"number": [1, 2, 3]}, tuning.SHARED_CODES_ROWS_MIN)
    column = block.column("number").chunk(0)
    shared = SharedCodes(block, 2)
    first = shared.factorise([column], tuning.SHARED_CODES_ROWS_MIN, grouped_anyway=False)
    assert (
        shared.factorise(
            [block.column(0).chunk(0)], tuning.SHARED_CODES_ROWS_MIN, grouped_anyway=False
        )
        is first
    )
    computed = pa.array(column.to_pylist(), column.type)
    assert shared.factorise([computed], tuning.SHARED_CODES_ROWS_MIN, grouped_anyway=False) is None
    assert shared.factorise([column.slice(0, 10)], 10, grouped_anyway=False) is None
    assert shared.factorise([], tuning.SHARED_CODES_ROWS_MIN, grouped_anyway=False) is None


def test_one_user_takes_them_where_it_has_no_other_way() -> None:
    block = block_of({"number": [1, 2, 3]}, tuning.SHARED_CODES_ROWS_MIN)
    column = block.column("number").chunk(0)
    alone = SharedCodes(block, 1)
    assert alone.factorise([column], tuning.SHARED_CODES_ROWS_MIN, grouped_anyway=True) is None
    assert alone.factorise([column], tuning.SHARED_CODES_ROWS_MIN, grouped_anyway=False) is not None


def test_what_is_too_much_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_group_codes, "HELD_BYTES_MAX", 0)
    block = block_of({"number": [1, 2, 3]}, tuning.SHARED_CODES_ROWS_MIN)
    column = block.column("number").chunk(0)
    shared = SharedCodes(block, 2)
    one, other = (
        shared.factorise([column], tuning.SHARED_CODES_ROWS_MIN, grouped_anyway=False)
        for _ in range(2)
    )
    assert one is not None
    assert other is not None
    assert one is not other
    np.testing.assert_array_equal(one.codes, other.codes)

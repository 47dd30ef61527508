"""groupArrayIntersect beside Python's sets, whatever the cuts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb import functions
from olapdb.functions import Groups

pytestmark = pytest.mark.feature("aggregates")

_SETS = st.lists(st.lists(st.one_of(st.none(), st.integers(0, 4)), max_size=6), max_size=6)


@given(_SETS, st.integers(0, 6))
def test_an_intersection_is_that_of_sets(lists: list[list[int | None]], cut: int) -> None:
    array = functions.parse_type("Array(Nullable(UInt8))")
    aggregate = functions.resolve_aggregate("groupArrayIntersect", (), [array])
    pieces = [lists[:cut], lists[cut:]]
    states = [
        aggregate.state([pa.array(piece, array.arrow)], Groups(np.zeros(len(piece), np.int64), 1))
        for piece in pieces
    ]
    merged = aggregate.merge(pa.concat_arrays(states), Groups(np.zeros(2, np.int64), 1))
    wanted = set.intersection(*map(set, lists)) if lists else set()
    assert set(aggregate.finalize(merged)[0].as_py()) == wanted
    assert len(aggregate.finalize(merged)[0]) == len(wanted)

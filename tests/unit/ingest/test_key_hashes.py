"""Hashes of keys and sorted runs of them, in which `deduplicate_by` looks keys up."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from olapdb.ingest.key_hash import PIECE_ROWS, row_keys
from olapdb.model.keys import SEGMENT, KeyRun, SortedKeys

pytestmark = pytest.mark.feature("insert", "functions")


def test_hashes_do_not_depend_on_pieces_nor_on_neighbours() -> None:
    values = [f"{'k' * (i % 23)}{i}" for i in range(PIECE_ROWS + 100)]
    whole = row_keys([pa.array(values)], len(values))
    assert len({one.tobytes() for one in whole}) == len(values)
    some = [3, 70, PIECE_ROWS + 7]
    alone = row_keys([pa.array([values[i] for i in some])], len(some))
    assert (alone == whole[some]).all()
    sliced = row_keys([pa.array(values).slice(70, 5)], 5)
    assert (sliced == whole[70:75]).all()


def test_hashes_are_part_of_the_format() -> None:
    """Warehouses store these hashes, so they must never change."""
    columns = [pa.array(["event-1", ""]), pa.array([-1, 7], pa.int32())]
    assert row_keys(columns, 2).tolist() == [
        [0xA2985CD1D1B76AA9, 0x5A4D17118D076F0E],
        [0x3B8E169F919AA307, 0x866A9BA5A5CDB71B],
    ]
    decimal = row_keys([pa.array([Decimal("1.5")], pa.decimal128(10, 2))], 1)
    assert decimal.tolist() == [[0x1332BE05CC01688A, 0xC38F2FA3CFF11A50]]


def test_columns_do_not_run_into_each_other() -> None:
    left = row_keys([pa.array(["ab"]), pa.array(["c"])], 1)
    right = row_keys([pa.array(["a"]), pa.array(["bc"])], 1)
    assert (left != right).any()


def found(run: KeyRun, *keys: list[int], oldest: int = 0) -> list[bool]:
    asked = SortedKeys.of(np.array(keys, np.uint64))
    answer = run.accepted_mask(asked, oldest)
    return [bool(answer[asked.rows == row][0]) for row in range(len(keys))]


def test_keys_that_share_their_high_half() -> None:
    keys = np.array([[1, 5], [1, 6], [2, 5], [1, 7], [1, 5]], np.uint64)
    first = SortedKeys.of(keys)
    assert sorted(first.rows[first.first_of_each()].tolist()) == [0, 1, 2, 3]
    run = KeyRun.of(10, keys[:4], np.array([(2, 100), (2, 200)], SEGMENT))
    assert found(run, [1, 7], [1, 8], [2, 5], [3, 0], [1, 5]) == [True, False, True, False, True]
    assert found(run, [1, 7], [2, 5], [1, 5], oldest=12) == [True, True, False]
    assert [run.oldest_after(ms) for ms in (99, 100, 200)] == [10, 12, None]
    later = KeyRun.of(14, keys[4:] + np.uint64(1), np.array([(1, 300)], SEGMENT))
    joined = run.joined(later, oldest=12)
    assert (len(joined), joined.first, joined.end) == (3, 10, 15)
    assert found(joined, [2, 6], [1, 6]) == [True, False]
    assert [joined.oldest_after(ms) for ms in (100, 200, 300)] == [12, 14, None]

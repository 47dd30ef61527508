"""The candidate rows include the minimum and the maximum, whatever the texts look like."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from olapdb.config import tuning
from olapdb.storage.min_max import min_max_candidates

pytestmark = pytest.mark.feature("storage")

ROWS = 3 * tuning.MIN_MAX_ROWS_MIN
RANDOM = np.random.default_rng(11)


def _texts(alphabet: str, widths: tuple[int, int], prefix: str = "") -> list[str]:
    letters = list(alphabet)
    return [
        prefix + "".join(RANDOM.choice(letters, RANDOM.integers(widths[0], widths[1] + 1)))
        for _ in range(ROWS)
    ]


CASES = {
    "one byte": _texts("0123456789", (1, 1)),
    "two bytes": _texts("0123456789", (2, 2)),
    "three bytes": _texts("abcdefgh", (3, 3)),
    "eight bytes": _texts("09azAZ", (8, 8)),
    "of any length, empty ones too": _texts("abcdefgh", (0, 5)),
    "the empty one and NUL": _texts("\0abcdz", (0, 3)),
    "a common start": _texts("0123456789", (1, 6), "user-"),
    "two letters": _texts("ab", (1, 9)),
    "beyond ASCII": _texts("aéß漢\U0001f600zb", (1, 4)),
    "all empty": [""] * ROWS,
    "all the same": ["same"] * ROWS,
    "few rows": ["b", "a", ""],
    "no rows": [],
}


@pytest.mark.parametrize("name", CASES)
def test_the_ends_of_texts_are_among_the_rows_kept(name: str) -> None:
    array = pa.array(["~not of it", *CASES[name], "!nor this"], pa.string())
    for one in (array.slice(1, len(CASES[name])), pa.array(CASES[name], pa.string())):
        chunks = pa.chunked_array([one, one.slice(len(one) // 3)], pa.string())
        assert pc.min_max(min_max_candidates(chunks)) == pc.min_max(chunks)


def test_few_rows_are_kept_where_texts_tell_themselves_apart() -> None:
    assert len(min_max_candidates(pa.chunked_array([pa.array(CASES["two bytes"])]))) == 2
    assert len(min_max_candidates(pa.chunked_array([pa.array(CASES["three bytes"])]))) < ROWS / 2


@pytest.mark.parametrize("arrow", [pa.float32(), pa.float64()])
def test_floats_keep_their_ends_and_nan(arrow: pa.DataType) -> None:
    values = RANDOM.normal(size=ROWS)
    values[17], values[19] = np.inf, -np.inf
    chunks = pa.chunked_array([pa.array(values).cast(arrow, safe=False)])
    kept = min_max_candidates(chunks)
    assert len(kept) == 2
    assert pc.min_max(kept) == pc.min_max(chunks)
    values[5_000] = np.nan
    kept = min_max_candidates(pa.chunked_array([pa.array(values).cast(arrow, safe=False)]))
    assert pc.any(pc.is_nan(kept)).as_py()


def test_columns_with_nulls_are_left_as_they_are() -> None:
    chunks = pa.chunked_array([pa.array([None, *CASES["one byte"]], pa.string())])
    assert min_max_candidates(chunks).equals(chunks)

"""Calls of the kernel that numbers rows and adds them to the totals of their groups in one pass. Each needs the library.

The form of several passes is `compute/group_codes.factorise`, then a call of `native/accumulate.py` for each total."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.native import grouping
from olapdb.native.library import kernels
from olapdb.native.memory import address_of
from olapdb.native.values import validity_of, values_of
from olapdb.records import dataclass

Kind: TypeAlias = Literal["count", "sum", "least", "largest", "mark"]
_KINDS: dict[Kind, int] = {"count": 0, "sum": 1, "least": 2, "largest": 3, "mark": 4}
_TOTAL_WORDS = 7
_ENDS = 6
_SIGN_BIT = 63
_LANES = 4
_LANES_RADIX_MAX = 1 << 10
"""Keys have several places in turn where these fit a processor's first cache."""


@dataclass(frozen=True)
class Total:
    """A figure that is kept for each group: the number of a column's values that are not NULL (of rows, without a
    column), their sum, or an extreme."""

    kind: Kind
    column: pa.Array | None = None


def first_rows(keys: Sequence[pa.Array], radix_max: int) -> np.ndarray | None:
    """Return the first row of each group, as `group_totals` does, without numbering the rows."""
    grouped = group_totals(keys, [], radix_max)
    return None if grouped is None else grouped[0]


def group_totals(
    keys: Sequence[pa.Array], totals: Sequence[Total], radix_max: int
) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """Group rows by integers, dates or times; return the first row of each group, in the order of their first
    rows, and each total of the groups: counts as int64, sums as uint64, which wrap around, or Float64, added up in
    row order, extremes in the column's own type. A group without values has the other end of the type as its
    extreme.

    Returns None for columns of other types, without rows, where a key may have more than `radix_max` values, and where
    a sum of decimals might not fit 64 bits."""
    packing = grouping.digits_of(keys, radix_max)
    if packing is None:
        return None
    digits, radix = packing
    rows, lanes = digits[0].values.rows, _LANES if radix <= _LANES_RADIX_MAX else 1
    wanted = [
        Total("count" if totals else "mark"),
        *(total for total in totals if not _counts_all(total)),
    ]
    described = np.zeros((len(wanted), _TOTAL_WORDS), np.int64)
    outs = []
    held: list[object] = []  # what the addresses are of
    for words, total in zip(described, wanted, strict=True):
        out = _described(total, radix, lanes, words, held)
        if out is None:
            return None
        outs.append(out)
    key_words = np.array([digit.words for digit in digits], np.int64)
    packed = np.zeros(lanes * radix, np.uint64)
    groups = np.empty((2, min(rows, radix)), np.int64)
    count = kernels().olapdb_group_totals(
        key_words, len(digits), rows, radix, lanes, packed, described, len(wanted), *groups
    )
    if any(
        _may_overflow(total, words, rows) for total, words in zip(wanted, described, strict=True)
    ):
        return None
    group_keys, firsts = groups[:, :count]
    if not totals:
        return firsts, []
    totals_out = [out[group_keys] for out in outs]
    others = iter(totals_out[1:])
    return firsts, [totals_out[0] if _counts_all(total) else next(others) for total in totals]


def _counts_all(total: Total) -> bool:
    """Return whether a total is the number of all rows of a group: a count of no column, or of one without NULL."""
    return total.kind == "count" and (total.column is None or not total.column.null_count)


def _described(
    total: Total, radix: int, lanes: int, words: np.ndarray, held: list[object]
) -> np.ndarray | None:
    """Describe a total to the kernel in `words`; return the array that gets the totals. None for a column that the
    kernel does not take. Arrays that must stay alive while the kernel runs go to `held`."""
    column = total.column
    if total.kind in ("count", "mark"):
        out = np.zeros(lanes * radix, np.int64 if total.kind == "count" else np.uint8)
        validity, bit = (None, 0) if column is None else validity_of(column)
        words[:6] = (_KINDS[total.kind], 0, 0, validity or 0, bit, address_of(out))
        return out
    assert column is not None
    values = values_of(column)
    if values is None or not values.rows:
        return None
    dtype = values.numbers.dtype
    if total.kind == "sum":
        out = np.zeros(lanes * radix, np.uint64 if values.is_integer else np.float64)
    elif not values.is_integer:
        return None
    else:
        limits = np.iinfo(dtype)
        out = np.full(radix, limits.max if total.kind == "least" else limits.min, dtype)
    held.append(values)
    words[:6] = (
        _KINDS[total.kind],
        values.type,
        address_of(values.numbers),
        values.validity or 0,
        values.bit,
        address_of(out),
    )
    return out


def _may_overflow(total: Total, words: np.ndarray, rows: int) -> bool:
    """Return whether a sum of decimals of 64 bits may need more, by the bits of all of them."""
    if total.column is None or not pa.types.is_decimal(total.column.type):
        return False
    ends = int(words[_ENDS]) % (1 << 64)
    return ends != 0 and ends.bit_length() - 1 + rows.bit_length() > _SIGN_BIT

"""Calls of the kernels that look integers up in sets of a narrow span. Each needs the library.

The forms in numpy are in `compute/number_set.py`. A span begins with `low`, a 64-bit word, and has `span`
numbers."""

from __future__ import annotations

import numpy as np

from olapdb.native.library import kernels
from olapdb.native.memory import empty
from olapdb.native.values import ColumnValues

_WORD_BITS = 64


def mark_members(values: ColumnValues, low: int, bits: np.ndarray) -> None:
    """Set the bit of each value, of which none is NULL or beyond the span, in the bytes `bits`."""
    kernels().olapdb_mark_members(values.type, values.numbers, values.rows, low, bits)


def find_members(values: ColumnValues, low: int, span: int, bits: np.ndarray) -> np.ndarray:
    """Return a bit for each row in words of 64 bits: whether its value is marked; 0 for NULL."""
    members = empty(-(-values.rows // _WORD_BITS), np.uint64)
    kernels().olapdb_find_members(*values.column, values.rows, low, span, bits, members)
    return members


def keep_members(
    values: ColumnValues, low: int, span: int, bits: np.ndarray, kept: np.ndarray
) -> None:
    """Keep in `kept`, a bit for each row in words of 64 bits, the rows whose value is marked; no row that is NULL."""
    kernels().olapdb_keep_members(*values.column, values.rows, low, span, bits, kept)


def rank_members(
    values: ColumnValues, low: int, span: int, bits: np.ndarray, ranks: np.ndarray
) -> np.ndarray:
    """Return for each row how many marked numbers are less than its value, -1 where it is not marked or NULL; int64.
    `ranks`, int32, has the number of marks before each 64 bits."""
    codes = empty(values.rows, np.int64)
    kernels().olapdb_rank_members(*values.column, values.rows, low, span, bits, ranks, codes)
    return codes


def find_numbers(values: ColumnValues, low: int, span: int, table: np.ndarray) -> np.ndarray:
    """Return the entry of `table`, int32, for each row's value; -1 for NULL. int64."""
    codes = empty(values.rows, np.int64)
    kernels().olapdb_find_numbers(*values.column, values.rows, low, span, table, codes)
    return codes

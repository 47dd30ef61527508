"""Find and load the library of compiled kernels; say which form of the kernels runs.

`OLAPDB_KERNELS=off` in the environment turns the library off.  It is loaded once, at the first use.
"""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import cast

import numpy as np

from olapdb import observation
from olapdb.native.build import LIBRARY
from olapdb.native.memory import address_of
from olapdb.records import dataclass


class _Pointer(ctypes.c_void_p):
    """A pointer argument: a contiguous numpy array, which lives until the call ends, an address of
    memory that the caller keeps, or None."""

    @classmethod
    def from_param(cls, value: np.ndarray | int | None) -> _Pointer:
        """Return the address of an array's first value."""
        if isinstance(value, np.ndarray):
            assert value.flags.c_contiguous
            return cls(address_of(value))
        return cls(value)


_POINTER, _INT, _LONG, _WORD = _Pointer, ctypes.c_int, ctypes.c_int64, ctypes.c_uint64
_COLUMN = (_INT, _POINTER, _POINTER, _LONG)
"""Type, values, validity, first bit."""
_NUMBERING = (_POINTER, _LONG, _POINTER, _POINTER, _POINTER)
"""Slots, their number, progress, codes, first rows."""

_SIGNATURES: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "olapdb_bounds": (_LONG, (*_COLUMN, _LONG, _POINTER)),
    "olapdb_count_steps": (_INT, (_INT, _POINTER, _LONG, _WORD, _WORD, _WORD, _POINTER)),
    "olapdb_multiples": (_INT, (_POINTER, _LONG, _WORD, _WORD, _POINTER)),
    "olapdb_pack": (None, (*_COLUMN, _LONG, _WORD, _WORD, _INT, _POINTER)),
    "olapdb_number_values": (_LONG, (*_COLUMN, _LONG, _WORD, _WORD, _LONG, *[_POINTER] * 4)),
    "olapdb_number_hashed": (None, (_POINTER, _POINTER, _LONG, _LONG, *_NUMBERING)),
    "olapdb_number_texts": (
        None,
        (_POINTER, _POINTER, _LONG, _LONG, _POINTER, _LONG, _LONG, *_NUMBERING),
    ),
    "olapdb_number_rows": (None, (_POINTER, _LONG, _LONG, *_NUMBERING)),
    "olapdb_number_divided": (
        _LONG,
        (_POINTER, _LONG, _POINTER, _LONG, _POINTER, _LONG, _POINTER, _POINTER),
    ),
    "olapdb_join_divisions": (None, (_POINTER, _POINTER, *[_LONG] * 5, _POINTER)),
    "olapdb_group_totals": (
        _LONG,
        (_POINTER, *[_LONG] * 4, *[_POINTER] * 2, _LONG, *[_POINTER] * 2),
    ),
    "olapdb_insert_keys": (
        None,
        (_POINTER, _POINTER, *[_LONG] * 2, _POINTER, _LONG, *[_POINTER] * 2),
    ),
    "olapdb_grow_keys": (None, (_POINTER, _LONG, _POINTER, _LONG)),
    "olapdb_count": (None, (_POINTER, _LONG, _POINTER, _LONG, _POINTER)),
    "olapdb_sum_integers": (None, (*_COLUMN, _POINTER, _LONG, _POINTER)),
    "olapdb_sum_floats": (None, (*_COLUMN, _POINTER, _LONG, _POINTER)),
    "olapdb_sum_deviations": (None, (*[_POINTER] * 5, _LONG, _POINTER)),
    "olapdb_sum_decimals128": (None, (_POINTER, _POINTER, _LONG, _POINTER, _LONG, _POINTER)),
    "olapdb_decimal_bits": (_LONG, (_POINTER, _POINTER, _LONG, _LONG)),
    "olapdb_sum_narrow_decimals": (
        None,
        (_POINTER, _POINTER, _LONG, _POINTER, _LONG, _LONG, _POINTER),
    ),
    "olapdb_extremes": (None, (*_COLUMN, _POINTER, _LONG, _INT, _POINTER, _POINTER)),
    "olapdb_positions": (_LONG, (_POINTER, _POINTER, _LONG, _LONG, _POINTER)),
    "olapdb_csv_shape": (None, (_POINTER, _LONG, _INT, _POINTER, _POINTER)),
    "olapdb_json_marks": (_LONG, (_POINTER, _LONG)),
    "olapdb_json_index": (_LONG, (_POINTER, _POINTER, _LONG, *[_POINTER] * 8)),
    "olapdb_json_rows": (_LONG, (_POINTER, _LONG, _LONG, _POINTER, _POINTER)),
    "olapdb_join_spans": (None, (_POINTER, _POINTER, _POINTER, _LONG, _POINTER)),
    "olapdb_coded_rows": (_LONG, (_POINTER, _LONG, _POINTER, _POINTER)),
    "olapdb_within": (_LONG, (*_COLUMN, _LONG, _POINTER, _INT, _INT, _POINTER)),
    "olapdb_mark_members": (None, (_INT, _POINTER, _LONG, _WORD, _POINTER)),
    "olapdb_find_members": (None, (*_COLUMN, _LONG, _WORD, _WORD, _POINTER, _POINTER)),
    "olapdb_keep_members": (None, (*_COLUMN, _LONG, _WORD, _WORD, _POINTER, _POINTER)),
    "olapdb_rank_members": (None, (*_COLUMN, _LONG, _WORD, _WORD, *[_POINTER] * 3)),
    "olapdb_find_numbers": (None, (*_COLUMN, _LONG, _WORD, _WORD, _POINTER, _POINTER)),
    "olapdb_combine_decimals": (
        _INT,
        (_INT, *[_INT, _POINTER, _INT, _LONG] * 2, _LONG, _INT, _POINTER),
    ),
    "olapdb_compute_decimals": (_INT, (_POINTER, _LONG, _POINTER, _LONG, _POINTER)),
    "olapdb_lengthen_decimals": (None, (_POINTER, _LONG, _POINTER)),
    "olapdb_shorten_decimals": (None, (_POINTER, _LONG, _POINTER)),
    "olapdb_sum_short_decimals": (
        _LONG,
        (_POINTER, _POINTER, _LONG, _POINTER, _LONG, _LONG, _POINTER),
    ),
    "olapdb_keep_values": (None, (_INT, _POINTER, _POINTER, _LONG, _LONG, _POINTER)),
    "olapdb_keep_between": (_LONG, (*_COLUMN, _LONG, _POINTER, _POINTER, _INT, _POINTER)),
    "olapdb_keep_best": (_LONG, (_INT, _POINTER, _LONG, _INT, _POINTER, _LONG, _POINTER, _POINTER)),
    "olapdb_keep_flagged": (None, (*_COLUMN, _LONG, _POINTER, _LONG, _POINTER)),
    "olapdb_texts_within": (
        _LONG,
        (*[_POINTER] * 3, _LONG, _LONG, _POINTER, _LONG, _INT, _INT, _POINTER),
    ),
    "olapdb_match_pieces": (
        None,
        (*[_POINTER] * 2, _LONG, *[_POINTER] * 2, _LONG, _INT, _INT, _POINTER),
    ),
    "olapdb_plain_rows": (_LONG, (_POINTER, _LONG, _LONG, *[_POINTER] * 3)),
    "olapdb_extreme_texts": (
        None,
        (*[_POINTER] * 3, _LONG, *[_POINTER] * 2, _LONG, _INT, _POINTER),
    ),
    "olapdb_hash_numbers": (None, (*_COLUMN, _LONG, _POINTER)),
    "olapdb_hash_texts": (None, (_POINTER, _POINTER, _POINTER, _LONG, _LONG, _POINTER)),
    "olapdb_raise_registers": (None, (_POINTER, _LONG, _INT, _INT, _POINTER)),
    "olapdb_find_hashes32": (None, (_POINTER, _LONG, _POINTER, _LONG, _POINTER, _LONG, _POINTER)),
    "olapdb_find_hashes64": (None, (_POINTER, _LONG, _POINTER, _LONG, _POINTER, _LONG, _POINTER)),
    "olapdb_contains_hashes": (
        None,
        (_POINTER, _LONG, _POINTER, _LONG, _POINTER, _LONG, _POINTER, _LONG, _POINTER),
    ),
    "olapdb_combine_hashes": (None, (_POINTER, _POINTER, _LONG)),
    "olapdb_decode_numbers": (
        _INT,
        (*[_POINTER] * 2, _LONG, *[_POINTER] * 2, _LONG, *[_POINTER] * 3),
    ),
    "olapdb_decode_texts": (
        _INT,
        (*[_POINTER] * 2, _LONG, *[_POINTER] * 2, _LONG, *[_POINTER] * 2, _LONG, *[_POINTER] * 2),
    ),
    "olapdb_encode_numbers": (
        _INT,
        (*_COLUMN, _LONG, *[_POINTER] * 2, _LONG, _POINTER, _LONG, *[_POINTER] * 2),
    ),
    "olapdb_encode_texts": (
        _INT,
        (*[_POINTER] * 3, *[_LONG] * 2, *[_POINTER] * 2, _LONG, _POINTER, _LONG, *[_POINTER] * 2),
    ),
    "olapdb_text_range": (None, (*[_POINTER] * 3, *[_LONG] * 2, _POINTER)),
    "olapdb_partition_numbers": (None, (_POINTER, _LONG, _WORD, _INT, _INT, _POINTER)),
    "olapdb_partition_order": (None, (_POINTER, _LONG, _LONG, _POINTER, _POINTER)),
    "olapdb_pack_order": (None, (*_COLUMN, _LONG, _WORD, _INT, _WORD, _WORD, _INT, _POINTER)),
    "olapdb_sort_order": (None, (_POINTER, _LONG, _INT, _POINTER, _POINTER, _POINTER)),
    "olapdb_sort_hashes": (None, (_POINTER, _LONG, *[_POINTER] * 3)),
    "olapdb_hash_buckets": (None, (_POINTER, _LONG, _INT, _POINTER)),
    "olapdb_first_of_groups": (_LONG, (*[_POINTER] * 2, *[_LONG] * 2, _INT, *[_POINTER] * 2)),
    "olapdb_frame_sums": (None, (_POINTER, _LONG, _POINTER, _POINTER, _LONG, _POINTER)),
    "olapdb_frame_extremes": (
        None,
        (_POINTER, _POINTER, _LONG, _POINTER, _POINTER, _LONG, _POINTER),
    ),
    "olapdb_narrow": (None, (_INT, _POINTER, _LONG, _WORD, _INT, _POINTER)),
    "olapdb_widen": (None, (_INT, _POINTER, _LONG, _POINTER)),
    "olapdb_partition_counts": (None, (_POINTER, _LONG, _POINTER)),
    "olapdb_divide_values": (None, (_INT, *[_POINTER] * 2, _LONG, _WORD, _INT, *[_POINTER] * 2)),
    "olapdb_sort_prefixes": (_INT, (_POINTER, _LONG, _INT, _INT, *[_POINTER] * 2)),
    "olapdb_sort_packed": (None, (_POINTER, _LONG, _INT, _INT, _POINTER)),
    "olapdb_group_values": (None, (*_COLUMN, _POINTER, _LONG, _LONG, _POINTER, _POINTER, _POINTER)),
    "olapdb_distinct_sorted": (_LONG, (_POINTER, _LONG, _POINTER, _POINTER, _LONG, _POINTER)),
    "olapdb_mark_codes": (None, (*_COLUMN, _POINTER, _LONG, _LONG, _POINTER)),
    "olapdb_mark_lists": (None, (_POINTER, _POINTER, _LONG, _POINTER, _LONG, _POINTER)),
    "olapdb_join_marks": (None, (_POINTER, _POINTER, _LONG, _LONG, _POINTER)),
    "olapdb_marked_codes": (_LONG, (_POINTER, _LONG, _LONG, _POINTER, _POINTER)),
    "olapdb_count_cells": (None, (*_COLUMN, _POINTER, _LONG, _WORD, _LONG, _POINTER)),
    "olapdb_count_runs": (_INT, (_INT, *[_POINTER] * 2, _LONG, _POINTER, _WORD, _LONG, _POINTER)),
    "olapdb_repeat_cells": (None, (_INT, _POINTER, _LONG, _LONG, _WORD, _POINTER)),
    "olapdb_buckets": (None, (_POINTER, _LONG, _POINTER)),
    "olapdb_sort_groups": (None, (_POINTER, _LONG, _POINTER, _POINTER)),
    "olapdb_edit_distances": (None, (*[_POINTER] * 4, _LONG, _INT, _POINTER, _LONG, _POINTER)),
    "olapdb_jaro_counts": (None, (*[_POINTER] * 4, _LONG, _POINTER, _LONG, _POINTER)),
    "olapdb_common_keys": (None, (*[_POINTER] * 4, _LONG, *[_POINTER] * 2, _LONG, _POINTER)),
    "olapdb_regex_matches": (None, (*[_POINTER] * 4, _LONG, _POINTER)),
    "olapdb_regex_groups": (None, (*[_POINTER] * 4, *[_LONG] * 2, *[_POINTER] * 3)),
    "olapdb_copy_spans": (None, (*[_POINTER] * 3, _LONG, *[_POINTER] * 2)),
    "olapdb_regex_replace": (
        _LONG,
        (*[_POINTER] * 4, *[_LONG] * 2, _POINTER, _LONG, *[_POINTER] * 4, _LONG),
    ),
    "olapdb_ipv4_texts": (None, (_POINTER, _LONG, *[_POINTER] * 2)),
    "olapdb_extreme_rows": (None, (_POINTER, _POINTER, _LONG, _INT, _POINTER, _POINTER)),
}
"""The result and the arguments of each kernel, as its source has them."""

ABI = 34
"""`olapdb_abi()` of the library that these signatures fit. Raise both with every change of one."""


@dataclass(frozen=True)
class Loading:
    """The outcome of loading: the library or None, and a text that says which form runs and why."""

    library: ctypes.CDLL | None
    about: str


_is_off = False


def library() -> ctypes.CDLL | None:
    """Return the library, or None where numpy and Arrow do the work of the kernels.

    A call releases the interpreter's lock."""
    return None if _is_off else _loading().library


def kernels() -> ctypes.CDLL:
    """Return the library, for a caller that knows that it is loaded.

    Where work is watched, looking up a kernel counts as a call of it."""
    loaded = library()
    assert loaded is not None
    counts = observation.current()
    return loaded if counts is None else cast("ctypes.CDLL", _Counted(loaded, counts))


class _Counted:
    """The library for work that is watched."""

    def __init__(self, loaded: ctypes.CDLL, counts: observation.Counts) -> None:
        self._loaded, self._counts = loaded, counts

    def __getattr__(self, name: str) -> object:
        """Return the kernel of this name, and count the look-up as a call of it."""
        self._counts.kernels[name.removeprefix("olapdb_")] += 1
        return getattr(self._loaded, name)


def about() -> str:
    """Return one line of text that says which form of the kernels runs and why, for `system.build_options`."""
    return _loading().about


@contextmanager
def without_kernels() -> Iterator[None]:
    """Use the forms in numpy and Arrow within the block, in all threads; for tests."""
    global _is_off
    before, _is_off = _is_off, True
    try:
        yield
    finally:
        _is_off = before


@cache
def _loading() -> Loading:
    """Load the library, unless the environment turns it off; log which form runs."""
    loading = _load()
    logging.getLogger("olapdb").debug("Kernels: %s", loading.about)
    return loading


def _load() -> Loading:
    """Load the compiled library. Without one, with one of another version, or where OLAPDB_KERNELS is off, return a
    `Loading` without library that says why and what to do."""
    if os.environ.get("OLAPDB_KERNELS", "").lower() in ("off", "0", "false", "no"):
        return Loading(None, "numpy and Arrow: OLAPDB_KERNELS is off")
    advice = "build them with python -m olapdb.native.build"
    if not LIBRARY.exists():
        return Loading(None, f"numpy and Arrow: there are no compiled kernels, {advice}")
    try:
        loaded = ctypes.CDLL(str(LIBRARY))
        version = loaded.olapdb_abi()
        if version != ABI:
            return Loading(None, f"numpy and Arrow: the kernels have another version, {advice}")
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        return Loading(None, f"numpy and Arrow: the kernels cannot be loaded ({error}), {advice}")
    return Loading(loaded, "compiled")

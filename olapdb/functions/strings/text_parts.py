"""substringIndex and substringIndexUTF8: the text before or behind the n-th separator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, IllegalColumn, ValueOutOfRange
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.strings.all_matches import cut
from olapdb.types import STRING, DataType, Integer, String

_INT64_MAX = np.uint64(2**63 - 1)


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless two texts and an integer, IllegalColumn
    unless the separator is constant."""
    scalar.require(name, types[:2], String, "a String")
    scalar.require(name, types[2:], Integer, "an integer")
    if arguments[1].constant is None:
        raise IllegalColumn(f"The separator of {name} must be a constant.")
    return STRING


def _counts(name: str, array: pa.Array) -> np.ndarray:
    """Return the counts of separators as int64. Raises ValueOutOfRange for one beyond int64."""
    values = columns.numpy_values(array)
    if values.dtype == np.uint64 and (values > _INT64_MAX).any():
        raise ValueOutOfRange(f"The count of {name} does not fit Int64.")
    return values.astype(np.int64)


def _places(data: np.ndarray, separator: bytes) -> np.ndarray:
    """Return the positions at which the separator begins in the bytes of all texts."""
    starts = max(len(data) - len(separator) + 1, 0)
    matches = np.ones(starts, bool)
    for at, byte in enumerate(separator):
        matches &= data[at : at + starts] == byte
    return np.flatnonzero(matches)


def _kernel(name: str, *, utf8: bool) -> scalar.Kernel:
    """Return the kernel of substringIndex, or with `utf8` of substringIndexUTF8; `name` is the function's."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Cut each text before the n-th separator, or for a negative n behind it, counted from the right.

        A text with fewer separators stays whole. Raises BadArguments unless the separator is one
        character, ValueOutOfRange."""
        constant = call.constants[1]
        assert isinstance(constant, pa.StringScalar)
        separator = constant.as_buffer().to_pybytes()
        if len(separator.decode("utf-8", "replace") if utf8 else separator) != 1:
            raise BadArguments(f"The second argument of {name} is a single character.")
        offsets, data = columns.bytes_of(columns.text(arrays[0]))
        count = _counts(name, arrays[2])
        places = np.append(_places(data, separator), 0)
        firsts, lasts = (np.searchsorted(places[:-1], side) for side in (offsets[:-1], offsets[1:]))
        begins, ends = offsets[:-1].copy(), offsets[1:].copy()
        before = (count >= 0) & (count <= lasts - firsts)
        ends[before] = places[(firsts + count - 1)[before]]
        behind = (count < 0) & (count >= firsts - lasts)
        begins[behind] = places[(lasts + count)[behind]] + len(separator)
        ends[count == 0] = begins[count == 0]
        return cut(data, begins, ends)

    return kernel


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define(
        "substringIndex",
        _rule,
        _kernel("substringIndex", utf8=False),
        count=3,
        aliases=("SUBSTRING_INDEX",),
        insensitive=True,
    ),
    scalar.define("substringIndexUTF8", _rule, _kernel("substringIndexUTF8", utf8=True), count=3),
)

"""Type rules of string functions, and conversions of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.scalar import Invocation, Kernel, illegal, require
from olapdb.types import STRING, DataType, FixedString, Integer, String

TEXT_TYPES = (String, FixedString)
TO_THE_END = np.int64(2**62)
"""A number of bytes or characters that is longer than any string."""
DOT_MATCHES_ALL = "(?s)"
"""The prefix of every regular expression: in ClickHouse `.` matches a line break too."""


def text_rule(
    result: DataType, texts: int = 1
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    """Return the type rule of a function of `texts` strings, then integers, with the type
    `result`.
    """

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the type `result`; raise IllegalTypeOfArgument unless the arguments are `texts` strings, then
        integers."""
        require(name, types[:texts], TEXT_TYPES, "a String")
        require(name, types[texts:], Integer, "an integer")
        return result

    return rule


def place_rule(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    """Return the type rule of a search: two strings and an unsigned place at which to start."""
    whole = text_rule(result, 2)

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the type `result`; raise IllegalTypeOfArgument unless the arguments are two strings and an unsigned
        place."""
        for place in types[2:]:
            if not isinstance(place, Integer) or place.signed:
                raise illegal(name, place, "an unsigned integer")
        return whole(name, types, arguments)

    return rule


def integers_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless all arguments are integers."""
    require(name, types, Integer, "an integer")
    return STRING


def text_kernel(function: Callable[[pa.Array], pa.Array]) -> Kernel:
    """Return the kernel of a function of one string; `function` takes and returns its text array."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Convert the first argument to text and apply the function."""
        return function(columns.text(arrays[0]))

    return kernel


def integers(array: pa.Array) -> np.ndarray:
    """Return an integer column as int64; UInt64 values beyond it wrap."""
    return columns.numpy_values(array).astype(np.int64)


def saturated_integers(array: pa.Array) -> np.ndarray:
    """Return an integer column as int64; UInt64 values beyond it become its maximum."""
    values = columns.numpy_values(array)
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(2**63 - 1))
    return values.astype(np.int64)

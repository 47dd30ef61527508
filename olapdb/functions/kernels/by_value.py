"""Kernels made of a function of plain Python values, which is called once for each distinct row.

They serve algorithms on single texts that have no form over whole columns. The rows are ranked
first, so that the number of Python calls is that of the distinct combinations of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from olapdb.functions.aggregates.group_kernels import rank_rows
from olapdb.functions.kernels import columns
from olapdb.functions.scalar import Invocation, Kernel, ScalarDefinition, TypeRule, define
from olapdb.types import DataType
from olapdb.types.arrow_values import from_numpy


def by_value(function: Callable[..., object]) -> Kernel:
    """Make a kernel from a Python function of the values of one row. The function gets and returns Python values:
    bytes for texts, lists for arrays."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Call the function once for each distinct row, and return its results by row."""
        return values_by_row(arrays, function, call.result.arrow)

    return kernel


def values_by_row(
    arrays: Sequence[pa.Array], function: Callable[..., object], arrow: pa.DataType
) -> pa.Array:
    """Call the function once for each distinct row and return the results by row, as type `arrow`; the columns have
    no nulls."""
    if not len(arrays[0]):
        return pa.nulls(0, arrow)
    ranking = rank_rows(arrays)
    rows = pa.array(ranking.rows)
    distinct = [_as_bytes(array.take(rows)).to_pylist() for array in arrays]
    results = [function(*values) for values in zip(*distinct, strict=True)]
    return _as_text(pa.array(results, _bytes_type(arrow)), arrow).take(from_numpy(ranking.ranks))


def texts_of(values: Sequence[bytes]) -> list[str]:
    """Return texts as Python strings; bytes that are not UTF-8 become surrogates."""
    return [value.decode("utf-8", "surrogateescape") for value in values]


def text_of(value: bytes) -> str:
    """Return a text as a Python string; bytes that are not UTF-8 become surrogates."""
    return value.decode("utf-8", "surrogateescape")


def bytes_of_text(value: str) -> bytes:
    """Return the bytes of a string from `text_of`."""
    return value.encode("utf-8", "surrogateescape")


def on_text(function: Callable[..., str]) -> Callable[..., bytes]:
    """Convert a function of Python strings to a function of bytes, see `text_of`."""

    def call(*values: object) -> bytes:
        """Decode bytes arguments, call the function, and encode its result."""
        decoded = [text_of(value) if isinstance(value, bytes) else value for value in values]
        return bytes_of_text(function(*decoded))

    return call


def define_by_value(
    name: str,
    rule: TypeRule | DataType,
    function: Callable[..., object],
    *,
    count: int | tuple[int, int | None] = 1,
    aliases: tuple[str, ...] = (),
    insensitive: bool = False,
) -> ScalarDefinition:
    """Define a scalar function by a Python function, which is called once for each distinct row; see `by_value`."""
    return define(
        name, rule, by_value(function), count=count, aliases=aliases, insensitive=insensitive
    )


def _as_bytes(array: pa.Array) -> pa.Array:
    """Convert texts, also nested in arrays, to binary values, since a text need not be UTF-8."""
    if pa.types.is_string(array.type):
        return columns.binary(array)
    if pa.types.is_list(array.type):
        offsets, elements = columns.elements_of(array)
        return columns.lists_from(offsets, _as_bytes(elements))
    return array


def _bytes_type(arrow: pa.DataType) -> pa.DataType:
    """Return the Arrow type with each string, also nested in arrays and tuples, replaced by binary."""
    if pa.types.is_string(arrow):
        return pa.binary()
    if pa.types.is_list(arrow):
        return pa.list_(_bytes_type(arrow.value_type))
    if pa.types.is_struct(arrow):
        return pa.struct([(field.name, _bytes_type(field.type)) for field in arrow])
    return arrow


def _as_text(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Convert binary values back to texts wherever `arrow` has texts."""
    if pa.types.is_string(arrow):
        return columns.text(array)
    if pa.types.is_list(arrow):
        offsets, elements = columns.elements_of(array)
        return columns.lists_from(offsets, _as_text(elements, arrow.value_type))
    if pa.types.is_struct(arrow):
        fields = columns.struct_fields(array)
        texts = [_as_text(f, field.type) for f, field in zip(fields, arrow, strict=True)]
        return columns.structs_from(texts, arrow)
    return array

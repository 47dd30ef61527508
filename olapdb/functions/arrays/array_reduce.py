"""arrayReduce and arrayReduceInRanges: an aggregate, named by a text, over the elements of arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb import errors
from olapdb.errors import (
    BadArguments,
    IllegalTypeOfArgument,
    SizesOfArraysDoNotMatch,
    TooFewArguments,
)
from olapdb.functions import scalar
from olapdb.functions.aggregates.registry import parse_parameter, resolve_aggregate
from olapdb.functions.base import Aggregate, Argument, Column, Environment, Groups, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.types import Array, DataType, Integer, Tuple, plain
from olapdb.types.arrow_values import from_numpy

_PARAMETER = re.compile(r"(?:'(?:[^'\\]|\\.)*'|\[[^\]]*\]|[^,'\[])+", re.DOTALL)
"""A parameter: quoted texts and lists may have commas."""


def aggregate_of_text(
    name: str, arguments: Sequence[Argument], types: Sequence[DataType]
) -> Aggregate:
    """Return the aggregate that the first argument, a constant text, names: `quantile(0.9)`.

    Raises BadArguments and SyntaxError for a text that is no call of an aggregate, and the aggregate's own
    errors.
    """
    text = scalar.constant_text(name, arguments, 0, "the aggregate").strip()
    spelt, bracket, rest = text.partition("(")
    if bracket and not rest.endswith(")"):
        raise BadArguments(
            f"{name}: {text!r} is no aggregate.", hint="Write 'sum' or 'quantile(0.9)'."
        )
    inside = rest[:-1] if rest[:-1].strip() else ""
    written = _PARAMETER.findall(inside)
    if ",".join(written) != inside:  # an open bracket or quote, or no parameter between commas
        raise errors.SyntaxError(
            f"{name}: {text!r} is no aggregate.", hint="Write 'sum' or 'quantile(0.9)'."
        )
    try:
        parameters = [parse_parameter(part.strip()) for part in written]
    except (ValueError, SyntaxError):
        raise BadArguments(
            f"{name}: {text!r} has a parameter that is no number, no quoted text and no list.",
            hint="Write 'sum' or 'quantile(0.9)'.",
        ) from None
    return resolve_aggregate(spelt.strip(), parameters, tuple(types))


def _element_types(name: str, arguments: Sequence[Argument]) -> list[DataType]:
    """Return the types of the elements; raise IllegalTypeOfArgument for other than arrays."""
    types = []
    for argument in arguments:
        array = plain(argument.type)
        if not isinstance(array, Array):
            raise IllegalTypeOfArgument(f"{name} takes arrays, not {argument.type}.")
        types.append(array.inner)
    return types


def _elements(name: str, arrays: Sequence[pa.Array]) -> tuple[np.ndarray, list[pa.Array]]:
    """Return the offsets that the arrays share and the elements of each.

    Raises SizesOfArraysDoNotMatch with the row where the arrays of a row differ in length.
    """
    parts = [columns.elements_of(array) for array in arrays]
    offsets = parts[0][0]
    for other, _ in parts[1:]:
        unequal = np.flatnonzero(np.diff(offsets) != np.diff(other))
        if len(unequal):
            raise SizesOfArraysDoNotMatch(
                f"The arrays that {name} takes have different lengths."
            ).at_row(int(unequal[0]))
    return offsets, [elements for _, elements in parts]


def _array_reduce(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve arrayReduce(aggregate, array, …): one result for the elements of each row."""
    types = _element_types(name, arguments[1:])
    aggregate = aggregate_of_text(name, arguments, types)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Aggregate the elements of each row in a group of its own."""
        arrays = [columns.as_array(value, rows) for value in values[1:]]
        offsets, elements = _elements(name, arrays)
        groups = Groups(columns.parents_of(offsets), rows)
        return aggregate.finalize(aggregate.state(elements, groups))

    return ScalarCall(name, aggregate.result_type, kernel)


def _array_reduce_in_ranges(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve arrayReduceInRanges(aggregate, ranges, array, …): an array with one result for each
    range (position from 1, length) of the row's elements. Raises IllegalTypeOfArgument."""
    ranges = plain(arguments[1].type)
    pair = plain(ranges.inner) if isinstance(ranges, Array) else None
    if (
        not isinstance(pair, Tuple)
        or len(pair.elements) != 2
        or not all(isinstance(plain(t), Integer) for t in pair.elements)
    ):
        raise IllegalTypeOfArgument(
            f"The ranges of {name} are an array of tuples of two integers, not {arguments[1].type}."
        )
    types = _element_types(name, arguments[2:])
    aggregate = aggregate_of_text(name, arguments, types)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Copy the elements of each range, and aggregate each copy as a group."""
        arrays = [columns.as_array(value, rows) for value in values[1:]]
        offsets, elements = _elements(name, arrays[1:])
        range_offsets, pairs = columns.elements_of(arrays[0])
        first, last = _bounds(pairs, columns.parents_of(range_offsets), np.diff(offsets))
        lengths = last - first
        codes = np.repeat(np.arange(len(lengths)), lengths)
        ends = columns.offsets_from_counts(lengths)
        starts = offsets[columns.parents_of(range_offsets)] + first
        places = np.arange(int(ends[-1])) + np.repeat(starts - ends[:-1], lengths)
        chosen = [array.take(from_numpy(places)) for array in elements]
        groups = Groups(codes, len(lengths))
        results = aggregate.finalize(aggregate.state(chosen, groups))
        return columns.lists_from(range_offsets, results)

    return ScalarCall(name, Array(aggregate.result_type), kernel)


def _bounds(
    pairs: pa.Array, owners: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first element and the end of each range within its array, counted from 0.

    A position counts from 1, or from the end where it is negative; ranges are cut at both ends.
    """
    position, length = (
        columns.numpy_values(field).astype(np.int64) for field in columns.struct_fields(pairs)
    )
    size = sizes[owners] if len(owners) else np.zeros(0, np.int64)
    begin = np.where(position > 0, position - 1, np.where(position < 0, position + size, size))
    first = np.where(begin < 0, size, np.minimum(begin, size))  # none where it begins outside
    return first, first + np.clip(length, 0, size - first)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *scalar.with_count_errors(
        [scalar.custom("arrayReduce", _array_reduce, count=(2, None))], few=TooFewArguments
    ),
    scalar.custom("arrayReduceInRanges", _array_reduce_in_ranges, count=(3, None)),
)

"""Functions that move, choose and group the elements of arrays: rotate, shift, shuffle, except, union."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, SizesOfArraysDoNotMatch
from olapdb.functions import scalar
from olapdb.functions.arrays.ordering import first_occurrences
from olapdb.functions.arrays.resizing import require_list_size
from olapdb.functions.arrays.search import ranks_with_null
from olapdb.functions.arrays.type_rules import array_rule, element_type, same_type
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.integer_order import stable_order
from olapdb.functions.kernels.nested import filter_elements
from olapdb.functions.kernels.supertypes import common_type, comparable_type
from olapdb.functions.numeric.conditional import plain_lc
from olapdb.types import (
    FLOAT64,
    UINT8,
    UINT64,
    Array,
    DataType,
    Float,
    Integer,
    Nothing,
    is_number,
    make_nullable,
    plain,
)
from olapdb.types.arrow_values import from_numpy


def _array_then_integers(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return the type of the first argument, an array. Raises IllegalTypeOfArgument unless the other arguments are
    integers."""
    element_type(name, types[0])
    scalar.require(name, types[1:], Integer, "an integer")
    return types[0]


def _integers(array: pa.Array) -> np.ndarray:
    """Return an integer column as int64."""
    return columns.numpy_values(array).astype(np.int64)


def _rotate(*, left: bool) -> scalar.Kernel:
    """Return the kernel of arrayRotateLeft, or without `left` of arrayRotateRight."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Rotate the elements of each array by the row's number of places."""
        offsets, elements = columns.elements_of(arrays[0])
        owners, sizes = columns.parents_of(offsets), np.diff(offsets)
        moved = np.where(sizes > 0, _integers(arrays[1]) % np.maximum(sizes, 1), 0)
        moved = moved if left else -moved
        at = (np.arange(len(owners)) - offsets[owners] + moved[owners]) % sizes[owners]
        return columns.lists_from(offsets, elements.take(from_numpy(offsets[owners] + at)))

    return kernel


def _shift(*, left: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of arrayShiftLeft, or without `left` of arrayShiftRight."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve (array, places[, filler]): free places get the filler or the type's default."""
        own = plain_lc(element_type(name, arguments[0].type))
        scalar.require(name, [plain(arguments[1].type)], Integer, "an integer")
        inner = own
        if len(arguments) > 2:
            filled = plain_lc(arguments[2].type)
            kinds = {isinstance(kind, Integer) for kind in (plain(own), plain(filled))}
            if is_number(own) != is_number(filled) or len(kinds) > 1:
                raise scalar.illegal(name, arguments[2].type, f"a filler of type {own}")
            inner = common_type([own, filled])

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Shift the elements of each array; free places get the third argument, or the default."""
            constant = all(isinstance(v, pa.Scalar) for v in values)
            lists, places, *extra = (columns.as_array(v, 1 if constant else rows) for v in values)
            offsets, elements = columns.elements_of(lists)
            elements = columns.single(cast_column(elements, own, inner, environment, strict=False))
            filler = columns.as_array(default_value(inner), 1)
            if extra:
                filler = columns.single(
                    cast_column(extra[0], arguments[2].type, inner, environment, strict=False)
                )
            shifts = np.clip(_integers(places), -(2**31), 2**31) * (1 if left else -1)
            shifted = _shifted(offsets, elements, shifts, filler)
            return shifted[0] if constant else shifted

        return ScalarCall(name, Array(inner), kernel)

    return resolve


def _shifted(
    offsets: np.ndarray, elements: pa.Array, shifts: np.ndarray, filler: pa.Array
) -> pa.Array:
    """Shift each array's elements to the left by `shifts` (negative: to the right); `filler`, one value or one for
    each row, fills the free places."""
    owners = columns.parents_of(offsets)
    at = np.arange(len(owners)) - offsets[owners] + shifts[owners]
    inside = (at >= 0) & (at < np.diff(offsets)[owners])
    fill = len(elements) + (owners if len(filler) > 1 else 0)
    rows = np.where(inside, offsets[owners] + at, fill)
    return columns.lists_from(offsets, pa.concat_arrays([elements, filler]).take(from_numpy(rows)))


def _shingles(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return for each array all runs of n consecutive elements: the kernel of arrayShingles. Raises BadArguments for
    a bad n."""
    offsets, elements = columns.elements_of(arrays[0])
    lengths, sizes = _integers(arrays[1]), np.diff(offsets)
    if ((lengths < 1) | (lengths > sizes)).any():
        raise BadArguments("The length of arrayShingles is from 1 to the size of the array.")
    counts = sizes - lengths + 1
    require_list_size("arrayShingles", counts * lengths)
    outer = columns.offsets_from_counts(counts)
    owners = columns.parents_of(outer)
    inner = columns.offsets_from_counts(lengths[owners])
    starts = offsets[owners] + np.arange(len(owners)) - outer[owners]
    runs = columns.parents_of(inner)
    places = starts[runs] + np.arange(len(runs)) - inner[runs]
    return columns.lists_from(outer, columns.lists_from(inner, elements.take(from_numpy(places))))


def _transpose(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Swap rows and columns of each matrix: the kernel of arrayTranspose.

    Raises SizesOfArraysDoNotMatch."""
    outer, lists = columns.elements_of(arrays[0])
    inner, elements = columns.elements_of(lists)
    sizes, heights = np.diff(inner), np.diff(outer)
    widths = np.zeros(len(heights), np.int64)
    full = heights > 0
    widths[full] = sizes[outer[:-1][full]]
    if (sizes != widths[columns.parents_of(outer)]).any():
        raise SizesOfArraysDoNotMatch("The inner arrays of arrayTranspose have different lengths.")
    out = columns.offsets_from_counts(widths)
    owners = columns.parents_of(out)
    cells = columns.offsets_from_counts(heights[owners])
    cell_lists = columns.parents_of(cells)
    row = np.arange(len(cell_lists)) - cells[cell_lists]
    column = (np.arange(len(owners)) - out[owners])[cell_lists]
    places = inner[outer[owners[cell_lists]] + row] + column
    return columns.lists_from(out, columns.lists_from(cells, elements.take(from_numpy(places))))


def _matrix_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of the matrix; raise IllegalTypeOfArgument unless an array of arrays."""
    if not isinstance(element_type(name, types[0]), Array):
        raise scalar.illegal(name, types[0], "an Array of arrays")
    return types[0]


def _flattened_length(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Count the innermost elements of nested arrays: the kernel of arrayFlattenedLength."""
    offsets, elements = columns.elements_of(arrays[0])
    while pa.types.is_list(elements.type):
        inner, elements = columns.elements_of(elements)
        offsets = inner[offsets]
    return columns.from_values(np.diff(offsets), pa.uint64())


def _or_single(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Replace each empty array by an array of one default value: the kernel of emptyArrayToSingle."""
    offsets, elements = columns.elements_of(arrays[0])
    assert isinstance(call.result, Array)
    filler = columns.as_array(default_value(call.result.inner), 1)
    counts = np.maximum(np.diff(offsets), 1)
    out = columns.offsets_from_counts(counts)
    owners = columns.parents_of(out)
    places = np.arange(len(owners)) - out[owners] + offsets[owners]
    places = np.where(np.diff(offsets)[owners] == 0, len(elements), places)
    return columns.lists_from(out, pa.concat_arrays([elements, filler]).take(from_numpy(places)))


# --- sets


def _shared_arrays(
    name: str,
    arguments: Sequence[Argument],
    result: Callable[[DataType], DataType],
    combine: Callable[[list[pa.Array]], pa.Array],
) -> ScalarCall:
    """Return the call that casts all arrays to an array of their common element type and combines them by `combine`.
    `result` maps that element type to the result type."""
    inners = [plain_lc(element_type(name, a.type)) for a in arguments]
    inner = comparable_type([i for i in inners if not isinstance(i, Nothing)] or inners)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Cast the elements of all arrays to the common type and combine the arrays of each row."""
        constant = all(isinstance(v, pa.Scalar) for v in values)
        lists = []
        for value, own in zip(values, inners, strict=True):
            offsets, elements = columns.elements_of(
                columns.as_array(value, 1 if constant else rows)
            )
            elements = columns.single(cast_column(elements, own, inner, environment, strict=False))
            lists.append(columns.lists_from(offsets, elements))
        combined = columns.retype(combine(lists), result(inner).arrow)
        return combined[0] if constant else combined

    return ScalarCall(name, result(inner), kernel)


def _codes_of(lists: list[pa.Array]) -> tuple[list[np.ndarray], pa.Array, np.ndarray, np.ndarray]:
    """Return the offsets of all arrays, their joined elements, and each element's row and value
    code; code 0 is NULL."""
    parts = [columns.elements_of(array) for array in lists]
    elements = pa.concat_arrays([own for _, own in parts])
    owners = np.concatenate([columns.parents_of(offsets) for offsets, _ in parts])
    return [offsets for offsets, _ in parts], elements, owners, ranks_with_null(elements)


def _chosen(elements: pa.Array, owners: np.ndarray, keep: np.ndarray, rows: int) -> pa.Array:
    """Build one array a row from the elements that `keep` marks, in order; `owners` holds each element's row."""
    places = np.flatnonzero(keep)
    places = places[stable_order(owners[places])]
    counts = np.bincount(owners[places], minlength=rows)
    return columns.lists_from(
        columns.offsets_from_counts(counts), elements.take(from_numpy(places))
    )


def _union(lists: list[pa.Array]) -> pa.Array:
    """Return the distinct elements of all arrays of each row, in order of appearance; NULL last."""
    _, elements, owners, codes = _codes_of(lists)
    first = first_occurrences(owners, codes)
    order = np.lexsort((np.arange(len(codes)), codes == 0))
    return _chosen(elements.take(from_numpy(order)), owners[order], first[order], len(lists[0]))


def _symmetric_difference(lists: list[pa.Array]) -> pa.Array:
    """Return the distinct elements that are not in all arrays of their row."""
    offsets, elements, owners, codes = _codes_of(lists)
    number = np.repeat(np.arange(len(lists)), [int(o[-1]) for o in offsets])
    span = int(codes.max(initial=0)) + 1
    keys = owners * span + codes
    _, inverse = np.unique(keys, return_inverse=True)
    inverse = inverse.reshape(-1)
    seen = np.zeros((int(inverse.max(initial=-1)) + 1, len(lists)), bool)
    seen[inverse, number] = True
    keep = ~np.asarray(np.logical_and.reduce(seen, axis=1))[inverse] & first_occurrences(
        owners, codes
    )
    return _chosen(elements, owners, keep, len(lists[0]))


def _except(lists: list[pa.Array]) -> pa.Array:
    """Return the elements of the first array that are not in the second, repeated ones included."""
    offsets, elements, owners, codes = _codes_of(lists)
    count = int(offsets[0][-1])
    keys = owners * (int(codes.max(initial=0)) + 1) + codes
    keep = np.zeros(len(codes), bool)
    keep[:count] = ~np.isin(keys[:count], keys[count:])
    return _chosen(elements, owners, keep, len(lists[0]))


def _has_substr(lists: list[pa.Array]) -> pa.Array:
    """Return for each row whether the second array occurs in the first as a run of consecutive elements: hasSubstr."""
    offsets, _, _, codes = _codes_of(lists)
    whole, wanted = offsets
    sizes = np.diff(wanted)
    candidates = np.maximum(np.diff(whole) - sizes + 1, 0)
    begins = columns.offsets_from_counts(candidates)
    owners = columns.parents_of(begins)
    places = whole[owners] + np.arange(len(owners)) - begins[owners]
    needles = int(whole[-1]) + wanted[:-1]
    for step in range(int(sizes.max(initial=0))):
        open_ = step < sizes[owners]
        here = codes[np.minimum(places + step, len(codes) - 1)]
        there = codes[np.minimum(needles[owners] + step, len(codes) - 1)]
        keep = ~open_ | (here == there)
        owners, places = owners[keep], places[keep]
    contains = np.bincount(owners, minlength=len(lists[0])) > 0
    return columns.from_values(contains, pa.uint8())


def _jaccard(lists: list[pa.Array]) -> pa.Array:
    """Return the Jaccard index of two arrays of each row: the number of common distinct values over the number of all
    distinct values."""
    offsets, _, owners, codes = _codes_of(lists)
    count = int(offsets[0][-1])
    keys = owners * (int(codes.max(initial=0)) + 1) + codes
    distinct = first_occurrences(owners, codes)
    first_keys = np.unique(keys[:count])
    common = np.isin(first_keys, keys[count:])
    rows = first_keys[common] // (int(codes.max(initial=0)) + 1)
    together = np.bincount(owners[distinct], minlength=len(lists[0]))
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.bincount(rows, minlength=len(lists[0])) / together
    return columns.from_values(shares, pa.float64())


def _sets(
    result: Callable[[DataType], DataType], combine: Callable[[list[pa.Array]], pa.Array]
) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of a function that treats arrays as sets; `result` maps the common element type to the
    result type, `combine` computes the result."""
    return lambda name, arguments: _shared_arrays(name, arguments, result, combine)


def _difference(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve arrayExcept, of arrays whose elements have one type. Raises IllegalTypeOfArgument."""
    inners = [plain(element_type(name, a.type)) for a in arguments]
    if inners[0] != inners[1]:
        raise scalar.illegal(name, arguments[1].type, f"an Array({inners[0]})")
    call = _shared_arrays(name, arguments, _array_of, _except)
    return replace(call, type=Array(plain_lc(element_type(name, arguments[0].type))))


def _remove(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve arrayRemove(array, value): the array without elements equal to the value; NULL equals
    NULL."""
    inner = plain_lc(element_type(name, arguments[0].type))
    value_type = plain_lc(arguments[1].type)
    shared = make_nullable(comparable_type([inner, value_type]))

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Drop from each array the elements that equal the value of its row."""
        constant = all(isinstance(v, pa.Scalar) for v in values)
        lists, wanted = (columns.as_array(v, 1 if constant else rows) for v in values)
        offsets, elements = columns.elements_of(lists)
        both = [
            columns.single(cast_column(v, t, shared, environment, strict=False))
            for v, t in ((elements, inner), (wanted, value_type))
        ]
        if isinstance(plain(shared), Float):  # 0 equals -0, a NaN nothing
            both = [pc.add(values, pa.scalar(0.0, values.type)) for values in both]
        codes = ranks_with_null(pa.concat_arrays(both))
        keep = codes[: len(elements)] != codes[len(elements) :][columns.parents_of(offsets)]
        if isinstance(plain(shared), Float):
            keep |= np.asarray(pc.is_nan(both[0]).fill_null(False))
        kept = filter_elements(offsets, elements, keep)
        return kept[0] if constant else kept

    return ScalarCall(name, Array(inner), kernel)


def _replicate(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve replicate(value, array, …): an array that repeats the value as often as the first array has elements."""
    element_type(name, arguments[1].type)
    scalar.require(name, [plain(a.type) for a in arguments[1:]], Array, "an Array")

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Repeat each row's value as often as its array has elements."""
        constant = all(isinstance(v, pa.Scalar) for v in values)
        value, *lists = (columns.as_array(v, 1 if constant else rows) for v in values)
        offsets, _ = columns.elements_of(lists[0])
        repeated = columns.lists_from(offsets, value.take(from_numpy(columns.parents_of(offsets))))
        return repeated[0] if constant else repeated

    return ScalarCall(name, Array(plain_lc(arguments[0].type)), kernel)


def _array_of(inner: DataType) -> DataType:
    """Return Array(inner)."""
    return Array(inner)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("arrayRotateLeft", _array_then_integers, _rotate(left=True), count=2),
    scalar.define("arrayRotateRight", _array_then_integers, _rotate(left=False), count=2),
    scalar.custom("arrayShiftLeft", _shift(left=True), count=(2, 3)),
    scalar.custom("arrayShiftRight", _shift(left=False), count=(2, 3)),
    scalar.define(
        "arrayShingles", lambda n, t, a: Array(_array_then_integers(n, t, a)), _shingles, count=2
    ),
    scalar.define("arrayTranspose", _matrix_rule, _transpose),
    scalar.define("arrayFlattenedLength", array_rule(lambda a: UINT64), _flattened_length),
    scalar.define("emptyArrayToSingle", array_rule(same_type), _or_single),
    scalar.custom("arrayUnion", _sets(_array_of, _union), count=(1, None)),
    scalar.custom(
        "arraySymmetricDifference", _sets(_array_of, _symmetric_difference), count=(1, None)
    ),
    scalar.custom("arrayExcept", _difference, count=2),
    scalar.custom("hasSubstr", _sets(lambda inner: UINT8, _has_substr), count=2),
    scalar.custom("arrayJaccardIndex", _sets(lambda inner: FLOAT64, _jaccard), count=2),
    scalar.custom("arrayRemove", _remove, count=2, aliases=("array_remove", "ARRAY_REMOVE")),
    scalar.custom("replicate", _replicate, count=(2, None)),
)

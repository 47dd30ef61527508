"""Functions that cut, extend, flatten and generate arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import ArgumentOutOfBound, BadArguments, NoCommonType, TooLargeArray
from olapdb.functions import scalar
from olapdb.functions.arrays.construction import resolve_array, resolve_concatenation
from olapdb.functions.arrays.type_rules import array_rule, same_type
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.supertypes import NULL_TYPE, common_type
from olapdb.functions.numeric.conditional import plain_lc
from olapdb.types import Array, DataType, Date, DateTime, Float, Integer, Nothing, String, plain
from olapdb.types.arrow_values import from_numpy

_SIZE_MAX = 500_000_000


def _slice(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve arraySlice(a, offset[, length]); a negative offset or length counts from the end. A NULL offset means
    1, a NULL length means all elements from the offset on."""
    container = plain(arguments[0].type)
    if isinstance(container, Nothing):
        return scalar.standard_call(name, arguments, NULL_TYPE, None)
    scalar.require(name, [container], Array, "an Array")
    scalar.require(name, [plain(a.type) for a in arguments[1:]], (Integer, Nothing), "an integer")

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Cut each array. Positions outside it are ignored; an offset of 0 gives an empty array."""
        offsets, elements = columns.elements_of(arrays[0])
        sizes = np.diff(offsets)
        start = _filled(arrays[1], 1)
        begin = np.where(start > 0, start - 1, np.where(start < 0, sizes + start, sizes))
        length = 2 * sizes
        if len(arrays) > 2:
            given = columns.all_valid(arrays[2:], len(arrays[2]))
            length = np.where(True if given is None else given, _filled(arrays[2], 0), length)
        end = np.clip(np.where(length < 0, sizes + length, begin + length), 0, sizes)
        begin = np.clip(begin, 0, sizes)
        counts = np.maximum(end - begin, 0)
        out = columns.offsets_from_counts(counts)
        rows = np.arange(int(out[-1])) + np.repeat(offsets[:-1] + begin - out[:-1], counts)
        return columns.lists_from(out, elements.take(from_numpy(rows)))

    def run(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Cut the arrays; constant arguments give a constant."""
        constant = all(isinstance(value, pa.Scalar) for value in values)
        types = tuple(plain(argument.type) for argument in arguments)
        call = scalar.Invocation(types, container, 1 if constant else rows, environment)
        cut = kernel([columns.as_array(value, call.rows) for value in values], call)
        return cut[0] if constant else cut

    return ScalarCall(name, container, run)


def _filled(array: pa.Array, other: int) -> np.ndarray:
    """Return integers as int64, with NULL replaced by `other`."""
    if pa.types.is_null(array.type):
        return np.full(len(array), other, np.int64)
    if array.null_count:
        array = array.fill_null(pa.scalar(other, array.type))
    return columns.numpy_values(array).astype(np.int64)


def _push(*, back: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of arrayPushBack, or without `back` of arrayPushFront."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call. The value is cast to the common type, as an array of one element, and joined to the
        array."""
        container = plain(arguments[0].type)
        if not isinstance(container, Array | Nothing):
            raise scalar.illegal(name, container, "an Array")
        single_type = Array(plain_lc(arguments[1].type))
        order = (
            [arguments[0], Argument(single_type)] if back else [Argument(single_type), arguments[0]]
        )
        joined = resolve_concatenation(name, order)
        wrap = resolve_array("array", [arguments[1]])

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Add the value at the array's end, or without `back` at its start."""
            single_list = wrap.kernel([values[1]], rows, environment)
            lists = [values[0], single_list] if back else [single_list, values[0]]
            return joined.kernel(lists, rows, environment)

        return ScalarCall(name, joined.type, kernel)

    return resolve


def _pop(*, back: bool) -> scalar.Kernel:
    """Return the kernel of arrayPopBack (arrayPopFront): drop the last (first) element."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Drop one element of each array that is not empty."""
        offsets, elements = columns.elements_of(arrays[0])
        owners, positions = columns.parents_of(offsets), np.arange(len(elements))
        removed = positions == (offsets[owners + 1] - 1 if back else offsets[owners])
        counts = np.maximum(np.diff(offsets) - 1, 0)
        return columns.lists_from(
            columns.offsets_from_counts(counts), elements.filter(from_numpy(~removed))
        )

    return kernel


def _flatten(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Join nested arrays of any depth to one array a row: the kernel of arrayFlatten."""
    array, data_type = arrays[0], call.types[0]
    while isinstance(data_type, Array) and isinstance(data_type.inner, Array):
        outer, lists = columns.elements_of(array)
        inner, elements = columns.elements_of(lists)
        array, data_type = columns.lists_from(inner[outer], elements), data_type.inner
    return array


def _flat_type(array: Array) -> DataType:
    """Return the innermost array type of nested array types."""
    inner: DataType = array
    while isinstance(inner, Array) and isinstance(inner.inner, Array):
        inner = inner.inner
    return inner


def _progressions(start: np.ndarray, step: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return for each row the integers from `start` by `step`, as many as the offsets say, one row behind the other;
    beyond 64 bits they wrap.

    They are the running sum of the steps between neighbours, so that no second array of that length is needed."""
    counts = np.diff(offsets)
    filled = np.flatnonzero(counts)
    first = start[filled]
    last = first + (counts[filled] - 1).astype(step.dtype) * step[filled]
    steps = np.repeat(step, counts)
    steps[offsets[filled]] = first - np.concatenate((np.zeros(1, last.dtype), last))[:-1]
    return np.cumsum(steps, out=steps)


def _range(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve range([start,] end[, step]): integers from `start` (0) by `step` (1), `end`
    excluded.

    Raises NoCommonType.
    """
    types = [plain(a.type) for a in arguments]
    scalar.require(name, types, Integer, "an integer")
    inner = common_type(types)
    if not isinstance(inner, Integer):
        raise NoCommonType(f"{name} takes integers that fit into one type, at most 64 bits wide.")

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Generate each row's array of integers.

        Raises ArgumentOutOfBound if any step is 0, or if all arrays together get too large.
        """
        dtype = np.int64 if inner.signed or inner.bits < 64 else np.uint64
        numbers = [columns.numpy_values(a).astype(dtype) for a in arrays]
        if len(numbers) == 1 and (numbers[0] < 0).any():
            raise ArgumentOutOfBound(
                f"The end of {name} is below 0.", hint="Give its start too: range(-3, 0)."
            )
        start = numbers[0] if len(numbers) > 1 else np.zeros(len(arrays[0]), dtype)
        end = numbers[1] if len(numbers) > 1 else numbers[0]
        step = numbers[2] if len(numbers) > 2 else np.ones(len(arrays[0]), dtype)
        if (step == 0).any():
            raise ArgumentOutOfBound("The step of range must not be 0.")
        counts = _steps(start, end, step)
        total = int(counts.sum(dtype=np.float64))
        most = int(call.environment.setting("function_range_max_elements_in_block", "0"))
        if most and total > most:
            raise ArgumentOutOfBound(
                f"A call of {name} would make {total} elements, more than {most}.",
                hint="The setting function_range_max_elements_in_block says how many it may make.",
            )
        require_list_size(name, counts)
        offsets = columns.offsets_from_counts(counts.astype(np.int64))
        values = _progressions(start, step, offsets)
        return columns.lists_from(offsets, columns.from_values(values, inner.arrow))

    return _without_nulls(scalar.standard_call(name, arguments, Array(inner), kernel))


def _steps(start: np.ndarray, end: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return how many steps, of which none is 0, lie from the start to before the end, uint64; 0 for a step away from
    the end. Distances beyond 63 bits are exact."""
    forth = np.where(step > 0, end > start, end < start)
    low, high, size = (a.view(np.uint64) for a in (start, end, step))
    distance = np.where(step > 0, high - low, low - high)
    size = np.where(step > 0, size, np.uint64(0) - size)
    return np.where(forth, (distance - np.uint64(1)) // size + np.uint64(1), np.uint64(0))


def _without_nulls(call: ScalarCall) -> ScalarCall:
    """Return the call as one that raises BadArguments for a NULL in a row, unless its result is NULL anyway."""
    if not isinstance(call.type, Array):
        return call

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Refuse NULLs, then run the call."""
        if any(columns.single(value).null_count for value in values):
            raise BadArguments(
                f"Illegal (null) value of an argument of {call.name}.",
                hint="ifNull or coalesce gives a number instead.",
            )
        return call.kernel(values, rows, environment)

    return replace(call, kernel=kernel)


def require_list_size(name: str, sizes: np.ndarray) -> None:
    """Raise ArgumentOutOfBound if arrays of these sizes have more than 500 million elements in
    total.

    Sizes below 0 count as 0. The total is a float, which does not wrap.
    """
    elements = float(np.maximum(sizes, 0).sum(dtype=np.float64))
    if elements > _SIZE_MAX:
        raise ArgumentOutOfBound(f"A call to {name} would produce {elements:.0f} array elements.")


_ARRAY_BYTES_MAX = 1_000_000_000
"""The bytes of an array of arrayWithConstant; ClickHouse: max_array_size_in_columns_bytes."""


def _element_bytes(elements: pa.Array) -> float:
    """Return about how many bytes an element takes in ClickHouse: texts and arrays have 8 more than they hold."""
    if not len(elements):
        return 0.0
    if pa.types.is_list(elements.type) or pa.types.is_map(elements.type):
        inner = elements.flatten() if pa.types.is_list(elements.type) else elements.items
        return 8 + _element_bytes(inner) * len(inner) / len(elements)
    if pa.types.is_string(elements.type) or pa.types.is_large_string(elements.type):
        length = pc.sum(pc.binary_length(elements)).as_py() or 0
        return 8 + float(length) / len(elements)
    return float(elements.nbytes) / len(elements)


def _with_constant(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve arrayWithConstant(n, value): an array of n times the value."""
    scalar.require(name, [plain(arguments[0].type)], Integer, "an integer")
    inner = plain_lc(arguments[1].type)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Repeat each value. Raises TooLargeArray for a negative n, and for more than `_ARRAY_BYTES_MAX`."""
        constant = all(isinstance(v, pa.Scalar) for v in values)
        count, elements = (columns.as_array(v, 1 if constant else rows) for v in values)
        counts = columns.numpy_values(count).astype(np.int64)
        if (counts < 0).any():
            raise TooLargeArray(f"The size of {name} cannot be negative, as {counts.min()} is.")
        largest = float(counts.max(initial=0)) * _element_bytes(elements)
        if largest > _ARRAY_BYTES_MAX:
            raise TooLargeArray(
                f"An array of {counts.max()} elements is too large: {largest:.0f} bytes,"
                f" of which {name} makes at most {_ARRAY_BYTES_MAX}."
            )
        require_list_size(name, counts)
        offsets = columns.offsets_from_counts(counts)
        lists = columns.lists_from(offsets, elements.take(from_numpy(columns.parents_of(offsets))))
        return lists[0] if constant else lists

    return ScalarCall(name, Array(inner), kernel)


def _empty_array(inner: DataType) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of emptyArray…() for an element type; its result is a constant."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call, which takes no arguments."""
        return ScalarCall(name, Array(inner), lambda v, r, e: default_value(Array(inner)))

    return resolve


def _resize(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve arrayResize(a, size[, extender]); a negative size extends, or cuts, on the left."""
    container = plain(arguments[0].type)
    if not isinstance(container, Array):
        raise scalar.illegal(name, container, "an Array")
    scalar.require(name, [plain(arguments[1].type)], Integer, "an integer")
    own_type = plain_lc(container.inner)
    inner = own_type if len(arguments) < 3 else common_type([own_type, plain_lc(arguments[2].type)])

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Resize each array; new elements get the extender, or the type's default without one."""
        constant = all(isinstance(v, pa.Scalar) for v in values)
        count = 1 if constant else rows
        lists, sizes_column, *extender = (columns.as_array(v, count) for v in values)
        offsets, elements = columns.elements_of(lists)
        cast_elements = cast_column(elements, container.inner, inner, environment, strict=False)
        if extender:
            filler = cast_column(extender[0], arguments[2].type, inner, environment, strict=False)
        else:
            filler = columns.as_array(default_value(inner), 1)
        sizes = columns.numpy_values(sizes_column).astype(np.int64)
        require_list_size(name, np.abs(sizes.astype(np.float64)))
        resized = _resized(offsets, columns.single(cast_elements), sizes, columns.single(filler))
        return resized[0] if constant else resized

    return ScalarCall(name, Array(inner), kernel)


def _resized(
    offsets: np.ndarray, elements: pa.Array, sizes: np.ndarray, filler: pa.Array
) -> pa.Array:
    """Return the arrays cut or extended to `sizes`; `filler` is one value, or one for each row."""
    out = columns.offsets_from_counts(np.abs(sizes))
    owners = columns.parents_of(out)
    lengths = np.diff(offsets)
    at = np.arange(len(owners)) - out[owners] + np.where(sizes < 0, lengths + sizes, 0)[owners]
    inside = (at >= 0) & (at < lengths[owners])
    fill = len(elements) + (owners if len(filler) > 1 else 0)
    rows = np.where(inside, offsets[:-1][owners] + at, fill)
    return columns.lists_from(out, pa.concat_arrays([elements, filler]).take(from_numpy(rows)))


_EMPTY_ARRAYS: tuple[DataType, ...] = (
    *(Integer(bits, signed) for bits in (8, 16, 32, 64) for signed in (False, True)),
    Float(32),
    Float(64),
    Date(),
    DateTime(),
    String(),
)
"""The element types that have a function emptyArray… of their own."""


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("arraySlice", _slice, count=(2, 3)),
    scalar.custom("arrayPushBack", _push(back=True), count=2),
    scalar.custom("arrayPushFront", _push(back=False), count=2),
    scalar.define("arrayPopBack", array_rule(same_type), _pop(back=True)),
    scalar.define("arrayPopFront", array_rule(same_type), _pop(back=False)),
    scalar.define(
        "arrayFlatten", array_rule(_flat_type), _flatten, aliases=("flatten",), insensitive=True
    ),
    scalar.custom("range", _range, count=(1, 3)),
    scalar.custom("arrayResize", _resize, count=(2, 3)),
    scalar.custom("arrayWithConstant", _with_constant, count=2),
    *(scalar.custom(f"emptyArray{t.name}", _empty_array(t), count=0) for t in _EMPTY_ARRAYS),
)

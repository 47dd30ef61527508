"""Functions of arrays that take a lambda."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalTypeOfArgument, NumberOfArgumentsDoesntMatch, TypeMismatch
from olapdb.functions.arrays.element_access import take_or_default
from olapdb.functions.arrays.lambda_conditions import (
    ListKernel,
    all_true,
    any_true,
    require_condition,
    scalar_kernel,
    true_elements,
)
from olapdb.functions.arrays.lambdas import (
    Body,
    LambdaCall,
    LambdaDefinition,
    elements_of_arrays,
    lambda_over_lists,
)
from olapdb.functions.arrays.nested_equality import rankable_values
from olapdb.functions.arrays.ordering import distinct_neighbours, sorted_positions
from olapdb.functions.arrays.search import ranks_with_null
from olapdb.functions.arrays.type_rules import element_type
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.nested import count_marked, filter_elements
from olapdb.functions.registry import resolve_scalar
from olapdb.functions.scalar import Invocation, Kernel, ScalarDefinition, TypeRule, define, illegal
from olapdb.types import (
    NOTHING,
    UINT8,
    UINT32,
    Array,
    DataType,
    Map,
    Nothing,
    Tuple,
    make_nullable,
    plain,
)
from olapdb.types.arrow_values import from_numpy


def _array_parameters(name: str, types: Sequence[DataType]) -> tuple[DataType, ...]:
    """Return the types of the lambda's parameters: one for each array.

    Raises NumberOfArgumentsDoesntMatch."""
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Function {name} takes a lambda and arrays.")
    return tuple(element_type(name, t) for t in types)


def _fold_parameters(name: str, types: Sequence[DataType]) -> tuple[DataType, ...]:
    """Return the types of the lambda's parameters: the accumulator, then one for each array.

    The last argument is the accumulator's first value. Raises NumberOfArgumentsDoesntMatch."""
    if len(types) < 2:
        raise NumberOfArgumentsDoesntMatch(
            f"Function {name} takes a lambda, one or more arrays, and the accumulator's first value."
        )
    return (types[-1], *(element_type(name, t) for t in types[:-1]))


def _over_arrays(
    name: str, result: Callable[[str, DataType, Sequence[DataType]], DataType], kernel: ListKernel
) -> LambdaDefinition:
    """Define a function of a lambda and arrays whose kernel takes the values of the lambda's body and the arrays.
    `result(name, type of the body, types of the arguments)` gives the result type."""

    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        """Resolve the call for the types of the body and of the arrays."""
        call = ScalarCall(spelt, result(spelt, body, types), scalar_kernel(kernel))
        return lambda_over_lists(
            spelt, body, call, lambda arrays: elements_of_arrays(spelt, arrays)
        )

    return LambdaDefinition(name, _array_parameters, resolve)


def _mapped_type(name: str, body: DataType, types: Sequence[DataType]) -> DataType:
    """Return the type of arrayMap: an array of the body's type, but of Nothing where it is computed from the elements
    of `[]`."""
    of_nothing = any(isinstance(element_type(name, t), Nothing) for t in types)
    return Array(NOTHING if of_nothing and isinstance(plain(body), Nothing) else body)


def _as_function(name: str) -> LambdaDefinition:
    """Define a function `name` for which name(lambda, a) equals name(arrayMap(lambda, a))."""

    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        """Resolve the call: the function of the same name, applied to the array of body values."""
        inner = resolve_scalar(name, [Argument(Array(body))])
        call = ScalarCall(spelt, inner.type, lambda v, rows, e: inner.kernel(v[:1], rows, e))
        return lambda_over_lists(
            spelt, body, call, lambda arrays: elements_of_arrays(spelt, arrays)
        )

    return LambdaDefinition(name, _array_parameters, resolve)


def _conditional(
    name: str, result: Callable[[DataType], DataType], kernel: ListKernel
) -> LambdaDefinition:
    """Define a function of arrays whose lambda must be a condition. `result` maps the element type of the first array
    to the result type."""

    def rule(spelt: str, body: DataType, types: Sequence[DataType]) -> DataType:
        """Return the result's type; raise IllegalTypeOfArgument unless the body is a condition."""
        require_condition(spelt, body)
        return result(element_type(spelt, types[0]))

    return _over_arrays(name, rule, kernel)


def _filter(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
    """Keep the elements of the first array for which the condition is true."""
    keep = true_elements(mapped)
    _, elements = columns.elements_of(arrays[0])
    return filter_elements(offsets, elements, keep)


def _count_true(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
    """Return for each row the number of elements for which the condition is true; UInt32."""
    return columns.from_values(count_marked(offsets, true_elements(mapped)), pa.uint32())


def _match_positions(offsets: np.ndarray, mapped: pa.Array, *, last: bool) -> np.ndarray:
    """Return the position, among all elements, of each row's first (last) element for which the
    condition is true; -1 if it has none."""
    hits = np.flatnonzero(true_elements(mapped))
    owners = columns.parents_of(offsets)[hits]
    positions = np.full(len(offsets) - 1, -1, np.int64)
    if last:
        positions[owners] = hits
    else:
        positions[owners[::-1]] = hits[::-1]
    return positions


def _match(name: str, *, last: bool) -> LambdaDefinition:
    """Define arrayFirst (arrayLast): the first (last) element for which the condition is true, or the default of the
    element type."""

    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        """Resolve the call; raise IllegalTypeOfArgument unless the body is a condition."""
        require_condition(spelt, body)
        inner = element_type(spelt, types[0])

        def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
            """Take each row's first (last) element whose condition is true, or the type's default."""
            _, elements = columns.elements_of(arrays[0])
            return take_or_default(elements, _match_positions(offsets, mapped, last=last), inner)

        call = ScalarCall(spelt, inner, scalar_kernel(kernel))
        return lambda_over_lists(
            spelt, body, call, lambda arrays: elements_of_arrays(spelt, arrays)
        )

    return LambdaDefinition(name, _array_parameters, resolve)


def _match_or_null(*, last: bool) -> ListKernel:
    """Return the kernel of arrayFirstOrNull (arrayLastOrNull), which gives NULL without a match."""

    def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        """Take each row's first (last) element whose condition is true; NULL without one."""
        positions = _match_positions(offsets, mapped, last=last)
        _, elements = columns.elements_of(arrays[0])
        return elements.take(pa.array(positions, mask=positions < 0))

    return kernel


def _match_index(*, last: bool) -> ListKernel:
    """Return the kernel of arrayFirstIndex (arrayLastIndex), from 1, 0 without a match."""

    def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        """Return the index, from 1, of each row's first (last) element whose condition is true; 0 without one."""
        positions = _match_positions(offsets, mapped, last=last)
        indices = np.where(positions < 0, 0, positions - offsets[:-1] + 1)
        return columns.from_values(indices, pa.uint32())

    return kernel


def _nullable_element(inner: DataType) -> DataType:
    """Return the Nullable element type; raise IllegalTypeOfArgument for types that cannot be NULL."""
    if isinstance(plain(inner), Array | Map | Tuple):
        raise IllegalTypeOfArgument(
            f"An element of type {inner} cannot be NULL.", hint="Use arrayFirst or arrayLast."
        )
    return make_nullable(inner)


def _fill(*, reverse: bool) -> ListKernel:
    """Return the kernel of arrayFill (arrayReverseFill).

    It replaces elements for which the condition is false by the nearest earlier (later) element for
    which it is true."""

    def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        """Replace each element whose condition is false by the nearest earlier (later) one whose condition is true;
        without one it stays."""
        _, elements = columns.elements_of(arrays[0])
        keep, positions = true_elements(mapped), np.arange(len(elements))
        nonempty = np.diff(offsets) > 0
        if reverse:
            keep[offsets[1:][nonempty] - 1] = True
            sources = np.where(keep, positions, len(positions))
            sources = np.minimum.accumulate(sources[::-1])[::-1]
        else:
            keep[offsets[:-1][nonempty]] = True
            sources = np.maximum.accumulate(np.where(keep, positions, -1))
        return columns.lists_from(offsets, elements.take(from_numpy(sources)))

    return kernel


def _split(*, reverse: bool) -> ListKernel:
    """Return the kernel of arraySplit (arrayReverseSplit).

    It cuts each array before (after) the elements for which the condition is true."""

    def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        """Cut each row's first array before (after) each element whose condition is true, into an array of arrays."""
        _, elements = columns.elements_of(arrays[0])
        cut = true_elements(mapped)
        if reverse:  # a cut after an element is one before the next element
            cut = np.concatenate((np.zeros(1, bool), cut[:-1])) if len(cut) else cut
        cut[offsets[:-1][np.diff(offsets) > 0]] = True
        starts = np.flatnonzero(cut)
        piece_offsets = np.concatenate((starts, [len(elements)])).astype(np.int64)
        pieces = columns.lists_from(piece_offsets, elements)
        return columns.lists_from(columns.offsets_from_counts(count_marked(offsets, cut)), pieces)

    return kernel


def _sort(*, reverse: bool) -> ListKernel:
    """Return the kernel of arraySort (arrayReverseSort) with a lambda: sort by the lambda's values."""

    def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        """Sort the first array's elements by the lambda's values."""
        _, elements = columns.elements_of(arrays[0])
        order = sorted_positions(offsets, mapped, reverse=reverse)
        return columns.lists_from(offsets, elements.take(from_numpy(order)))

    return kernel


def _compact(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
    """Keep the first of neighbours whose lambda values are equal: the kernel of arrayCompact."""
    _, elements = columns.elements_of(arrays[0])
    ranks = ranks_with_null(rankable_values(mapped))
    return filter_elements(offsets, elements, distinct_neighbours(offsets, ranks))


def _first_array(name: str, body: DataType, types: Sequence[DataType]) -> DataType:
    """Return the type of the first array, as type of the result."""
    return Array(element_type(name, types[0]))


def _fold() -> LambdaDefinition:
    """Define arrayFold((acc, x) -> …, a, first). It evaluates position by position, each time over all rows that are
    long enough."""

    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        """Resolve the call; raise TypeMismatch unless the body has the accumulator's type."""
        if body != types[-1]:
            raise TypeMismatch(
                f"The lambda of function {spelt} gives {body}, but its accumulator begins as {types[-1]}.",
                hint=f"Cast the first value: CAST(…, '{body}').",
            )

        def run(
            values: Sequence[Column], rows: int, environment: Environment, evaluate: Body
        ) -> Column:
            """Fold the arrays position by position and return each row's last accumulator."""
            constant = rows == 1 and all(isinstance(v, pa.Scalar) for v in values)
            *arrays, state = (columns.as_array(v, rows) for v in values)
            elements = elements_of_arrays(spelt, arrays)
            lengths = np.diff(elements.offsets)
            position = 0
            while len(rows_left := np.flatnonzero(lengths > position)):
                at = pa.array(elements.offsets[rows_left] + position)
                accumulators = state.take(from_numpy(rows_left))
                values_at = [column.take(at) for column in elements.columns]
                folded = evaluate([accumulators, *values_at], rows_left)
                state = columns.replaced_rows(state, rows_left, folded)
                position += 1
            return state[0] if constant else state

        return LambdaCall(spelt, body, run)

    return LambdaDefinition("arrayFold", _fold_parameters, resolve)


ARRAY_LAMBDAS: tuple[LambdaDefinition, ...] = (
    _over_arrays(
        "arrayMap",
        _mapped_type,
        lambda offsets, mapped, arrays: columns.lists_from(offsets, mapped),
    ),
    _conditional("arrayFilter", Array, _filter),
    _conditional("arrayCount", lambda inner: UINT32, _count_true),
    _conditional("arrayExists", lambda inner: UINT8, any_true),
    _conditional("arrayAll", lambda inner: UINT8, all_true),
    _match("arrayFirst", last=False),
    _match("arrayLast", last=True),
    _conditional("arrayFirstOrNull", _nullable_element, _match_or_null(last=False)),
    _conditional("arrayLastOrNull", _nullable_element, _match_or_null(last=True)),
    _conditional("arrayFirstIndex", lambda inner: UINT32, _match_index(last=False)),
    _conditional("arrayLastIndex", lambda inner: UINT32, _match_index(last=True)),
    _conditional("arrayFill", Array, _fill(reverse=False)),
    _conditional("arrayReverseFill", Array, _fill(reverse=True)),
    _conditional("arraySplit", lambda inner: Array(Array(inner)), _split(reverse=False)),
    _conditional("arrayReverseSplit", lambda inner: Array(Array(inner)), _split(reverse=True)),
    _over_arrays("arraySort", _first_array, _sort(reverse=False)),
    _over_arrays("arrayReverseSort", _first_array, _sort(reverse=True)),
    _over_arrays("arrayCompact", _first_array, _compact),
    *(
        _as_function(name)
        for name in (
            "arraySum",
            "arrayAvg",
            "arrayMin",
            "arrayMax",
            "arrayProduct",
            "arrayCumSum",
            "arrayCumSumNonNegative",
            "arrayDifference",
        )
    ),
    _fold(),
)


def _without_lambda(kernel: ListKernel) -> Kernel:
    """Return the kernel of arrayCount(a), arrayExists(a), arrayAll(a): elements are conditions."""

    def run(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Call the list kernel with the elements of the array as the condition's values."""
        offsets, elements = columns.elements_of(arrays[0])
        return kernel(offsets, elements, arrays)

    return run


def _condition_rule(result: DataType) -> TypeRule:
    """Return a type rule: `result`, if the elements of the array are conditions."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return `result`; raise IllegalTypeOfArgument unless the elements are conditions."""
        if isinstance(element_type(name, types[0]), Nothing):
            raise illegal(name, types[0], "an Array of conditions")
        require_condition(name, element_type(name, types[0]))
        return result

    return rule


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("arrayCount", _condition_rule(UINT32), _without_lambda(_count_true)),
    define("arrayExists", _condition_rule(UINT8), _without_lambda(any_true)),
    define("arrayAll", _condition_rule(UINT8), _without_lambda(all_true)),
)

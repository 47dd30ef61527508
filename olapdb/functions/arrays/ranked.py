"""arrayEnumerateUniqRanked and arrayEnumerateDenseRanked: numbers of values inside nested arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, SizesOfArraysDoNotMatch, TooFewArguments
from olapdb.functions import scalar
from olapdb.functions.arrays.several_arrays import codes_of, dense_numbers, occurrences
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import UINT32, Array, DataType, Integer, plain
from olapdb.types.arrow_values import from_numpy

Numbering = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(owners, codes) -> the number of each element within its owner."""


@dataclass(frozen=True)
class _Depths:
    """The array arguments, the depth to which each is flattened, and where numbering restarts: `clear` 1: in each
    row; 2: in each element of a row's array, and so on."""

    clear: int
    places: tuple[int, ...]
    depths: tuple[int, ...]

    @property
    def deepest(self) -> int:
        """Return the greatest of the depths, which is that of the result."""
        return max(self.depths)


def _depth_of(data_type: DataType) -> int:
    """Return the number of nested Array levels of the type."""
    depth = 0
    while isinstance(data_type, Array):
        data_type, depth = plain(data_type.inner), depth + 1
    return depth


def _positive(name: str, at: int, argument: Argument) -> int:
    """Return a depth; raise BadArguments unless it is a constant integer above 0."""
    value = argument.constant.as_py() if argument.constant is not None else None
    if not isinstance(plain(argument.type), Integer) or not isinstance(value, int) or value < 1:
        raise BadArguments(
            f"Argument {at + 1} of function {name} must be an Array or a constant depth above 0."
        )
    return value


def _depths(name: str, arguments: Sequence[Argument]) -> _Depths:
    """Return the depths that the arguments [clear,] array [, depth] … give. Raises BadArguments."""
    clear, places, depths, given = 1, [], [], True
    for at, argument in enumerate(arguments):
        depth = _depth_of(plain(argument.type))
        if depth:
            places.append(at)
            depths.append(depth)
            given = False
            continue
        value = _positive(name, at, argument)
        if at == 0:
            clear = value
            continue
        if given:
            raise BadArguments(f"Argument {at + 1} of function {name}: an Array expected.")
        if value > depths[-1]:
            raise BadArguments(f"The array before depth {value} of {name} is {depths[-1]} deep.")
        depths[-1], given = value, True
    if not places:
        raise BadArguments(f"Function {name} takes at least one array.")
    if clear > max(depths):
        raise BadArguments(f"The depth {clear} of {name} is beyond that of all arrays.")
    return _Depths(clear, tuple(places), tuple(depths))


def _levels(
    name: str, arrays: Sequence[pa.Array], depths: Sequence[int]
) -> tuple[list[np.ndarray], list[pa.Array]]:
    """Return the offsets of each depth and the elements of each array at its own depth.

    Raises SizesOfArraysDoNotMatch if the arrays differ in lengths at a common depth."""
    offsets: list[np.ndarray] = []
    elements = []
    for array, depth in zip(arrays, depths, strict=True):
        for level in range(depth):
            own, array = columns.elements_of(array)
            if level == len(offsets):
                offsets.append(own)
            elif not np.array_equal(offsets[level], own):
                raise SizesOfArraysDoNotMatch(f"The arrays given to {name} have different lengths.")
        elements.append(array)
    return offsets, elements


def _resolver(numbering: Numbering) -> scalar.Resolver:
    """Return the resolver of a function that numbers its arrays' values; `numbering` numbers them at the deepest
    level."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call. The result is arrays of UInt32, nested as deep as the deepest argument is flattened."""
        wanted = _depths(name, arguments)
        result: DataType = UINT32
        for _ in range(wanted.deepest):
            result = Array(result)

        def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            """Number the elements of the deepest arrays. An element of a shallower array is repeated
            for each element below it."""
            chosen = [arrays[place] for place in wanted.places]
            offsets, elements = _levels(name, chosen, wanted.depths)
            parents = [columns.parents_of(own) for own in offsets]
            owners = np.arange(int(offsets[-1][-1]))
            above = {wanted.deepest: owners}  # the element at each depth that holds a deepest one
            for depth in range(wanted.deepest, 0, -1):
                owners = parents[depth - 1][owners]
                above[depth - 1] = owners
            spread = [
                part if depth == wanted.deepest else part.take(from_numpy(above[depth]))
                for part, depth in zip(elements, wanted.depths, strict=True)
            ]
            numbers = numbering(above[wanted.clear - 1], codes_of(spread))
            nested = columns.from_values(numbers, pa.uint32())
            for own in reversed(offsets):
                nested = columns.lists_from(own, nested)
            return nested

        return scalar.standard_call(name, arguments, result, kernel)

    return resolve


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = scalar.with_count_errors(
    (
        scalar.custom("arrayEnumerateUniqRanked", _resolver(occurrences), count=(1, None)),
        scalar.custom("arrayEnumerateDenseRanked", _resolver(dense_numbers), count=(1, None)),
    ),
    few=TooFewArguments,
)

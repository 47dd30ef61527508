"""Arrays in a random order and random samples of them: arrayShuffle, arrayRandomSample."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.arrays.type_rules import element_type
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.numeric.random import generator_of
from olapdb.types import Integer, plain
from olapdb.types.arrow_values import from_numpy


def _drawn_order(offsets: np.ndarray, environment: Environment, *call: object) -> np.ndarray:
    """Return the elements' positions: those of each array in a random order, the arrays in their own order. `call`
    identifies the call for the random seed."""
    drawn = generator_of(environment, *call).random(int(offsets[-1]))
    return np.lexsort((drawn, columns.parents_of(offsets)))


def _shuffle(*, partial: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of arrayShuffle(array[, seed]), or with `partial` of
    arrayPartialShuffle(array[, limit[, seed]]), which draws the first `limit` elements alone.

    The generator goes from row to row, with a seed too: equal arrays of two rows are in two orders."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; limit and seed are constants."""
        kind = plain(arguments[0].type)
        element_type(name, kind)
        numbers = [
            scalar.constant_integer(name, arguments, at, "a limit or a seed")
            for at in range(1, len(arguments))
        ]
        limit = numbers[0] if partial and numbers else 0
        seed = numbers[int(partial)] if len(numbers) > int(partial) else None

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Shuffle the elements of each array."""
            array = columns.as_array(values[0], rows)
            offsets, elements = columns.elements_of(array)
            fixed = environment if seed is None else Environment(random_seed=seed + 1)
            order = _drawn_order(offsets, fixed, name)
            if limit > 0:
                places = np.arange(len(order)) - offsets[:-1][columns.parents_of(offsets)]
                chosen = np.zeros(len(order), dtype=bool)
                chosen[order[places < limit]] = True
                rank = np.empty(len(order), dtype=np.int64)
                rank[order] = np.arange(len(order))
                owners = columns.parents_of(offsets)
                order = np.lexsort((np.where(chosen, rank, np.arange(len(order))), ~chosen, owners))
            shuffled = columns.lists_from(offsets, elements.take(from_numpy(order)))
            return shuffled if array.null_count == 0 else array

        return ScalarCall(name, arguments[0].type, kernel, "row")

    return resolve


def _sample(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve arrayRandomSample(array, count): that many elements of each array, in a random order.

    Raises IllegalTypeOfArgument."""
    element_type(name, plain(arguments[0].type))
    number = plain(arguments[1].type)
    if not isinstance(number, Integer) or number.signed:
        raise IllegalTypeOfArgument(f"{name} takes an unsigned integer as the number of samples.")

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Draw `count` elements of each array at random."""
        offsets, elements = columns.elements_of(columns.as_array(values[0], rows))
        wanted = columns.numpy_values(columns.as_array(values[1], rows)).astype(np.int64)
        counts = np.minimum(np.diff(offsets), wanted)
        order = _drawn_order(offsets, environment, name)
        owners = columns.parents_of(offsets)
        places = np.arange(len(order)) - offsets[:-1][owners]
        taken = order[places < counts[owners]]
        return columns.lists_from(
            columns.offsets_from_counts(counts), elements.take(from_numpy(taken))
        )

    return ScalarCall(name, plain(arguments[0].type), kernel, "row")


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("arrayShuffle", _shuffle(partial=False), count=(1, 2), insensitive=True),
    scalar.custom("arrayPartialShuffle", _shuffle(partial=True), count=(1, 3), insensitive=True),
    scalar.custom("arrayRandomSample", _sample, count=2),
)

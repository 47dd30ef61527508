"""The edit distance of two arrays, computed once for each distinct pair; see `by_value`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from olapdb.errors import SizesOfArraysDoNotMatch
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.kernels.supertypes import common_type
from olapdb.functions.scalar import ScalarDefinition, require
from olapdb.types import FLOAT64, UINT32, Array, DataType, Float, Integer


def _edit_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return UInt32 for two arrays whose elements have a common type; raise for others."""
    require(name, types, Array, "an Array")
    common_type([kind.inner for kind in types if isinstance(kind, Array)])
    return UINT32


def edit_distance(left: list[object], right: list[object]) -> int:
    """Return the number of insertions, deletions and replacements that make one list the other.

    Source: Wagner and Fischer, The String-to-String Correction Problem."""
    costs = list(range(len(right) + 1))
    for at, ours in enumerate(left, 1):
        diagonal, costs[0] = costs[0], at
        for place, theirs in enumerate(right, 1):
            replaced = diagonal + (ours != theirs)
            diagonal = costs[place]
            costs[place] = min(replaced, diagonal + 1, costs[place - 1] + 1)
    return costs[-1]


def _weighted_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return Float64 for two arrays of values and two of their weights; raise for others."""
    require(name, types, Array, "an Array")
    left, right, *weights = (kind.inner for kind in types if isinstance(kind, Array))
    common_type([left, right])
    require(name, weights, (Integer, Float), "an Array of numbers as weights")
    return FLOAT64


def _weighted_distance(
    left: list[object], right: list[object], left_weights: list[float], right_weights: list[float]
) -> float:
    """Return the least total weight of the elements to remove and insert to turn one list into the other. Raises
    SizesOfArraysDoNotMatch if a list and its weights differ in length."""
    if len(left) != len(left_weights) or len(right) != len(right_weights):
        raise SizesOfArraysDoNotMatch("Each array has as many weights as elements.")
    costs = [0.0]
    for weight in right_weights:
        costs.append(costs[-1] + weight)
    for ours, lost in zip(left, left_weights, strict=True):
        diagonal = costs[0]
        costs[0] += lost
        for place, (theirs, gained) in enumerate(zip(right, right_weights, strict=True), 1):
            same = diagonal if ours == theirs else math.inf
            diagonal = costs[place]
            costs[place] = min(same, diagonal + lost, costs[place - 1] + gained)
    return costs[-1]


def _similarity(
    left: list[object], right: list[object], left_weights: list[float], right_weights: list[float]
) -> float:
    """Return 1 - weighted distance / total weight of all elements of both arrays."""
    distance = _weighted_distance(left, right, left_weights, right_weights)
    total = math.fsum(left_weights) + math.fsum(right_weights)
    return 1 - distance / total if total else 1.0


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define_by_value("arrayLevenshteinDistance", _edit_rule, edit_distance, count=2),
    define_by_value(
        "arrayLevenshteinDistanceWeighted", _weighted_rule, _weighted_distance, count=4
    ),
    define_by_value("arraySimilarity", _weighted_rule, _similarity, count=4),
)

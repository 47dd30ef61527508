"""The edit distance of two arrays, computed once for each distinct pair; see `by_value`."""

from __future__ import annotations

from collections.abc import Sequence

from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.kernels.supertypes import common_type
from olapdb.functions.scalar import ScalarDefinition, require
from olapdb.types import UINT32, Array, DataType


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


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define_by_value("arrayLevenshteinDistance", _edit_rule, edit_distance, count=2),
)

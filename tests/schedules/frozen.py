"""The keys of a target that are frozen since rows left by retention: bounds of its sorting key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from tests.schedules.shapes import Row, TableShape

Box: TypeAlias = tuple[tuple[Any, Any], ...]
"""The least and the greatest value of each item of the key."""
Frozen: TypeAlias = Mapping[str | None, Box | None]
"""The frozen keys (None: all) by partition of the target (None: any)."""


def bounds(shape: TableShape, rows: Iterable[Row]) -> Box | None:
    """Return the bounds of the rows' keys; None without rows."""
    keys = [key_of(shape, row) for row in rows]
    return tuple((min(items), max(items)) for items in zip(*keys, strict=True)) if keys else None


def key_of(shape: TableShape, row: Row) -> Row:
    """Return the row's sorting key."""
    return tuple(row[at] for at in shape.sorted_by)


def joined(left: Frozen, right: Frozen) -> Frozen:
    """Return the narrowest bounds around both, by partition."""
    return {
        **left,
        **right,
        **{one: _around(left[one], right[one]) for one in left.keys() & right.keys()},
    }


def _around(left: Box | None, right: Box | None) -> Box | None:
    if left is None or right is None:
        return None
    return tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(left, right, strict=True))


def holds(several: Iterable[Frozen], slice_: str, key: Row | None = None) -> bool:
    """Return whether the key is frozen in this partition; without a key, whether every key is."""
    return any(
        box is None
        or (key is not None and all(a <= x <= b for (a, b), x in zip(box, key, strict=True)))
        for one in several
        for partition, box in one.items()
        if partition in (None, slice_)
    )

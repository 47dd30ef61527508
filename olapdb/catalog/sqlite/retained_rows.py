"""Ledger rows about rows removed by retention: their JSON text, and how two rows are merged into
one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from olapdb.model.part import BlockRange
from olapdb.model.view_state import FrozenVerdict, KeyBounds, Retained, RetainedSlice

_VERDICTS: tuple[FrozenVerdict, ...] = ("proven", "covered", "stale", "different")


def encode_retained(retained: Retained) -> str:
    """Return the JSON text of a ledger row."""
    body = {name: getattr(retained, name) for name in retained.__dataclass_fields__}
    body["blocks"] = [retained.blocks.first, retained.blocks.last]
    body["slices"] = [
        [
            s.partition,
            s.rows,
            s.verdict,
            None if s.bounds is None else [s.bounds.low, s.bounds.high, s.bounds.nulls],
        ]
        for s in retained.slices
    ]
    return json.dumps(body, separators=(",", ":"))


def decode_retained(body: str) -> Retained:
    """Parse the text of `encode_retained`."""
    facts: dict[str, Any] = json.loads(body)
    facts["blocks"] = BlockRange(*facts["blocks"])
    facts["slices"] = tuple(
        RetainedSlice(
            partition,
            rows,
            None if bounds is None else KeyBounds(*(tuple(one) for one in bounds)),
            verdict,
        )
        for partition, rows, verdict, bounds in facts["slices"]
    )
    return Retained(**facts)


def widened(known: Retained, more: Retained) -> Retained:
    """Merge two ledger rows: sum the counts, join the slices; the older start, the newer cause."""
    return replace(
        more,
        rows=known.rows + more.rows,
        bytes=known.bytes + more.bytes,
        parts=known.parts + more.parts,
        blocks=BlockRange(
            min(known.blocks.first, more.blocks.first), max(known.blocks.last, more.blocks.last)
        ),
        slices=_joined_slices((*known.slices, *more.slices)),
        since_ms=known.since_ms,
    )


def released(known: Retained, target_partition: str | None) -> Retained | None:
    """Return the row without the slice; None if no slice remains."""
    if target_partition is None:
        return None
    remaining = tuple(s for s in known.slices if s.partition != target_partition)
    if len(remaining) == len(known.slices):
        return known
    return replace(known, slices=remaining) if remaining else None


def _joined_slices(slices: Iterable[RetainedSlice]) -> tuple[RetainedSlice, ...]:
    joined: dict[str | None, RetainedSlice] = {}
    for added in slices:
        known = joined.get(added.partition)
        joined[added.partition] = (
            added
            if known is None
            else RetainedSlice(
                added.partition,
                known.rows + added.rows,
                _hull(known.bounds, added.bounds),
                max(known.verdict, added.verdict, key=_VERDICTS.index),
            )
        )
    return tuple(joined.values())


def _hull(left: KeyBounds | None, right: KeyBounds | None) -> KeyBounds | None:
    return None if left is None or right is None else left.joined(right)

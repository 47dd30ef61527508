"""Rows of the ledger about what left by retention: as text, and how two of them become one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from olapdb.model.part import BlockRange
from olapdb.model.view_state import FrozenVerdict, KeyBounds, Retained, RetainedSlice

_VERDICTS: tuple[FrozenVerdict, ...] = ("proven", "covered", "stale", "different")


def encode_retained(one: Retained) -> str:
    body = {name: getattr(one, name) for name in one.__dataclass_fields__}
    body["blocks"] = [one.blocks.first, one.blocks.last]
    body["slices"] = [
        [
            s.partition,
            s.rows,
            s.verdict,
            None if s.bounds is None else [s.bounds.low, s.bounds.high, s.bounds.nulls],
        ]
        for s in one.slices
    ]
    return json.dumps(body, separators=(",", ":"))


def decode_retained(body: str) -> Retained:
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
    """Both as one: the older one's start, the newer one's cause."""
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
    """Without the slice; None where nothing is left to say."""
    if target_partition is None:
        return None
    left = tuple(s for s in known.slices if s.partition != target_partition)
    if len(left) == len(known.slices):
        return known
    return replace(known, slices=left) if left else None


def _joined_slices(slices: Iterable[RetainedSlice]) -> tuple[RetainedSlice, ...]:
    found: dict[str | None, RetainedSlice] = {}
    for one in slices:
        have = found.get(one.partition)
        found[one.partition] = (
            one
            if have is None
            else RetainedSlice(
                one.partition,
                have.rows + one.rows,
                _hull(have.bounds, one.bounds),
                max(have.verdict, one.verdict, key=_VERDICTS.index),
            )
        )
    return tuple(found.values())


def _hull(left: KeyBounds | None, right: KeyBounds | None) -> KeyBounds | None:
    return None if left is None or right is None else left.joined(right)

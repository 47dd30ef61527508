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
            None if bounds is None else KeyBounds(*(tuple(bound) for bound in bounds)),
            verdict,
        )
        for partition, rows, verdict, bounds in facts["slices"]
    )
    return Retained(**facts)


def joined_entry(older: Retained, newer: Retained) -> Retained:
    """Merge two ledger rows: add up the counts, join the slices, keep the older row's start and the
    newer row's cause."""
    return replace(
        newer,
        rows=older.rows + newer.rows,
        bytes=older.bytes + newer.bytes,
        parts=older.parts + newer.parts,
        blocks=BlockRange(
            min(older.blocks.first, newer.blocks.first), max(older.blocks.last, newer.blocks.last)
        ),
        slices=_joined_slices((*older.slices, *newer.slices)),
        since_ms=older.since_ms,
    )


def without_partition(retained: Retained, target_partition: str | None) -> Retained | None:
    """Return the row without the slices of the target partition; None if no slice remains or the
    partition is None, which means all."""
    if target_partition is None:
        return None
    remaining = tuple(s for s in retained.slices if s.partition != target_partition)
    if len(remaining) == len(retained.slices):
        return retained
    return replace(retained, slices=remaining) if remaining else None


def _joined_slices(slices: Iterable[RetainedSlice]) -> tuple[RetainedSlice, ...]:
    """Return one slice for each target partition: rows added up, bounds widened, the worse
    verdict."""
    joined: dict[str | None, RetainedSlice] = {}
    for added in slices:
        known = joined.get(added.partition)
        joined[added.partition] = (
            added
            if known is None
            else RetainedSlice(
                added.partition,
                known.rows + added.rows,
                _enclosing_bounds(known.bounds, added.bounds),
                max(known.verdict, added.verdict, key=_VERDICTS.index),
            )
        )
    return tuple(joined.values())


def _enclosing_bounds(first: KeyBounds | None, second: KeyBounds | None) -> KeyBounds | None:
    """Return bounds around both; None (unknown) if either is None."""
    return None if first is None or second is None else first.joined(second)

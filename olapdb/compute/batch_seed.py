"""Seeds of random functions: each batch draws other numbers, each expression over it the same."""

from __future__ import annotations

import itertools
import weakref

import pyarrow as pa

_numbers = itertools.count(1)
_known: dict[int, tuple[weakref.ref[pa.RecordBatch], int]] = {}
"""By the id of a batch that is alive: it, and its number."""


def seed_of(batch: pa.RecordBatch, seed: int) -> int:
    """Return a positive seed for random functions over this batch in a query with `seed`. Each call
    returns the same, so that `rand() AS a, a` are equal; every other batch has another seed."""
    key = id(batch)
    entry = _known.get(key)
    if entry is None or entry[0]() is not batch:
        number = next(_numbers)
        _known[key] = entry = (weakref.ref(batch, lambda ended: _forget(key, ended)), number)
    return (seed * 0x9E3779B97F4A7C15 + entry[1]) % (2**63 - 1) + 1


def _forget(key: int, ended: weakref.ref[pa.RecordBatch]) -> None:
    """Delete the entry of a batch that was garbage-collected."""
    entry = _known.get(key)
    if entry is not None and entry[0] is ended:
        del _known[key]

"""Seeds of random functions: each batch draws other numbers, each expression over it the same."""

from __future__ import annotations

import itertools
import weakref

import pyarrow as pa

_numbers = itertools.count(1)
_known: dict[int, tuple[weakref.ref[pa.RecordBatch], int]] = {}
"""By the id of a batch that is alive: it, and its number."""


def seed_of(batch: pa.RecordBatch, seed: int) -> int:
    """Return the seed, positive, for random functions over this very batch in a query of `seed`: the
    same at each call, so that `rand() AS a, a` are equal, and another one for any other batch."""
    key = id(batch)
    known = _known.get(key)
    if known is None or known[0]() is not batch:
        number = next(_numbers)
        _known[key] = known = (weakref.ref(batch, lambda ended: _forget(key, ended)), number)
    return (seed * 0x9E3779B97F4A7C15 + known[1]) % (2**63 - 1) + 1


def _forget(key: int, ended: weakref.ref[pa.RecordBatch]) -> None:
    """Delete the entry of a batch that was freed, if the key is still that batch's."""
    known = _known.get(key)
    if known is not None and known[0] is ended:
        del _known[key]

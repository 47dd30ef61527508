"""Pruning by filters of words and n-grams: which blocks may hold a text that a condition asks for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.strings.tokenizers import like_fragments
from olapdb.model.schema import SkipIndex
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression, InValues
from olapdb.storage.skip_indexes import bloom_contains
from olapdb.storage.text_filters import hashes_of_fragment, hashes_of_whole


def may_have_text(index: SkipIndex, batch: pa.RecordBatch, condition: Expression) -> np.ndarray:
    """Return a mask of the blocks that may hold a text for which the condition is true. All blocks
    stay for a condition that the filter cannot judge."""
    alternatives = _alternatives(index, condition)
    if alternatives is None or any(not len(hashes) for hashes in alternatives):
        return np.ones(batch.num_rows, bool)
    keep = np.zeros(batch.num_rows, bool)
    for hashes in alternatives:
        keep |= bloom_contains(batch, hashes, all_of_them=True)
    return keep


def _alternatives(index: SkipIndex, condition: Expression) -> Sequence[np.ndarray] | None:
    """Return the sets of hashes of which a matching text has at least one whole set; None if the
    condition tells nothing."""
    match condition:
        case Call(name="equals" | "has", arguments=(left, right)):
            text = _text(right if isinstance(left, ColumnRef) else left)
            return None if text is None else [hashes_of_whole(index, text)]
        case Call(name="hasToken" | "hasTokenOrNull", arguments=(ColumnRef(), word)):
            text = _text(word)
            return None if text is None else [hashes_of_whole(index, text)]
        case Call(name="startsWith" | "endsWith" as name, arguments=(ColumnRef(), fragment)):
            text = _text(fragment)
            starts = name == "startsWith"
            return (
                None
                if text is None
                else [hashes_of_fragment(index, text, from_start=starts, to_end=not starts)]
            )
        case Call(name="like", arguments=(ColumnRef(), pattern)):
            text = _text(pattern)
            return None if text is None else [_of_pattern(index, text)]
        case InValues(argument=ColumnRef(), values=values, negated=False):
            if pa.types.is_string(values.type):
                values = values.cast(pa.binary())
            texts = [_bytes(value) for value in values.to_pylist() if value is not None]
            known = [text for text in texts if text is not None]
            return [hashes_of_whole(index, t) for t in known] if len(known) == len(texts) else None
    return None


def _of_pattern(index: SkipIndex, pattern: bytes) -> np.ndarray:
    """Return the hashes that each text which is LIKE the pattern has in a filter."""
    hashes = [np.empty(0, np.uint64)]
    for fragment, from_start, to_end in like_fragments(pattern):
        hashes.append(hashes_of_fragment(index, fragment, from_start=from_start, to_end=to_end))
    return np.unique(np.concatenate(hashes))


def _text(expression: Expression) -> bytes | None:
    """Return the bytes of a constant text; None for anything else."""
    if not isinstance(expression, Constant) or not expression.value.is_valid:
        return None
    value = expression.value
    if pa.types.is_string(value.type):
        value = value.cast(pa.binary())  # as_py() of a text that is not UTF-8 raises
    return _bytes(value.as_py())


def _bytes(value: object) -> bytes | None:
    """Return a text as bytes; None for another value."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    return value if isinstance(value, bytes) else None

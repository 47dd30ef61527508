"""The text index of a part: which granules each token lies in.

    tokens     all distinct tokens of the part's texts, sorted; binary
    granules   for each the numbers of the row groups that have it; null for all of them

The schema's metadata say how many row groups there are.  The tokens are stored as they are, so that
a part of a word can be looked for among them.  Rows that are NULL, and texts without tokens, are not
in the index.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.kernels import columns
from olapdb.functions.strings.tokenizers import Tokenizer
from olapdb.types.arrow_values import from_numpy

_GRANULES = b"olapdb.granules"


def texts_type(arrow: pa.DataType) -> pa.DataType:
    """Return the type under which a text index takes texts, or arrays of texts, of type `arrow`."""
    return pa.list_(pa.binary()) if pa.types.is_list(arrow) else pa.binary()


def is_text_index(batch: pa.RecordBatch) -> bool:
    """Return whether a stored index is one of texts."""
    return batch.schema.metadata is not None and _GRANULES in batch.schema.metadata


def blocks_of(batch: pa.RecordBatch) -> int:
    """Return the number of blocks of a stored index: rows, or the row groups of a text index."""
    return int(batch.schema.metadata[_GRANULES]) if is_text_index(batch) else int(batch.num_rows)


def text_index(texts: pa.Array, tokenizer: Tokenizer, granule_rows: int) -> pa.RecordBatch:
    """Return the index of a part's texts (or arrays of texts) in the part's order; see
    `texts_type`."""
    starts = range(0, len(texts), granule_rows)
    granule_tokens = [
        _distinct_tokens(texts.slice(start, granule_rows), tokenizer) for start in starts
    ]
    granule_of = np.repeat(
        np.arange(len(granule_tokens)), [len(tokens) for tokens in granule_tokens]
    )
    encoded = pa.concat_arrays([*granule_tokens, pa.nulls(0, pa.binary())]).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    ranks = np.empty(len(order), np.int64)
    ranks[columns.numpy_values(order)] = np.arange(len(order))
    rank_of = ranks[columns.numpy_values(encoded.indices)]
    by_rank = np.argsort(rank_of, kind="stable")  # granules stay in order
    counts = np.bincount(rank_of, minlength=len(order))
    everywhere = counts == len(granule_tokens)
    kept = ~everywhere[rank_of[by_rank]]
    offsets = columns.offsets_from_counts(np.where(everywhere, 0, counts))
    granules = pa.array(granule_of[by_rank][kept].astype(np.uint32))
    return pa.record_batch(
        {
            "tokens": encoded.dictionary.take(order),
            "granules": columns.lists_from(offsets, granules, ~everywhere),
        }
    ).replace_schema_metadata({_GRANULES: str(len(granule_tokens))})


def _distinct_tokens(texts: pa.Array, tokenizer: Tokenizer) -> pa.Array:
    """Return the distinct tokens of the texts, in any order."""
    if pa.types.is_list(texts.type):
        texts = pc.list_flatten(texts)
    return pc.unique(tokenizer.of_array(pc.unique(texts).drop_null())[1])


class TokenGranules:
    """A text index, to look up in which granules tokens lie; masks are bool, shape (granules,)."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.tokens = batch.column("tokens")
        self._lists = batch.column("granules")
        self.count = blocks_of(batch)

    def of_all(self, tokens: Iterable[bytes]) -> np.ndarray:
        """Return a mask of the granules that have all of these tokens."""
        keep = np.ones(self.count, bool)
        for token in tokens:
            place = self._place(token)
            keep &= self._at(np.array([] if place is None else [place], np.int64))
        return keep

    def of_any(self, tokens: Iterable[bytes]) -> np.ndarray:
        """Return a mask of the granules that have any of these tokens."""
        keep = np.zeros(self.count, bool)
        for token in tokens:
            keep |= self.of_all([token])
        return keep

    def of_marked(self, marked: pa.Array) -> np.ndarray:
        """Return a mask of the granules that have any of the tokens marked in a boolean array."""
        return self._at(np.flatnonzero(columns.numpy_values(pc.fill_null(marked, False))))

    def _place(self, token: bytes) -> int | None:
        """Return the place of a token, found by bisection; None if no text has it."""
        low, high = 0, len(self.tokens)
        while low < high:
            middle = (low + high) // 2
            if self.tokens[middle].as_py() < token:
                low = middle + 1
            else:
                high = middle
        if low < len(self.tokens) and self.tokens[low].as_py() == token:
            return low
        return None

    def _at(self, places: np.ndarray) -> np.ndarray:
        """Return a mask of the granules of the tokens at these places."""
        lists = self._lists.take(from_numpy(places))
        if lists.null_count:
            return np.ones(self.count, bool)
        keep = np.zeros(self.count, bool)
        keep[columns.numpy_values(pc.list_flatten(lists))] = True
        return keep

"""Text columns in the code domain: one dictionary for a column of a part file, and codes for each row group.

The column cache keeps both.  They are made from the values that the cache has of all row groups, so
never by the first read of a column, which reads no more than it needs.  Codes are numbered by first
appearance in the file: a dictionary that was evicted and made again has the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.config import tuning
from olapdb.storage.column_cache import ChunkKey, StoreColumns
from olapdb.storage.column_chunks import may_be_joined, split_column

_DICTIONARY = -1
"""The row group of the key of a dictionary."""

_SAMPLE_ROWS = 1 << 16
_SAMPLE_TEXTS_MAX = _SAMPLE_ROWS * 3 // 4
"""Texts that the first rows of a column may have; with more, not all rows are looked at."""


def shared_column(
    columns: StoreColumns, path: str, column_id: int, groups: Sequence[int]
) -> pa.DictionaryArray | None:
    """Return row groups of a text column as codes of the file's dictionary, joined; None if the
    cache lacks some. All results have the same dictionary while it stays in the cache."""
    file = columns.file(path)
    if not columns.shared.has(file, _dictionary_key(column_id)):
        return None
    codes = columns.shared.joined(file, _codes_key(column_id, groups[0]), len(groups))
    if codes is not None and groups[-1] - groups[0] == len(groups) - 1:
        (dictionary,) = columns.shared.get(file, [_dictionary_key(column_id)])
        if dictionary is not None and not pa.types.is_null(dictionary.type):
            return pa.DictionaryArray.from_arrays(codes, dictionary, safe=False)
    keys = [_codes_key(column_id, group) for group in groups]
    if not columns.shared.has(file, *keys):
        return None
    (dictionary,) = columns.shared.get(file, [_dictionary_key(column_id)])
    if dictionary is None or pa.types.is_null(dictionary.type):
        return None
    chunks = [codes for codes in columns.shared.get(file, keys) if codes is not None]
    if len(chunks) != len(keys):  # evicted in between
        return None
    if may_be_joined(chunks):
        codes = columns.shared.join(file, keys, chunks)
    else:
        codes = pa.concat_arrays(chunks)
    return pa.DictionaryArray.from_arrays(codes, dictionary, safe=False)


def share_codes(columns: StoreColumns, path: str, column_id: int, sizes: Sequence[int]) -> None:
    """Make the dictionary and codes of a column, if the cache has all of its row groups, of `sizes`
    rows, and its texts repeat. Does nothing for a column that was looked at before."""
    rows = sum(sizes)
    file, cache, making = columns.file(path), columns.shared, (path, column_id)
    if rows < tuning.SHARED_DICTIONARY_ROWS_MIN or making in columns.making:
        return
    if cache.has(file, _dictionary_key(column_id)):
        return
    chunks = None
    for coded in (False, True):
        keys = [ChunkKey(column_id, group, coded) for group in range(len(sizes))]
        if chunks is None and cache.has(file, *keys):
            chunks = cache.get(file, keys)
    if chunks is None or any(chunk is None for chunk in chunks):
        return
    columns.making.add(making)
    try:
        encoded = _encoded([chunk for chunk in chunks if chunk is not None])
        dictionary = pa.nulls(0) if encoded is None else encoded.chunk(0).dictionary
        if dictionary.nbytes > cache.entry_bytes_max:
            encoded, dictionary = None, pa.nulls(0)
        if encoded is not None:
            codes = pa.chunked_array([chunk.indices for chunk in encoded.chunks], pa.int32())
            for group, values in enumerate(split_column(codes, sizes)):
                cache.put(file, _codes_key(column_id, group), values)
        cache.put(file, _dictionary_key(column_id), dictionary)
    finally:
        columns.making.discard(making)


def is_dictionary(key: ChunkKey) -> bool:
    """Return whether the entry of this key is the dictionary of a file's column, not a row group."""
    return key.row_group == _DICTIONARY


def _encoded(chunks: Sequence[pa.Array]) -> pa.ChunkedArray | None:
    """Return the texts with one dictionary for all; None where they do not repeat enough."""
    plain = pa.chunked_array(
        [c.dictionary_decode() if isinstance(c, pa.DictionaryArray) else c for c in chunks]
    )
    sample = plain.slice(0, _SAMPLE_ROWS)
    if len(plain) > len(sample) and len(sample.unique()) > _SAMPLE_TEXTS_MAX:
        return None
    encoded = plain.dictionary_encode()
    texts = len(encoded.chunk(0).dictionary)
    return None if texts * tuning.SHARED_DICTIONARY_ROWS_PER_TEXT_MIN > len(plain) else encoded


def _dictionary_key(column_id: int) -> ChunkKey:
    """Return the key of the dictionary of a column."""
    return ChunkKey(column_id, _DICTIONARY, True, True)


def _codes_key(column_id: int, group: int) -> ChunkKey:
    """Return the key of the codes of a row group."""
    return ChunkKey(column_id, group, True, True)

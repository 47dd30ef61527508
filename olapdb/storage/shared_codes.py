"""Columns in the code domain: one dictionary for a column of a part file, and codes for each row group.

The column cache keeps both, of texts and of wide integers.  They are made from the values that the cache has of all
row groups, so never by the first read of a column, which reads no more than it needs.  Codes are numbered by first
appearance in the file: a dictionary that was evicted and made again has the same numbers.

Queries that read several files take the codes of one dictionary for all (`JointDictionary`): equal values have equal
codes then, and what is computed of a text is computed once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.config import tuning
from olapdb.records import dataclass
from olapdb.storage.cache import PartCache
from olapdb.storage.column_cache import ChunkKey, StoreColumns
from olapdb.storage.column_chunks import are_one_array, may_be_joined, split_column
from olapdb.types import DataType, Integer, String, plain

_DICTIONARY = -1
"""The row group of the key of a dictionary."""

_SAMPLE_ROWS = 1 << 16
_SAMPLE_TEXTS_MAX = _SAMPLE_ROWS * 3 // 4
"""Values that the first rows of a column may have; with more, not all rows are looked at."""

_CODED_BITS_MIN = 32
"""Integers of fewer bits have few values: tables find them as they are."""

_JOINT_FILES_MAX = 64
_ASKED = object()
"""What the cache has in place of a joint dictionary that was asked for once."""
_REFUSED = object()
"""What the cache has in place of a joint dictionary that would be too large, or of several types."""
_MARK_BYTES, _MARK_BYTES_PER_FILE = 512, 128
"""What a mark in place of a joint dictionary takes, counted as bytes: its key, with the paths of the files."""


def may_have_codes(data_type: DataType) -> bool:
    """Return whether columns of a type may have a dictionary: of texts, and of wide integers."""
    kind = plain(data_type)
    return isinstance(kind, String) or has_number_codes(data_type)


def has_number_codes(data_type: DataType) -> bool:
    """Return whether columns of a type are integers that may have a dictionary."""
    kind = plain(data_type)
    if not isinstance(kind, Integer) or not pa.types.is_integer(kind.arrow):
        return False
    return int(kind.arrow.bit_width) >= _CODED_BITS_MIN


@dataclass(frozen=True, eq=False)
class JointDictionary:
    """One dictionary for a column of several files: the values of theirs, each once.

    `places` has by the path of a file its own dictionary, and the positions of its values in `values`; None for
    the first file, whose values come first."""

    values: pa.Array
    places: Mapping[str, tuple[pa.Array, pa.Array | None]]

    @property
    def nbytes(self) -> int:
        """Return the bytes of the dictionary and the positions."""
        positions = (p.nbytes for _, p in self.places.values() if p is not None)
        return int(self.values.nbytes + sum(positions))

    def is_of(self, dictionaries: Mapping[str, pa.Array]) -> bool:
        """Return whether the dictionary of each file it was made of is still the same array in memory."""
        return all(are_one_array(own, dictionaries[path]) for path, (own, _) in self.places.items())

    def translated(self, path: str, column: pa.Array) -> pa.Array:
        """Return a column of a file as codes of this dictionary; unchanged if it has another dictionary than the
        file's, or none."""
        own, positions = self.places.get(path, (None, None))
        if own is None or not isinstance(column, pa.DictionaryArray):
            return column
        if not are_one_array(column.dictionary, own):
            return column
        codes = column.indices
        if positions is not None:
            codes = pc.take(positions, codes, boundscheck=False)
        return pa.DictionaryArray.from_arrays(codes, self.values, safe=False)


def joint_dictionary(
    cache: PartCache, paths: Sequence[str], column_id: int
) -> JointDictionary | None:
    """Return one dictionary for those of these files that have one for a column. None if fewer than two have, and
    when it is asked for the first time: a query over the same files may not come again."""
    dictionaries = _dictionaries(cache.columns, paths, column_id)
    if not 1 < len(dictionaries) <= _JOINT_FILES_MAX:
        return None
    if max(map(len, dictionaries.values())) < tuning.JOINT_VALUES_MIN:
        return None
    paths = tuple(dictionaries)
    key: Hashable = (column_id, *paths)
    known = cache.joints.get(key)
    if isinstance(known, JointDictionary) and known.is_of(dictionaries):
        return known
    mark_bytes = _MARK_BYTES + _MARK_BYTES_PER_FILE * len(dictionaries)
    if known is None:
        cache.joints.put_of(paths, key, _ASKED, mark_bytes)
    if known is None or known is _REFUSED:
        return None
    joint = _joint(dictionaries)
    if joint is None or joint.nbytes > min(
        cache.columns.shared.entry_bytes_max, cache.joints.weight_max
    ):
        cache.joints.put_of(paths, key, _REFUSED, mark_bytes)
        return None
    cache.joints.put_of(paths, key, joint, joint.nbytes)
    return joint


def _dictionaries(
    columns: StoreColumns, paths: Sequence[str], column_id: int
) -> dict[str, pa.Array]:
    """Return the dictionaries that files have for a column, by the path."""
    key, dictionaries = _dictionary_key(column_id), {}
    for path in paths:
        file = columns.file(path)
        if columns.shared.has(file, key):
            (dictionary,) = columns.shared.get(file, [key])
            if dictionary is not None and not pa.types.is_null(dictionary.type):
                dictionaries[path] = dictionary
    return dictionaries


def _joint(dictionaries: Mapping[str, pa.Array]) -> JointDictionary | None:
    """Return one dictionary for all; None where they differ in type."""
    arrays = list(dictionaries.values())
    if len({array.type for array in arrays}) > 1:
        return None
    encoded = pa.chunked_array(arrays).dictionary_encode()
    positions = [None, *(chunk.indices for chunk in encoded.chunks[1:])]
    places = dict(zip(dictionaries, zip(arrays, positions, strict=True), strict=True))
    return JointDictionary(encoded.chunk(0).dictionary, places)


def shared_column(
    columns: StoreColumns, path: str, column_id: int, groups: Sequence[int]
) -> pa.DictionaryArray | None:
    """Return row groups of a column as codes of the file's dictionary, joined; None if the
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
    rows, and its values repeat. Does nothing for a column that was looked at before."""
    rows = sum(sizes)
    file, cache, making = columns.file(path), columns.shared, (path, column_id)
    if rows < tuning.SHARED_DICTIONARY_ROWS_MIN or making in columns.making:
        return
    if cache.has(file, _dictionary_key(column_id)):
        return
    chunks = None
    for coded in (False, True):
        if chunks is not None or not cache.has(file, ChunkKey(column_id, 0, coded)):
            continue
        keys = [ChunkKey(column_id, group, coded) for group in range(len(sizes))]
        if cache.has(file, *keys):
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
    """Return the values with one dictionary for all; None where they do not repeat enough, and for integers that lie
    so near to each other that a table finds them."""
    values = pa.chunked_array(
        [c.dictionary_decode() if isinstance(c, pa.DictionaryArray) else c for c in chunks]
    )
    if pa.types.is_integer(values.type):
        ends = pc.min_max(values)
        low, high = ends["min"].as_py(), ends["max"].as_py()
        if low is None or high - low < tuning.CODED_SPAN_MIN:
            return None
    sample = values.slice(0, _SAMPLE_ROWS)
    if len(values) > len(sample) and len(sample.unique()) > _SAMPLE_TEXTS_MAX:
        return None
    encoded = values.dictionary_encode()
    distinct = len(encoded.chunk(0).dictionary)
    return None if distinct * tuning.SHARED_DICTIONARY_ROWS_PER_TEXT_MIN > len(values) else encoded


def _dictionary_key(column_id: int) -> ChunkKey:
    """Return the key of the dictionary of a column."""
    return ChunkKey(column_id, _DICTIONARY, True, True)


def _codes_key(column_id: int, group: int) -> ChunkKey:
    """Return the key of the codes of a row group."""
    return ChunkKey(column_id, group, True, True)

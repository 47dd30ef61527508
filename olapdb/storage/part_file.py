"""The file of a part: its footer and its columns, taken from the caches or read and verified.

A column is read in row groups.  Those that the column cache lacks are decoded by kernels, or by Arrow where no kernel
knows the pages, and kept there.  Values have the types that the file names; `reader.py` gives them the table's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from olapdb.errors import OperationalError, SnapshotTooOld
from olapdb.model.part import Part
from olapdb.storage.checksum import indicates_damage, mismatch, unreadable, verify_open
from olapdb.storage.column_cache import ChunkKey
from olapdb.storage.column_chunks import cut_array, may_be_joined, neighbours, split_column
from olapdb.storage.page_decoder import PageSource, column_pages, decode_pages, runs_in_windows
from olapdb.storage.part_footer import FileColumn, PartFooter, file_columns
from olapdb.storage.shared_codes import share_codes, shared_column
from olapdb.storage.store import Store
from olapdb.storage.stored_values import as_named, compact_form

_FORMS = ((False, False), (True, False), (True, True))
"""`coded` and `shared` of the forms that the cache may have of a column."""

CODED_ROW_BYTES_MAX = 10
"""Read texts as dictionaries where the file has at most so many bytes for a row, of codes and dictionary: Arrow hashes
each text of each dictionary. A first GROUP BY of 3,000,000 texts of 41 bytes, 35,000 in a row group of 65,536, took
322 ms instead of 483 ms."""

_DECODED_BYTES = 1 << 22
"""Decode row groups together up to so many bytes, without compression. The buffers of a step are used again for the
next one; those of all row groups are memory that the process never used, which the system gives out slowly, and which is
copied to cut it into row groups. A first LIKE over texts of 200 MB took 159 ms instead of 174 ms."""


class PartFile:
    """The file of one part. Safe for many threads; it is opened for each read."""

    def __init__(self, store: Store, part: Part, *, caches: bool = True) -> None:
        """Name the file of `part`. With `caches` false, decoded columns are taken from the cache but not kept
        there."""
        self._store = store
        self._part = part
        self._caches = caches
        self._footer: PartFooter | None = None

    @property
    def cache_path(self) -> str:
        """The key of the file in the caches of footers, columns and skip indexes."""
        return self._part.path

    def has_cached(self, column_ids: Collection[int]) -> bool:
        """Return whether the cache has all row groups of these columns, in any form."""
        columns = self._store.cache.columns
        file, count = columns.file(self.cache_path), len(self.footer().group_rows)
        for column_id in column_ids:
            firsts = [ChunkKey(column_id, 0, *form) for form in _FORMS]
            # What a process has not read lacks its first row group.
            known = [first for first in firsts if columns.shared.has(file, first)]
            if not any(columns.shared.has_groups(file, first, count) for first in known):
                return False
        return True

    def was_read(self, column_id: int, group: int) -> bool:
        """Return whether the cache has a row group of a column in any form, or remembers it."""
        columns = self._store.cache.columns
        file = columns.file(self.cache_path)
        keys = (ChunkKey(column_id, group, coded, shared) for coded, shared in _FORMS)
        return any(columns.shared.knows(file, key) for key in keys)

    def has_dictionary(self, column_id: int) -> bool:
        """Return whether the first row group of a column has a dictionary of its values; false if the file lacks the
        column."""
        footer = self.footer()
        column = footer.columns.get(column_id)
        if column is None:
            return False
        first = footer.metadata.row_group(0)
        leaves = range(column.first_leaf, column.first_leaf + column.leaf_count)
        return any(first.column(leaf).has_dictionary_page for leaf in leaves)

    def read(
        self,
        columns: Sequence[FileColumn],
        groups: Sequence[int],
        dictionaries: tuple[Collection[int], Collection[int]],
        use_threads: bool,
    ) -> dict[int, pa.ChunkedArray]:
        """Return the row groups of columns of the file, by column id, from the cache where it has them.

        `dictionaries` are ids: of the columns that come as dictionaries where the file has them so and reading them
        so pays, and of those that come as codes of one dictionary where the cache can have them so."""
        footer = self.footer()
        as_dictionaries = frozenset(
            column.id
            for column in columns
            if column.id in dictionaries[0] and groups and _texts_repeat(footer, column, groups[0])
        )
        ready = self._shared(dictionaries[1], groups)
        keys = {
            column.id: ChunkKey(column.id, 0, column.id in as_dictionaries) for column in columns
        }
        ready.update(self._joined([key for i, key in keys.items() if i not in ready], groups))
        cached = {i: self._cached(key, groups) for i, key in keys.items() if i not in ready}
        # Columns that lack the same row groups are read at once.
        unread: dict[tuple[int, ...], list[FileColumn]] = {}
        for column in columns:
            if column.id in ready:
                continue
            missing = tuple(g for g, c in zip(groups, cached[column.id], strict=True) if c is None)
            if missing:
                unread.setdefault(missing, []).append(column)
        for missing, lacking in unread.items():
            wholes, decoded = self._decode(lacking, missing, as_dictionaries, use_threads)
            for column in lacking:
                whole = wholes.get(column.id)
                if whole is not None and len(missing) == len(groups):
                    ready[column.id] = pa.chunked_array([whole])
                    continue
                if whole is not None:
                    decoded[column.id] = cut_array(whole, [footer.group_rows[g] for g in missing])
                chunks = iter(decoded[column.id])
                had = cached[column.id]
                cached[column.id] = [next(chunks) if c is None else c for c in had]
        return {
            column.id: ready[column.id]
            if column.id in ready
            else self._chunked(column, keys[column.id], groups, cached[column.id])
            for column in columns
        }

    @contextmanager
    def open(self) -> Iterator[pa.NativeFile]:
        """Open the file; errors while it is read become errors that name the part."""
        try:
            with self._store.open_input(self._part.path) as source:
                yield source
        except (OSError, pa.ArrowException) as error:
            raise unreadable(self._part, error) from error

    @contextmanager
    def suspecting(self) -> Iterator[None]:
        """Note the part as a suspect if a read inside the `with` fails; a later check decides
        whether it is damaged."""
        try:
            yield
        except OperationalError as error:
            # The catalog may lack the rows because vacuum has removed the snapshot.
            if indicates_damage(error) or isinstance(error, SnapshotTooOld):
                self._store.cache.suspects.add(self._part)
            raise

    def footer(self) -> PartFooter:
        """Return the file's footer, the one found before; else from the cache; else read it, verify it
        against the part and cache it."""
        if self._footer is not None:
            return self._footer
        cache = self._store.cache.footers
        footer = cache.get(self.cache_path)
        if not isinstance(footer, PartFooter):
            with self.suspecting(), self.open() as source:
                footer = self.read_footer(source)
            cache.put(self.cache_path, footer)
        self._footer = footer
        return footer

    def read_footer(self, source: pa.NativeFile) -> PartFooter:
        """Read the footer from the open file and verify it."""
        verify_open(source, self._part)
        file = pq.ParquetFile(source)
        return PartFooter(file.metadata, file_columns(file.schema_arrow))

    def _chunked(
        self,
        column: FileColumn,
        key: ChunkKey,
        groups: Sequence[int],
        read: Sequence[pa.Array | None],
    ) -> pa.ChunkedArray:
        """Return the row groups of a column, all of which were read, as one column; as one array if
        the cache can keep them so."""
        chunks = [chunk for chunk in read if chunk is not None]
        if not chunks:
            return as_named(pa.chunked_array([], column.type), column.type_name)
        columns = self._store.cache.columns
        if len(chunks) == 1 or not may_be_joined(chunks):
            return pa.chunked_array(chunks)
        if not self._caches:
            whole = neighbours(chunks)
            return pa.chunked_array(chunks if whole is None else [whole])
        keys = [ChunkKey(key.column_id, group, key.coded) for group in groups]
        joined = columns.shared.join(columns.file(self.cache_path), keys, chunks)
        return pa.chunked_array([joined])

    def _shared(
        self, column_ids: Collection[int], groups: Sequence[int]
    ) -> dict[int, pa.ChunkedArray]:
        """Return by column id the row groups of those columns that the cache has as codes of one dictionary for the
        file; make codes and dictionary of row groups in the cache where these pay."""
        columns, path = self._store.cache.columns, self.cache_path
        shared = {}
        for column_id in column_ids if groups else ():
            values = shared_column(columns, path, column_id, groups)
            if values is None and self._caches:
                share_codes(columns, path, column_id, self.footer().group_rows)
                values = shared_column(columns, path, column_id, groups)
            if values is not None:
                shared[column_id] = pa.chunked_array([values])
        return shared

    def _joined(
        self, keys: Sequence[ChunkKey], groups: Sequence[int]
    ) -> dict[int, pa.ChunkedArray]:
        """Return by column id the row groups of those columns that the cache has as one array; columns that it has
        otherwise are left out."""
        if len(groups) < 2 or groups[-1] - groups[0] != len(groups) - 1:
            return {}
        columns = self._store.cache.columns
        file, first, count = columns.file(self.cache_path), groups[0], len(groups)
        joined = (
            (key.column_id, columns.shared.joined(file, key._replace(row_group=first), count))
            for key in keys
        )
        return {at: pa.chunked_array([values]) for at, values in joined if values is not None}

    def _cached(self, key: ChunkKey, groups: Sequence[int]) -> list[pa.Array | None]:
        """Return the row groups of the column that `key` names, None for those that the cache
        lacks."""
        columns = self._store.cache.columns
        keys = [ChunkKey(key.column_id, group, key.coded) for group in groups]
        return columns.shared.get(columns.file(self.cache_path), keys)

    def _decode(
        self,
        columns: Sequence[FileColumn],
        groups: Sequence[int],
        as_dictionaries: Collection[int],
        use_threads: bool,
    ) -> tuple[dict[int, pa.Array], dict[int, list[pa.Array]]]:
        """Read columns of the file, verify their pages, and keep them in the cache if they are
        kept. Return by column id the values of those that came as one array, and the values of each
        row group of the others, of the type that the file names."""
        footer = self.footer()
        with self.suspecting(), self.open() as source:
            if source.size() != self._part.bytes:
                raise mismatch(self._part, f"has {source.size()} bytes now")
            wholes, chunks = self._decode_pages(source, footer, columns, groups, as_dictionaries)
            others = [c for c in columns if c.id not in chunks and c.id not in wholes]
            if others:
                chunks |= self._decode_by_arrow(
                    source, footer, others, groups, as_dictionaries, use_threads
                )
        return wholes, chunks

    def _decode_pages(
        self,
        source: pa.NativeFile,
        footer: PartFooter,
        columns: Sequence[FileColumn],
        groups: Sequence[int],
        as_dictionaries: Collection[int],
    ) -> tuple[dict[int, pa.Array], dict[int, list[pa.Array]]]:
        """Read those columns whose pages a kernel knows, as `_decode` does. Row groups of a window become one array."""
        pages = PageSource.of(source)
        wholes: dict[int, pa.Array] = {}
        chunks: dict[int, list[pa.Array]] = {}
        runs = list(runs_in_windows(groups, footer.group_rows[0]))
        for column in columns if pages is not None else ():
            known = None if column.id in as_dictionaries else column_pages(footer, column)
            if known is None or pages is None:
                continue
            arrays = [decode_pages(pages, known, run) for run in runs]
            if any(array is None for array in arrays):
                continue
            for run, array in zip(runs, arrays, strict=True):
                rows = [footer.group_rows[group] for group in run]
                if self._caches:
                    keys = [ChunkKey(column.id, group, False) for group in run]
                    self._store.cache.columns.keep_read_whole(self.cache_path, keys, array, rows)
                if len(runs) == 1:
                    wholes[column.id] = array
                else:
                    chunks.setdefault(column.id, []).extend(cut_array(array, rows))
        return wholes, chunks

    def _decode_by_arrow(
        self,
        source: pa.NativeFile,
        footer: PartFooter,
        columns: Sequence[FileColumn],
        groups: Sequence[int],
        as_dictionaries: Collection[int],
        use_threads: bool,
    ) -> dict[int, list[pa.Array]]:
        """Read columns by Arrow, as `_decode` does."""
        leaves = sorted(
            {leaf for s in columns for leaf in range(s.first_leaf, s.first_leaf + s.leaf_count)}
        )
        file = pq.ParquetFile(
            source,
            metadata=footer.metadata,
            page_checksum_verification=True,
            pre_buffer=False,
            read_dictionary=[s.name for s in columns if s.id in as_dictionaries],
        )
        chunks: dict[int, list[pa.Array]] = {column.id: [] for column in columns}
        for together in _steps(footer, leaves, groups):
            rows = file.reader.read_row_groups(
                list(together), column_indices=leaves, use_threads=use_threads
            )
            sizes = [footer.metadata.row_group(group).num_rows for group in together]
            for column in columns:
                values = compact_form(as_named(rows.column(column.name), column.type_name))
                chunks[column.id] += split_column(values, sizes)
        for column in columns if self._caches else ():
            coded = column.id in as_dictionaries
            keys = [ChunkKey(column.id, group, coded) for group in groups]
            self._store.cache.columns.keep_read(self.cache_path, keys, chunks[column.id])
        return chunks


def _texts_repeat(footer: PartFooter, column: FileColumn, group: int) -> bool:
    """Return whether a text column is worth reading as a dictionary, judged by one row group."""
    rows = footer.metadata.row_group(group)
    size = rows.column(column.first_leaf).total_uncompressed_size
    return bool(size <= CODED_ROW_BYTES_MAX * rows.num_rows)


def _steps(
    footer: PartFooter, leaves: Sequence[int], groups: Sequence[int]
) -> Iterator[Sequence[int]]:
    """Yield the row groups that are decoded together, judged by the first one."""
    first = footer.metadata.row_group(groups[0])
    group_bytes = sum(first.column(leaf).total_uncompressed_size for leaf in leaves)
    step = max(_DECODED_BYTES // max(group_bytes, 1), 1)
    for start in range(0, len(groups), step):
        yield groups[start : start + step]

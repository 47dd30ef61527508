"""Write Parquet on several cores.

    rows -> stretches of row groups -> each encoded in memory, by kernels (`page_encoder`) or a `pq.ParquetWriter`
         -> their pages appended one after the other, then one footer with shifted offsets

pyarrow encodes the columns of a file on one thread (apache/arrow#50866), which is most of the time
of a large INSERT, of a merge and of a backfill.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from olapdb.config import tuning
from olapdb.errors import InternalError
from olapdb.lazy import LazyModule
from olapdb.native.memory import lasting_pool
from olapdb.records import dataclass
from olapdb.storage.checksum import checksum_of_parts
from olapdb.storage.parquet.footer import (
    Footer,
    Number,
    Template,
    encode,
    footer_bytes,
    integer,
    key_value,
    parse_footer,
    parse_offset_index,
)
from olapdb.threads import ThreadPool, refuse_if_ending

if TYPE_CHECKING:
    from olapdb.storage.parquet import page_encoder
    from olapdb.storage.parquet.column_facts import ColumnFacts
    from olapdb.storage.parquet.page_encoder import EncodedStretch, PageEncoder
else:
    page_encoder = LazyModule("olapdb.storage.parquet.page_encoder")

ROW_GROUPS_MAX = 32_767
"""The format numbers row groups with an I16."""
_MAGIC = b"PAR1"
_LENGTH_BYTES = 4
_FOOTER_BYTES = 1 << 20
"""Bytes that a stretch's footer and page headers hardly exceed."""


class OneThreadWriter:
    """A `pq.ParquetWriter` that also exposes the metadata it wrote and never hides why a write
    failed."""

    def __init__(
        self, sink: pa.NativeFile, schema: pa.Schema, options: Mapping[str, object]
    ) -> None:
        self._sink = sink
        self._collected: list[pq.FileMetaData] = []
        self._writer = pq.ParquetWriter(sink, schema, metadata_collector=self._collected, **options)

    def write_table(self, rows: pa.Table, row_group_size: int) -> None:
        """Write all rows, in row groups of `row_group_size` rows."""
        self._writer.write_table(rows, row_group_size=row_group_size)

    def write(self, data: bytes) -> int:
        """Write bytes between the pages and the page indexes; return their offset in the file."""
        at: int = self._sink.tell()
        self._sink.write(data)
        return at

    def add_key_value_metadata(self, pairs: Mapping[str | bytes, str | bytes]) -> None:
        """Add pairs to the footer's metadata."""
        self._writer.add_key_value_metadata(pairs)

    @property
    def known_columns(self) -> frozenset[str]:
        """Return no column: Arrow finds the facts that `RowGroupsWriter.column_facts` has for itself."""
        return frozenset()

    def column_facts(self) -> Mapping[str, ColumnFacts]:
        """Return nothing, see `known_columns`."""
        return {}

    def checksum(self) -> str | None:
        """Return None: pyarrow writes to the file itself, so the checksum is not known."""
        return None

    def close(self) -> pq.FileMetaData:
        """Write the footer; return the file's metadata."""
        self._writer.close()
        return self._collected[0]

    def abandon(self) -> None:
        """Close after a failed write. The close fails too, with a RuntimeError that would hide the
        reason (no space, say), so it is suppressed."""
        with suppress(OSError, RuntimeError):
            self._writer.close()
        self._writer.is_open = False  # else the garbage collector closes it again


class Sink(Protocol):
    """The part of a file that a writer of row groups needs."""

    def tell(self) -> int:
        """Return the number of bytes written."""
        ...

    def write(self, data: bytes | pa.Buffer) -> object:
        """Append bytes."""
        ...


class RowGroupsWriter:
    """A writer with the interface of `OneThreadWriter` that encodes one `write_table` on `threads`
    threads."""

    def __init__(
        self,
        sink: Sink,
        schema: pa.Schema,
        options: Mapping[str, object],
        threads: int,
        stretch_rows: int = tuning.STRETCH_ROWS,
        encoder: PageEncoder | None = None,
    ) -> None:
        self._stretch_rows = stretch_rows
        self._encoder = encoder
        self._sink = sink
        self._crc = 0
        self._tail = b""
        self._schema = schema
        self._options = options
        self._threads = threads
        self._pairs: dict[str | bytes, str | bytes] = {}
        self._written: list[_Written] = []
        self._column_indexes: list[bytes] = []
        self._offset_indexes: list[bytes] = []
        self._memory: deque[pa.Buffer] = deque()  # of stretches that are written
        self._columns: list[Mapping[str, ColumnFacts]] = []

    def write_table(self, rows: pa.Table, row_group_size: int) -> None:
        """Encode and append all rows. At most `threads` + 2 encoded stretches are in memory at a
        time."""
        step = max(1, self._stretch_rows // row_group_size) * row_group_size
        stretches = (rows.slice(start, step) for start in range(0, rows.num_rows, step))
        self.write(_MAGIC)
        if rows.num_rows <= step or self._threads == 1:
            for stretch in stretches:
                refuse_if_ending()
                self._append(self._encode(stretch, row_group_size))
            self._memory.clear()
            return
        with ThreadPool(self._threads, "olapdb-parquet") as pool:
            waiting: deque[Future[EncodedStretch]] = deque()
            try:
                for stretch in stretches:
                    refuse_if_ending()
                    waiting.append(pool.submit(self._encode, stretch, row_group_size))
                    if len(waiting) > self._threads + 1:
                        self._append(waiting.popleft().result())
                while waiting:
                    self._append(waiting.popleft().result())
            finally:
                for future in waiting:
                    future.cancel()
                self._memory.clear()

    def write(self, data: bytes | pa.Buffer) -> int:
        """Append bytes to the file; return their offset."""
        at: int = self._sink.tell()
        self._sink.write(data)
        self._crc = zlib.crc32(data, self._crc)
        return at

    @property
    def known_columns(self) -> frozenset[str]:
        """The columns about which `column_facts` will most probably know something."""
        return self._encoder.known_columns if self._encoder is not None else frozenset()

    def column_facts(self) -> Mapping[str, ColumnFacts]:
        """Return what kernels found out about columns, by name, once all rows are written: about `known_columns`, or
        about none where Arrow had to write some rows."""
        facts: dict[str, ColumnFacts] = {}
        if not all(self._columns):
            return facts
        for columns in self._columns:
            for name, of_rows in columns.items():
                before = facts.get(name)
                facts[name] = of_rows if before is None else before.joined(of_rows)
        return facts

    def checksum(self) -> str:
        """Return the checksum of the closed file, in the form of `checksum.checksum_of_file`."""
        return checksum_of_parts(self._crc, self._tail)

    @property
    def tail(self) -> bytes:
        """The footer of the closed file, with its length and magic."""
        return self._tail

    def add_key_value_metadata(self, pairs: Mapping[str | bytes, str | bytes]) -> None:
        """Add pairs to the footer's metadata."""
        self._pairs = {**pairs, **self._pairs}  # the newest first, as pyarrow writes them

    def close(self) -> pq.FileMetaData:
        """Write the page indexes and the footer; return the file's metadata."""
        blobs = [*self._column_indexes, *self._offset_indexes]
        starts = accumulate(map(len, blobs), initial=self._sink.tell())
        places = [(start, len(blob)) for start, blob in zip(starts, blobs, strict=False)]
        count = len(self._column_indexes)
        at = _Places(iter(places[:count]), iter(places[count:]))
        row_groups: list[Template] = []
        for written in self._written:
            before = len(row_groups)
            row_groups += [
                at.of(template, written.shift, before) for template in written.footer.row_groups
            ]
        first = self._written[0].footer
        added = [key_value(_encoded(key), _encoded(value)) for key, value in self._pairs.items()]
        footer = footer_bytes(
            replace(
                first,
                rows=sum(written.footer.rows for written in self._written),
                row_groups=tuple(row_groups),
                key_values=(*added, *first.key_values),
            )
        )
        self._tail = footer + len(footer).to_bytes(_LENGTH_BYTES, "little") + _MAGIC
        self.write(b"".join(blobs))
        self.write(self._tail)
        return pq.read_metadata(pa.BufferReader(self._tail))

    def abandon(self) -> None:
        """Do nothing: no file handle or encoder stays open."""

    def _encode(self, rows: pa.Table, row_group_size: int) -> EncodedStretch:
        """Encode rows as row groups in memory. Runs in a thread of the pool."""
        memory = self._memory_for(rows)
        if self._encoder is not None:
            encoded = self._encoder.encode(rows, row_group_size, memory)
            if encoded is not None:
                return encoded
        fixed = pa.FixedSizeBufferWriter(memory)
        try:
            self._encode_to(fixed, rows, row_group_size)
        except OSError:  # the file is larger than the rows
            growing = pa.BufferOutputStream()
            self._encode_to(growing, rows, row_group_size)
            return _split_file(growing.getvalue(), memory)
        return _split_file(memory.slice(0, fixed.tell()), memory)

    def _encode_to(self, sink: pa.NativeFile, rows: pa.Table, row_group_size: int) -> None:
        """Write rows as a Parquet file."""
        with pq.ParquetWriter(sink, self._schema, **self._options) as writer:
            writer.write_table(rows, row_group_size=row_group_size)

    def _memory_for(self, rows: pa.Table) -> pa.Buffer:
        """Return memory that most probably holds the encoded rows, if possible that of a stretch which is
        written: new memory costs as much as a tenth of the encoding, since the system clears it."""
        wanted = rows.nbytes + rows.nbytes // 8 + _FOOTER_BYTES
        try:
            memory = self._memory.popleft()
        except IndexError:
            memory = None
        if memory is not None and memory.size >= wanted:
            return memory
        return pa.allocate_buffer(wanted, memory_pool=lasting_pool())

    def _append(self, stretch: EncodedStretch) -> None:
        """Append a stretch's pages to the file. Keep its footer and page indexes, with offsets
        moved to the pages' new place."""
        places = [self.write(pages) for pages in stretch.pages]
        shift = places[0] - len(_MAGIC)
        self._memory.append(stretch.memory)
        self._columns.append(stretch.columns)
        self._written.append(_Written(stretch.footer, shift))
        self._column_indexes += stretch.column_indexes
        self._offset_indexes += [encode(index, shift) for index in stretch.offset_indexes]


@contextmanager
def parquet_writer(
    sink: pa.NativeFile,
    schema: pa.Schema,
    options: Mapping[str, object],
    *,
    rows: int,
    row_group_size: int,
    threads: int,
    sketched: Collection[str] = (),
) -> Iterator[OneThreadWriter | RowGroupsWriter]:
    """Yield a writer that encodes on several threads if the rows are many enough, else pyarrow's. `sketched` as of
    `PageEncoder.of`.

    The caller calls its `close` last in the `with`. An error inside the `with` abandons the file.
    """
    threads = min(threads, -(-rows // tuning.STRETCH_ROWS))
    encoder = None
    if rows >= tuning.ENCODED_ROWS_MIN:
        encoder = page_encoder.PageEncoder.of(schema, options, row_group_size, sketched)
    writer: OneThreadWriter | RowGroupsWriter
    if (threads > 1 or encoder is not None) and -(-rows // row_group_size) <= ROW_GROUPS_MAX:
        writer = RowGroupsWriter(sink, schema, options, max(threads, 1), encoder=encoder)
    else:
        writer = OneThreadWriter(sink, schema, options)
    try:
        yield writer
    except BaseException:
        writer.abandon()
        raise


# --- stretches -----------------------------------------------------------------------------------

_COLUMN_INDEX, _OFFSET_INDEX = "column index", "offset index"
_LENGTHS = (f"{_COLUMN_INDEX}'s bytes", f"{_OFFSET_INDEX}'s bytes")


@dataclass(frozen=True, slots=True)
class _Written:
    """The footer of a stretch whose pages were appended to the file, moved by `shift` bytes."""

    footer: Footer
    shift: int


def _split_file(file: pa.Buffer, memory: pa.Buffer) -> EncodedStretch:
    """Split a Parquet file, which may lie in `memory`, into its pages, its page indexes and its parsed
    footer."""
    footer_end = file.size - len(_MAGIC) - _LENGTH_BYTES
    length = int.from_bytes(file[footer_end : footer_end + _LENGTH_BYTES], "little")
    start = footer_end - length
    footer = parse_footer(file[start:footer_end].to_pybytes())
    indexes = [
        number.value
        for template in footer.row_groups
        for number in _numbers(template)
        if number.field.endswith("index's offset")
    ]
    end = min(indexes, default=start)
    return page_encoder.EncodedStretch(
        (file[len(_MAGIC) : end],),
        footer,
        tuple(_page_indexes(file, footer, _COLUMN_INDEX)),
        tuple(map(parse_offset_index, _page_indexes(file, footer, _OFFSET_INDEX))),
        memory,
        {},
    )


def _page_indexes(file: pa.Buffer, footer: Footer, kind: str) -> Iterator[bytes]:
    """Yield the page indexes of one kind (_COLUMN_INDEX or _OFFSET_INDEX) of all columns of a file, row group
    by row group."""
    for template in footer.row_groups:
        start = 0
        for number in _numbers(template):
            if number.field == f"{kind}'s offset":
                start = number.value
            elif number.field == f"{kind}'s bytes":
                yield file[start : start + number.value].to_pybytes()


def _encoded(text: str | bytes) -> bytes:
    """Return text as UTF-8; bytes unchanged."""
    return text.encode() if isinstance(text, str) else text


def _numbers(template: Template) -> Iterator[Number]:
    """Yield the replaceable numbers of a template in their order; its fixed bytes are left out."""
    return (item for item in template if isinstance(item, Number))


class _Places:
    """The (offset, bytes) of the page indexes in the joined file, consumed in their order."""

    def __init__(
        self, column_indexes: Iterator[tuple[int, int]], offset_indexes: Iterator[tuple[int, int]]
    ) -> None:
        self._places = {
            f"{_COLUMN_INDEX}'s offset": column_indexes,
            f"{_OFFSET_INDEX}'s offset": offset_indexes,
        }

    def of(self, template: Template, shift: int, before: int) -> Template:
        """Return the bytes of a row group with its pages moved by `shift` bytes and its ordinal raised by `before`, the
        number of row groups before. Its page indexes get the next offsets and lengths of `_places`."""
        length = 0
        encoded: list[bytes] = []
        for item in template:
            if isinstance(item, bytes):
                encoded.append(item)
                continue
            field, value = item
            if field == "data offset":
                value = value + shift if value else 0
            elif field in self._places:
                value, length = next(self._places[field])
            elif field in _LENGTHS:
                value = length
            elif field == "ordinal":
                value += before
            else:
                raise InternalError(f"A row group's {field}.")
            encoded.append(integer(value))
        return [b"".join(encoded)]

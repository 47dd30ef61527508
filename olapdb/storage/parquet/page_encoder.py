"""Encode stretches of rows as row groups of Parquet: columns of numbers, dates, times, short Decimals and texts by kernels,
the others by Arrow's writer.

A kernel makes one page of a column of a row group, plain, as differences, or as codes of a dictionary, in LZ4 or as it
is, with its checksum and its least and greatest value (`native/encoding.c`, `native/text_encoding.c`).  Any reader of
Parquet knows such pages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from olapdb.errors import InternalError
from olapdb.native import encoding
from olapdb.native.library import library
from olapdb.records import dataclass
from olapdb.storage.parquet.chunk_footer import (
    PLAIN,
    ChunkFacts,
    ChunkFooter,
    chunk_footer,
    row_group_template,
)
from olapdb.storage.parquet.column_facts import ColumnFacts
from olapdb.storage.parquet.footer import (
    Footer,
    Number,
    Template,
    parse_chunks,
    parse_footer,
    parse_offset_index,
)

ROW_GROUP_ROWS_MAX = 1 << 17
"""Row groups of more rows are Arrow's, which divides them into pages."""
_TEXT_BYTES_MAX = 16 << 20
"""Texts of a row group of more bytes are Arrow's, for the same reason."""
_STATISTICS_BYTES_MAX = 4_096
"""A column of a row group with a longer least or greatest text has none, as Arrow has it."""
_DICTIONARY_MAX = 1 << 15
"""A dictionary has at most so many texts. A kernel makes none where most of the rows' texts differ."""
_DIFFERENCES = 5
_CODECS = {"lz4": (1, 7), "none": (0, 0)}
"""By the writer's option the kernels' number of the codec, and Parquet's."""
_MILLISECONDS = 1_000
REGISTERS = 256
"""Those of a sketch, see `storage/distinct_counts.py`."""
_MAGIC = b"PAR1"
_TAIL_BYTES = 8
_PAGE_ROOM = 1 << 16
_HEADS_MAX = 256
_HEADS: dict[tuple[bytes, str], Footer] = {}
"""Heads of files by schema and options: an empty file of Arrow's takes as long as some thousand rows. It has no lock, which
a fork in the midst of a statement would leave locked in the child."""
_INT32, _INT64, _FLOAT, _DOUBLE, _BYTE_ARRAY = 1, 2, 4, 5, 6


@dataclass(frozen=True, slots=True)
class ColumnForm:
    """The encoding of a column by a kernel: Parquet's numbers of the physical type and of the codec, the bytes of a stored
    value (0 for texts), and `form`, the kernel's argument (`NumberForm` in encoding.c, or that of texts)."""

    physical: int
    codec: int
    width: int
    form: np.ndarray


@dataclass(frozen=True, slots=True)
class EncodedStretch:
    """Row groups in memory: pieces of bytes that follow each other, what the footer and the page indexes say of them as if
    they followed the first bytes of a file, and memory for others once they are written. `columns` has what kernels
    found out about columns, by name: about all that they know, or about none."""

    pages: tuple[pa.Buffer, ...]
    footer: Footer
    column_indexes: tuple[bytes, ...]
    offset_indexes: tuple[Template, ...]
    memory: pa.Buffer
    columns: Mapping[str, ColumnFacts]


class PageEncoder:
    """The encoder of the stretches of one file. Thread-safe."""

    def __init__(
        self,
        schema: pa.Schema,
        options: Mapping[str, object],
        forms: Sequence[ColumnForm | None],
        sketched: Collection[str] = (),
    ) -> None:
        self._forms = forms
        self._sketched = sketched
        self.known_columns = frozenset(
            field.name for field, form in zip(schema, forms, strict=True) if form is not None
        )
        """The columns that kernels encode."""
        self._options = options
        others = [field for field, form in zip(schema, forms, strict=True) if form is None]
        self._others = pa.schema(others)
        self._leaves = [_leaves(field.type) for field in schema]
        self._head = _known_head(schema, options)
        sorting = options.get("sorting_columns", ())
        assert isinstance(sorting, Sequence)
        self._sorting = [(key.column_index, key.descending) for key in sorting]

    @staticmethod
    def of(
        schema: pa.Schema,
        options: Mapping[str, object],
        row_group_size: int,
        sketched: Collection[str] = (),
    ) -> PageEncoder | None:
        """Return the encoder of files of a schema, None where Arrow's writer has to do all. The distinct values of the
        `sketched` columns, none of floats, are to be sketched where kernels encode them."""
        if library() is None or row_group_size > ROW_GROUP_ROWS_MAX:
            return None
        forms = [_form(field, options) for field in schema]
        return PageEncoder(schema, options, forms, sketched) if any(forms) else None

    def encode(
        self, rows: pa.Table, row_group_size: int, memory: pa.Buffer
    ) -> EncodedStretch | None:
        """Encode rows in row groups of `row_group_size` rows; the pages begin in `memory`. None where a row group has
        so many bytes of text that Arrow has to write it."""
        starts = range(0, rows.num_rows, row_group_size)
        pages = _Pages(memory)
        own: list[list[ChunkFooter | None]] = [[] for _ in starts]
        columns: dict[str, ColumnFacts] = {}
        for column, field, form in zip(rows.columns, rows.schema, self._forms, strict=True):
            registers = np.zeros(REGISTERS, np.uint8) if field.name in self._sketched else None
            for chunks, start in zip(own, starts, strict=True):
                if form is None:
                    chunks.append(None)
                    continue
                array = _one_array(column.slice(start, row_group_size))
                if form.width == 0 and encoding.text_bytes(array) > _TEXT_BYTES_MAX:
                    return None
                footer, facts = pages.add(array, field.name, form, registers)
                chunks.append(footer)
                before = columns.get(field.name)
                columns[field.name] = facts if before is None else before.joined(facts)
        pieces = [pages.buffer()]
        others = self._by_arrow(rows, row_group_size, len(_MAGIC) + pieces[0].size, pieces)
        groups, column_indexes, offset_indexes = [], [], []
        for number, (start, chunks) in enumerate(zip(starts, own, strict=True)):
            whole = self._in_order(chunks, others[number] if others else ())
            groups.append(
                row_group_template(whole, min(row_group_size, rows.num_rows - start), self._sorting)
            )
            column_indexes += [
                group.column_index for group in whole if group.column_index is not None
            ]
            offset_indexes += [group.offset_index for group in whole]
        whole_footer = replace(self._head, rows=rows.num_rows, row_groups=tuple(groups))
        return EncodedStretch(
            tuple(pieces),
            whole_footer,
            tuple(column_indexes),
            tuple(offset_indexes),
            pages.memory,
            columns,
        )

    def _in_order(
        self, own: Sequence[ChunkFooter | None], others: Sequence[ChunkFooter]
    ) -> list[ChunkFooter]:
        """Return the leaf columns of a row group in the order of the schema."""
        waiting = iter(others)
        whole: list[ChunkFooter] = []
        for chunk, leaves in zip(own, self._leaves, strict=True):
            whole += islice(waiting, leaves) if chunk is None else (chunk,)
        if next(waiting, None) is not None or len(whole) != sum(self._leaves):
            raise InternalError("Arrow wrote other leaf columns than the schema has.")
        return whole

    def _by_arrow(
        self, rows: pa.Table, row_group_size: int, offset: int, pieces: list[pa.Buffer]
    ) -> list[list[ChunkFooter]]:
        """Encode by Arrow the columns that no kernel knows, and append their pages, which begin at `offset` in the
        file, to `pieces`. Return for each row group the footer's bytes of each of their leaf columns."""
        if not len(self._others):
            return []
        options = {k: v for k, v in self._options.items() if k != "sorting_columns"}
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, self._others, **options) as writer:
            writer.write_table(rows.select(self._others.names), row_group_size=row_group_size)
        file = sink.getvalue()
        start = _footer_start(file)
        groups = [
            [_of_arrow(file, chunk, offset - len(_MAGIC)) for chunk in chunks]
            for chunks in parse_chunks(file[start : file.size - _TAIL_BYTES].to_pybytes())
        ]
        end = max(
            (chunk.offset + chunk.stored_bytes for chunks in groups for chunk in chunks),
            default=offset,
        )
        pieces.append(file[len(_MAGIC) : end - offset + len(_MAGIC)])
        return groups


class _Pages:
    """The pages of a stretch that kernels make, one behind the other in memory that grows."""

    def __init__(self, memory: pa.Buffer) -> None:
        self.memory = memory
        self._room = np.frombuffer(memory, np.uint8)
        self._used = 0

    def add(
        self, array: pa.Array, name: str, form: ColumnForm, registers: np.ndarray | None
    ) -> tuple[ChunkFooter, ColumnFacts]:
        """Append the pages of a column of a row group, and raise the registers of its sketch, if there is one; return
        the column's entry in the footer and the facts about its values."""
        encode_array = encoding.encode_numbers if form.width else encoding.encode_texts
        chunk = encode_array(array, form.form, self._room[self._used :], registers)
        while chunk is None:
            self._grow()
            chunk = encode_array(array, form.form, self._room[self._used :], registers)
        ends = _range(array, chunk, form)
        is_short = ends is not None and max(map(len, ends)) <= _STATISTICS_BYTES_MAX
        least, greatest = ends if ends is not None and is_short else (None, None)
        about = ColumnFacts(chunk.nulls, chunk.has_nan, () if ends is None else (ends,), registers)
        facts = ChunkFacts(
            name.encode(),
            form.physical,
            form.codec,
            len(array),
            len(_MAGIC) + self._used,
            chunk.bytes,
            chunk.dictionary_bytes,
            chunk.page_bytes,
            chunk.encoding,
            chunk.nulls,
            least,
            greatest,
        )
        self._used += chunk.bytes
        return chunk_footer(facts), about

    def buffer(self) -> pa.Buffer:
        """Return the pages appended so far, as one buffer."""
        return self.memory.slice(0, self._used)

    def _grow(self) -> None:
        """Move the pages to memory of twice the size."""
        memory = pa.allocate_buffer(2 * self.memory.size + _PAGE_ROOM)
        room = np.frombuffer(memory, np.uint8)
        room[: self._used] = self._room[: self._used]
        self.memory, self._room = memory, room


def _form(field: pa.Field, options: Mapping[str, object]) -> ColumnForm | None:
    """Return how a kernel encodes a column under a writer's options, None if none does."""
    compression, encodings = options.get("compression"), options.get("column_encoding", {})
    dictionaries = options.get("use_dictionary")
    if (
        not isinstance(compression, Mapping)
        or not isinstance(encodings, Mapping)
        or not isinstance(dictionaries, list)
    ):
        return None  # options for all columns at once
    codec = _CODECS.get(compression.get(field.name, ""))
    chosen = encodings.get(field.name, "")
    if codec is None or chosen not in ("", "DELTA_BINARY_PACKED"):
        return None
    has_dictionary = field.name in dictionaries
    if pa.types.is_string(field.type):
        most = _DICTIONARY_MAX if has_dictionary else 0
        form = (int(field.nullable), codec[0], most)
        return None if chosen else ColumnForm(_BYTE_ARRAY, codec[1], 0, np.array(form, np.int64))
    physical = None if has_dictionary else _physical(field.type)
    if physical is None or (chosen and physical not in (_INT32, _INT64)):
        return None
    width = 4 if physical in (_INT32, _FLOAT) else 8
    is_seconds = pa.types.is_timestamp(field.type) and field.type.unit == "s"
    multiplier = _MILLISECONDS if is_seconds else 1  # Parquet has no seconds
    numbers = (width, int(field.nullable), codec[0], multiplier, _DIFFERENCES if chosen else PLAIN)
    return ColumnForm(physical, codec[1], width, np.array(numbers, np.int64))


def _physical(arrow: pa.DataType) -> int | None:
    """Return Parquet's number of the physical type of numbers, dates, times and short Decimals, None for other types."""
    if pa.types.is_decimal128(arrow):
        return _INT32 if arrow.precision <= 9 else _INT64 if arrow.precision <= 18 else None
    if pa.types.is_float32(arrow):
        return _FLOAT
    if pa.types.is_float64(arrow):
        return _DOUBLE
    if pa.types.is_timestamp(arrow):
        return _INT64
    if pa.types.is_integer(arrow) or pa.types.is_date32(arrow):
        return _INT64 if int(arrow.bit_width) == 64 else _INT32
    return None


def _range(
    array: pa.Array, chunk: encoding.EncodedChunk, form: ColumnForm
) -> tuple[bytes, bytes] | None:
    """Return the least and the greatest value as Parquet stores them, None where there is none."""
    if not chunk.has_range:
        return None
    if not form.width:
        return _text(array, chunk.least), _text(array, chunk.greatest)
    low, high = (
        (end & (1 << 64) - 1).to_bytes(8, "little")[: form.width]
        for end in (chunk.least, chunk.greatest)
    )
    return low, high


def _text(array: pa.Array, row: int) -> bytes:
    """Return the bytes of a text; they need not be UTF-8."""
    _, offset_buffer, data = array.buffers()
    start, end = np.frombuffer(offset_buffer, np.int32, 2, 4 * (array.offset + row)).tolist()
    return b"" if data is None else data.slice(start, end - start).to_pybytes()


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column of a row group as one array."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _of_arrow(file: pa.Buffer, chunk: tuple[Template, int, int, int], shift: int) -> ChunkFooter:
    """Return the footer's bytes, page indexes included, of a leaf column that Arrow's writer encoded in `file`, with
    its pages moved by `shift` bytes."""
    template, stored_bytes, page_bytes, start = chunk
    moved: Template = []
    indexes: dict[str, bytes] = {}
    at = 0
    for item in template:
        if isinstance(item, bytes):
            moved.append(item)
            continue
        kind, _, name = item.field.partition("'s ")
        if item.field == "data offset":
            item = Number(item.field, item.value + shift if item.value else 0)
        elif name == "offset":
            at = item.value
        else:
            indexes[kind] = file[at : at + item.value].to_pybytes()
        moved.append(item)
    offset_index: Template = [
        Number(item.field, item.value + shift) if isinstance(item, Number) else item
        for item in parse_offset_index(indexes["offset index"])
    ]
    return ChunkFooter(
        moved, indexes.get("column index"), offset_index, stored_bytes, page_bytes, start + shift
    )


def _leaves(arrow: pa.DataType) -> int:
    """Return the number of leaf columns in Parquet of a column of this type."""
    if pa.types.is_nested(arrow):
        return sum(_leaves(arrow.field(at).type) for at in range(arrow.num_fields))
    return 1


def _known_head(schema: pa.Schema, options: Mapping[str, object]) -> Footer:
    """Return what `_head` does, from the heads that were made lately."""
    key = schema.serialize().to_pybytes(), repr(options)
    head = _HEADS.get(key)
    if head is None:
        head = _head(schema, options)
        if len(_HEADS) >= _HEADS_MAX:
            _HEADS.clear()
        _HEADS[key] = head
    return head


def _head(schema: pa.Schema, options: Mapping[str, object]) -> Footer:
    """Return the footer of a file of the schema without rows: schema, writer and key-value metadata, which are the same
    in all files of the schema."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema, **options).close()
    file = sink.getvalue()
    return parse_footer(file[_footer_start(file) : file.size - _TAIL_BYTES].to_pybytes())


def _footer_start(file: pa.Buffer) -> int:
    """Return where the footer of a Parquet file in memory begins."""
    end = file.size - _TAIL_BYTES
    return int(end - int.from_bytes(file[end : end + 4], "little"))

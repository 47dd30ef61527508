"""Encode what a Parquet footer and the page indexes say of the pages that kernels encoded.

They are Thrift structs in the compact protocol, with the numbers that depend on positions in the file left
replaceable, as `footer.parse_footer` gives them for files of Arrow's writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from olapdb.records import dataclass
from olapdb.storage.parquet.footer import (
    BINARY,
    FALSE,
    I32,
    I64,
    STRUCT,
    TRUE,
    Number,
    Template,
    integer,
    list_header,
    varint,
)

PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8
DATA_PAGE, DICTIONARY_PAGE = 0, 2
_ASCENDING = 1


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """A column of a row group, in one data page: where it begins, its bytes, with and without compression, and those of the
    dictionary's page before it (0: there is none). `physical` and `codec` are Parquet's numbers. `least` and `greatest`
    are values as Parquet stores them, None where they are unknown."""

    path: bytes
    physical: int
    codec: int
    rows: int
    offset: int
    stored_bytes: int
    dictionary_bytes: int
    page_bytes: int
    encoding: int
    nulls: int
    least: bytes | None
    greatest: bytes | None


@dataclass(frozen=True, slots=True)
class ChunkFooter:
    """The metadata of a column of a row group in the footer, and its page indexes (`column_index` None: there is none). The
    numbers of `offset_index` are where pages are in the file."""

    template: Template
    column_index: bytes | None
    offset_index: Template
    stored_bytes: int
    page_bytes: int
    offset: int


def _field(step: int, kind: int) -> bytes:
    """Encode the header of the field whose id is `step` above the last one."""
    return bytes([step << 4 | kind])


def _list(kind: int, size: int) -> bytes:
    """Encode the header of a list of fewer than 15 elements."""
    return bytes([size << 4 | kind])


_LIST = 9
_NEXT_I32, _NEXT_I64, _NEXT_LIST = _field(1, I32), _field(1, I64), _field(1, _LIST)
_NEXT_BINARY, _NEXT_STRUCT, _NEXT_TRUE = _field(1, BINARY), _field(1, STRUCT), _field(1, TRUE)
_THIRD_STRUCT = _field(3, STRUCT)
_ONE_BINARY = _NEXT_LIST + _list(BINARY, 1)
_ONE_PAGE, _ONE_NULL_PAGE = (
    _NEXT_LIST + _list(TRUE, 1) + bytes([is_null]) for is_null in (FALSE, TRUE)
)
_ASCENDS = _NEXT_I32 + integer(_ASCENDING) + _NEXT_LIST + _list(I64, 1)
_PAGE_PLACE = _NEXT_LIST + list_header(1) + _NEXT_I64
_NO_OFFSET = Number("data offset", 0)
_OFFSET_INDEX_PLACE = (
    Number("offset index's offset", 0),
    _NEXT_I32,
    Number("offset index's bytes", 0),
)
_COLUMN_INDEX_PLACE = (
    _NEXT_I64,
    Number("column index's offset", 0),
    _NEXT_I32,
    Number("column index's bytes", 0),
)


def chunk_footer(facts: ChunkFacts) -> ChunkFooter:
    """Return the bytes that the footer and the page indexes have for a column of a row group. Numbers that depend on the
    place in the file stay open."""
    data_offset = facts.offset + facts.dictionary_bytes
    column_index = _column_index(facts)
    template: Template = [
        b"\x26",
        _NO_OFFSET,  # deprecated, as Arrow writes it
        b"".join((_NEXT_STRUCT, _column_start(facts), b"\x26")),
        Number("data offset", data_offset),
    ]
    if facts.dictionary_bytes:
        template += [b"\x26", Number("data offset", facts.offset)]
    template += [
        b"".join(
            (
                _NEXT_STRUCT if facts.dictionary_bytes else _THIRD_STRUCT,
                _statistics(facts),
                _page_counts(facts),
            )
        ),
        *_OFFSET_INDEX_PLACE,
    ]
    if column_index is not None:
        template += _COLUMN_INDEX_PLACE
    template.append(b"\0")
    return ChunkFooter(
        template,
        column_index,
        _offset_index(data_offset, facts.stored_bytes - facts.dictionary_bytes),
        facts.stored_bytes,
        facts.page_bytes,
        facts.offset,
    )


def row_group_template(
    chunks: Sequence[ChunkFooter], rows: int, sorting: Sequence[tuple[int, bool]]
) -> Template:
    """Return a row group of these columns. `sorting` has the leaf columns of the sorting key, and whether each descends."""
    template: Template = [_field(1, _LIST) + list_header(len(chunks))]
    for chunk in chunks:
        template += chunk.template
    ends = _field(1, I64) + integer(sum(chunk.page_bytes for chunk in chunks))
    ends += _field(1, I64) + integer(rows)
    if sorting:
        ends += _field(1, _LIST) + list_header(len(sorting))
        for leaf, descends in sorting:
            flags = _field(1, TRUE if descends else FALSE) + _field(1, FALSE)
            ends += _field(1, I32) + integer(leaf) + flags + b"\0"
    template += [
        ends + _field(1 if sorting else 2, I64),
        Number("data offset", min((chunk.offset for chunk in chunks), default=0)),
        _field(1, I64) + integer(sum(chunk.stored_bytes for chunk in chunks)) + b"\0",
    ]
    return template


def _binary(value: bytes) -> bytes:
    """Encode bytes with their number before them."""
    return varint(len(value)) + value


def _column_start(facts: ChunkFacts) -> bytes:
    """Encode the first fields of the metadata of a column, up to and including the sizes of its pages."""
    return b"".join(
        (
            *(_NEXT_I32, integer(facts.physical), _NEXT_LIST),
            _encodings(facts.encoding, facts.dictionary_bytes > 0),
            *(_ONE_BINARY, varint(len(facts.path)), facts.path),
            *(_NEXT_I32, integer(facts.codec)),
            *(_NEXT_I64, integer(facts.rows)),
            *(_NEXT_I64, integer(facts.page_bytes)),
            *(_NEXT_I64, integer(facts.stored_bytes)),
        )
    )


@cache
def _encodings(encoding: int, has_dictionary: bool) -> bytes:
    """Encode the list of the encodings of a column's pages."""
    encodings = [encoding, RLE, PLAIN] if has_dictionary else [encoding, RLE]
    return _list(I32, len(encodings)) + b"".join(map(integer, encodings))


def _statistics(facts: ChunkFacts) -> bytes:
    """Encode the least and the greatest value, and the number of NULLs."""
    nulls = _field(3, I64) + integer(facts.nulls)
    if facts.least is None or facts.greatest is None:
        return nulls + b"\0"
    return b"".join(
        (
            nulls,
            *(_field(2, BINARY), _binary(facts.greatest)),
            *(_NEXT_BINARY, _binary(facts.least)),
            *(_NEXT_TRUE, _NEXT_TRUE, b"\0"),  # both are values of the column
        )
    )


def _page_counts(facts: ChunkFacts) -> bytes:
    """Encode how many pages there are of each kind, the end of the metadata, and the next field's header."""
    return _counts(facts.encoding, facts.dictionary_bytes > 0)


@cache
def _counts(encoding: int, has_dictionary: bool) -> bytes:
    """Encode what `_page_counts` returns."""
    pages = [(DATA_PAGE, encoding)]
    if has_dictionary:
        pages.insert(0, (DICTIONARY_PAGE, PLAIN))
    encoded = _NEXT_LIST + list_header(len(pages))
    for kind, page_encoding in pages:
        encoded += _NEXT_I32 + integer(kind) + _NEXT_I32 + integer(page_encoding)
        encoded += _NEXT_I32 + integer(1) + b"\0"
    return encoded + b"\0" + _NEXT_I64


def _column_index(facts: ChunkFacts) -> bytes | None:
    """Encode the least and greatest value of the only page; None where they are unknown."""
    is_null = facts.nulls == facts.rows
    if facts.least is None or facts.greatest is None:
        if not is_null:
            return None
        least = greatest = b""
    else:
        least, greatest = facts.least, facts.greatest
    return b"".join(
        (
            _ONE_NULL_PAGE if is_null else _ONE_PAGE,
            *(_ONE_BINARY, _binary(least)),
            *(_ONE_BINARY, _binary(greatest)),
            *(_ASCENDS, integer(facts.nulls), b"\0"),
        )
    )


def _offset_index(offset: int, stored_bytes: int) -> Template:
    """Encode the offset index of a column with one data page: where it is, which stays open, and its bytes."""
    end = b"".join((_NEXT_I32, integer(stored_bytes), _NEXT_I64, integer(0), b"\0\0"))
    return [_PAGE_PLACE, Number("data offset", offset), end]

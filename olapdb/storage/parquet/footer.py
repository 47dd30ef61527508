"""Parse Parquet's footers and page indexes, and encode them again with other offsets.

They are Thrift structs in the compact protocol.  Only the numbers that depend on positions in the
file are interpreted (offsets, lengths, counts); all other bytes are copied.  The fields:
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift, the protocol:
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from olapdb.errors import InternalError
from olapdb.records import dataclass

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_DOUBLE_BYTES = 8
_LONG_LIST = 15
"""A list's header holds its size, or this where the size follows."""


class Number(NamedTuple):
    """A number of a struct that may be replaced; `field` names it."""

    field: str
    value: int


Template: TypeAlias = list[bytes | Number]
"""An encoded struct: its bytes and, between them, the numbers that may be replaced."""

Wanted: TypeAlias = Mapping[int, "str | Wanted"]
"""Which numbers of a struct to extract, by field id: the number's name, or a nested mapping for a
field that is a struct or a list of structs."""

_CHUNK: Wanted = {
    2: "data offset",
    3: {9: "data offset", 10: "data offset", 11: "data offset"},
    4: "offset index's offset",
    5: "offset index's bytes",
    6: "column index's offset",
    7: "column index's bytes",
}
_SIZES: Wanted = {3: {6: "whole", 7: "stored"}}
_ROW_GROUP: Wanted = {1: _CHUNK, 5: "data offset", 7: "ordinal"}
_OFFSET_INDEX: Wanted = {1: {1: "data offset"}}
_ROWS, _ROW_GROUPS, _KEY_VALUES = 3, 4, 5


@dataclass(frozen=True, slots=True)
class Footer:
    """A FileMetaData: its `rows`, a template for each row group, its key-value pairs, and the bytes
    before, between and after them, without the lists' headers."""

    before_rows: bytes
    rows: int
    before_row_groups: bytes
    row_groups: tuple[Template, ...]
    before_key_values: bytes
    key_values: tuple[bytes, ...]
    after: bytes


def parse_footer(data: bytes) -> Footer:
    """Parse the bytes of a FileMetaData. Raises InternalError where rows, row groups or key-value
    pairs are missing, which our own files always have."""
    cursor = _Cursor(data)
    start = 0
    before: list[bytes] = []
    rows = 0
    row_groups: tuple[Template, ...] = ()
    for field, kind in cursor.fields():
        if field in (_ROWS, _ROW_GROUPS, _KEY_VALUES):
            before.append(data[start : cursor.at])
        if field == _ROWS:
            rows = cursor.integer()
        elif field == _ROW_GROUPS:
            row_groups = tuple(_template(cursor, _ROW_GROUP) for _ in range(cursor.list_size()))
        elif field == _KEY_VALUES:
            pairs = tuple(_bytes_of_struct(cursor) for _ in range(cursor.list_size()))
            if len(before) == 3:
                return Footer(
                    before[0], rows, before[1], row_groups, before[2], pairs, data[cursor.at :]
                )
        else:
            cursor.skip(kind)
            continue
        start = cursor.at
    raise InternalError("A Parquet footer without rows, row groups or key-value pairs.")


def footer_bytes(footer: Footer) -> bytes:
    """Encode a footer; the inverse of `parse_footer`."""
    return b"".join(
        (
            footer.before_rows,
            integer(footer.rows),
            footer.before_row_groups,
            list_header(len(footer.row_groups)),
            *(encode(template) for template in footer.row_groups),
            footer.before_key_values,
            list_header(len(footer.key_values)),
            *footer.key_values,
            footer.after,
        )
    )


def parse_chunks(data: bytes) -> list[list[tuple[Template, int, int, int]]]:
    """Parse the columns of each row group of a FileMetaData: the column's template, its bytes in the file and without
    compression, and where its pages begin."""
    cursor = _Cursor(data)
    row_groups = []
    for field, kind in cursor.fields():
        if field == _ROW_GROUPS:
            row_groups = [_row_group_chunks(cursor) for _ in range(cursor.list_size())]
        else:
            cursor.skip(kind)
    return row_groups


def _row_group_chunks(cursor: _Cursor) -> list[tuple[Template, int, int, int]]:
    """Parse the columns of the row group at the cursor, as `parse_chunks` gives them."""
    chunks: list[tuple[Template, int, int, int]] = []
    for field, kind in cursor.fields():
        if field != 1:
            cursor.skip(kind)
            continue
        for _ in range(cursor.list_size()):
            start = cursor.at
            template = _template(cursor, _CHUNK)
            end, cursor.at = cursor.at, start
            sizes = {n.field: n.value for n in _template(cursor, _SIZES) if isinstance(n, Number)}
            assert cursor.at == end
            offsets = [
                item.value
                for item in template
                if isinstance(item, Number) and item.field == "data offset" and item.value
            ]
            chunks.append((template, sizes["stored"], sizes["whole"], min(offsets)))
    return chunks


def parse_offset_index(data: bytes) -> Template:
    """Parse an offset index; its "data offset" numbers are the offsets of the pages."""
    return _template(_Cursor(data), _OFFSET_INDEX)


def encode(template: Template, shift: int = 0) -> bytes:
    """Return the bytes of the struct that the template describes, with `shift` added to its numbers."""
    return b"".join(
        [item if isinstance(item, bytes) else integer(item.value + shift) for item in template]
    )


def key_value(key: bytes, value: bytes) -> bytes:
    """Encode one key-value pair of a footer."""
    header = 1 << 4 | BINARY  # the next field, a binary
    return b"".join(
        (bytes([header]), varint(len(key)), key, bytes([header]), varint(len(value)), value, b"\0")
    )


def _template(cursor: _Cursor, wanted: Wanted) -> Template:
    """Parse the struct at the cursor into bytes and the numbers that `wanted` names, by Thrift
    field id. Move the cursor behind the struct."""
    template: Template = []
    copied = cursor.at

    def walk(wanted: Wanted) -> None:
        """Walk over the struct at the cursor. Append numbers that `wanted` names, with the bytes
        before each, to the template; skip other fields."""
        nonlocal copied
        for field, kind in cursor.fields():
            name_or_struct = wanted.get(field)
            if name_or_struct is None:
                cursor.skip(kind)
            elif isinstance(name_or_struct, str):
                template.append(cursor.data[copied : cursor.at])
                template.append(Number(name_or_struct, cursor.integer()))
                copied = cursor.at
            else:
                for _ in range(cursor.list_size() if kind == LIST else 1):
                    walk(name_or_struct)

    walk(wanted)
    template.append(cursor.data[copied : cursor.at])
    return template


def _bytes_of_struct(cursor: _Cursor) -> bytes:
    """Return the bytes of the struct at the cursor, and move the cursor behind it."""
    start = cursor.at
    cursor.skip(STRUCT)
    return cursor.data[start : cursor.at]


class _Cursor:
    """A reader over the bytes of a struct; `at` is its position."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield (id, kind) of the struct's fields. The caller reads or skips each value before the
        next."""
        field = 0
        while header := self.byte():
            delta, kind = header >> 4, header & 15
            field = field + delta if delta else self.integer()
            yield field, kind

    def byte(self) -> int:
        """Read one byte."""
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        """Read an unsigned integer of variable length (ULEB128)."""
        data, at = self.data, self.at
        value = shift = 0
        while (byte := data[at]) & 128:
            value |= (byte & 127) << shift
            shift += 7
            at += 1
        self.at = at + 1
        return value | byte << shift

    def integer(self) -> int:
        """Read an I16, I32 or I64 (zigzag)."""
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def list_size(self) -> int:
        """Read the header of a list of structs; return its length."""
        kind, size = self._list_header()
        if kind != STRUCT:
            raise InternalError(f"A list of kind {kind} in a Parquet footer, not of structs.")
        return size

    def _list_header(self) -> tuple[int, int]:
        """Read the header of a list: (Thrift kind of its elements, their number)."""
        header = self.byte()
        size = header >> 4
        return header & 15, self.varint() if size == _LONG_LIST else size

    def skip(self, kind: int) -> None:
        """Move behind a value of the Thrift kind. Raise InternalError if the kind is unknown."""
        if kind in (I16, I32, I64):
            data, at = self.data, self.at
            while data[at] & 128:
                at += 1
            self.at = at + 1
        elif kind == BINARY:
            size = self.varint()
            self.at += size
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind in (LIST, SET):
            inner, size = self._list_header()
            for _ in range(size):
                self._skip_element(inner)
        elif kind == BYTE:
            self.at += 1
        elif kind == DOUBLE:
            self.at += _DOUBLE_BYTES
        elif kind not in (TRUE, FALSE):  # these have no bytes: the header holds the value
            raise InternalError(f"Kind {kind} in a Parquet footer.")

    def _skip_element(self, kind: int) -> None:
        """Move behind an element of a list, where a boolean takes one byte."""
        if kind in (TRUE, FALSE):
            self.at += 1
        else:
            self.skip(kind)


_SHORT = tuple(bytes([value]) for value in range(128))


def varint(value: int) -> bytes:
    """Encode a non-negative integer with variable length (ULEB128)."""
    if value < 1 << 7:
        return _SHORT[value]
    if value < 1 << 14:
        return bytes((value & 127 | 128, value >> 7))
    if value < 1 << 21:
        return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14))
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def integer(value: int) -> bytes:
    """Encode a signed integer: zigzag, then variable length."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def list_header(size: int) -> bytes:
    """Encode the header of a list of `size` structs."""
    if size < _LONG_LIST:
        return bytes([size << 4 | STRUCT])
    return bytes([_LONG_LIST << 4 | STRUCT]) + varint(size)

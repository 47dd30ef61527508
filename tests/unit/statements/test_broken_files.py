"""Files that are broken, or made to harm: each is an error that says so."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb import errors

pytestmark = pytest.mark.feature("formats")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[olapdb.Connection]:
    with olapdb.connect(settings={"user_files_path": str(tmp_path)}) as opened:
        yield opened


def _number(value: int) -> bytes:
    """Return a number as Avro has it."""
    rest = (value << 1) ^ (value >> 63)
    found = bytearray()
    while rest >= 0x80:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])


def _sized(data: bytes) -> bytes:
    return _number(len(data)) + data


def _avro(schema: object, rows: int, data: bytes, codec: bytes = b"null") -> bytes:
    """Return a file of Avro with one block."""
    facts = {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": codec}
    head = b"".join(_sized(name) + _sized(value) for name, value in facts.items())
    sync = bytes(16)
    return (
        b"Obj\x01" + _number(len(facts)) + head + b"\0" + sync + _number(rows) + _sized(data) + sync
    )


def _record(kind: object) -> object:
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "record", "name": "r"},
        {"type": "record", "name": "r", "fields": 5},
        {"type": "record", "name": ["r"], "fields": []},
        {"type": "record", "name": "r", "fields": [{"type": "int"}]},
        _record({"type": "array"}),
        _record({"type": "fixed", "name": "f", "size": "x"}),
        _record({"type": "enum", "name": "e", "symbols": [1]}),
        _record({"type": "bytes", "logicalType": "decimal"}),
    ],
)
def test_a_schema_of_avro_without_what_it_needs(
    schema: object, connection: olapdb.Connection, tmp_path: Path
) -> None:
    (tmp_path / "a.avro").write_bytes(_avro(schema, 1, b"\0"))
    with pytest.raises(errors.CannotExtractTableStructure, match="schema of the Avro data"):
        connection.execute("SELECT * FROM file('a.avro', 'Avro')")


@pytest.mark.parametrize("rows", [-5, 1 << 60])
def test_a_block_of_avro_with_a_number_of_rows_that_there_cannot_be(
    rows: int, connection: olapdb.Connection, tmp_path: Path
) -> None:
    (tmp_path / "a.avro").write_bytes(_avro(_record("null"), rows, b""))
    with pytest.raises(errors.IncorrectData, match="cannot have"):
        connection.execute("SELECT * FROM file('a.avro', 'Avro')").fetchall()


def test_a_block_of_avro_that_says_to_be_larger_than_snappy_makes_it(
    connection: olapdb.Connection, tmp_path: Path
) -> None:
    data = b"\xff\xff\xff\xff\x0f" + bytes(8)
    (tmp_path / "a.avro").write_bytes(_avro(_record("int"), 1, data, b"snappy"))
    with pytest.raises(errors.IncorrectData, match="cannot have 4294967295 bytes"):
        connection.execute("SELECT * FROM file('a.avro', 'Avro')").fetchall()


def test_an_enum_of_avro_may_have_a_backslash(
    connection: olapdb.Connection, tmp_path: Path
) -> None:
    schema = _record({"type": "enum", "name": "e", "symbols": ["x\\", "it's"]})
    (tmp_path / "a.avro").write_bytes(_avro(schema, 2, b"\x00\x02"))
    rows = connection.execute("SELECT * FROM file('a.avro', 'Avro')").fetchall()
    assert rows == [("x\\",), ("it's",)]


@pytest.mark.parametrize("size", [-(1 << 31), 0, 100, (1 << 31) - 1])
def test_a_text_of_bson_has_a_size_that_fits_its_document(
    size: int, connection: olapdb.Connection, tmp_path: Path
) -> None:
    inner = b"\x02y\0" + struct.pack("<i", size) + b"abc\0" + b"\0"
    body = b"\x03t\0" + struct.pack("<i", 4 + len(inner)) + inner + b"\0"
    (tmp_path / "a.bson").write_bytes(struct.pack("<i", 4 + len(body)) + body)
    with pytest.raises((errors.IncorrectData, errors.CannotReadAllData)):
        connection.execute(
            "SELECT * FROM file('a.bson', 'BSONEachRow', 't Tuple(y String)')"
        ).fetchall()


@pytest.mark.parametrize("partition", ["'..'", "'.'", "''", "NULL", "'a/b'"])
def test_a_partition_that_is_no_name_of_a_file(
    partition: str, connection: olapdb.Connection, tmp_path: Path
) -> None:
    with pytest.raises(errors.BadArguments, match="cannot be in the name of a file"):
        connection.execute(
            "INSERT INTO FUNCTION file('a/{_partition_id}/f.csv', 'CSV', 'x UInt8')"
            f" PARTITION BY {partition} SELECT 1"
        )
    assert not (tmp_path / "f.csv").exists()

"""RowBinary is read as it was written, whatever the types, sizes and blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb
from olapdb import errors
from olapdb.formats import byte_positions

pytestmark = pytest.mark.feature("formats")

_QUERY = """SELECT number::UInt8 AS a, if(number % 2, NULL, number - 5)::Nullable(Int32) AS b,
 arrayMap(x -> repeat('v', x * 60), range(number % 5)) AS c,
 CAST(([concat('k', toString(number)), ''], [range(number % 3), [7]]), 'Map(String, Array(UInt16))') AS d,
 (number % 7, if(number = 2, NULL, 'zz'))::Tuple(Int8, Nullable(String)) AS t,
 toDate('2024-01-01') + number AS e, toDateTime('2024-01-01 00:00:01', 'UTC') + number AS f,
 toDateTime64('1924-01-01 00:00:01.123', 3, 'UTC') AS g, generateUUIDv4(number) AS u,
 toDecimal32(number * -1.5, 2) AS de, toDecimal128(number * -1.5, 5) AS de2, toFixedString('ab', 3) AS fs,
 CAST('a', 'Enum8(''a'' = 1)') AS en, toIPv4('1.2.3.4') AS ip, toIPv6('::1') AS ip6,
 toInt128(number) * -3 AS i128, toUInt256(7) AS u256, number / 3 AS fl, toFloat32(number) AS f32,
 CAST(if(number = 1, NULL, 'q'), 'LowCardinality(Nullable(String))') AS lc, number % 3 = 1 ? true : false AS bo,
 toDate32('1950-01-01') AS d32, [[(number, [NULL, 'x'])], []] AS deep, repeat('long ', number * 20) AS s
 FROM numbers(100)"""


@pytest.mark.parametrize("head", ["", "WithNames", "WithNamesAndTypes"])
@pytest.mark.parametrize("block_bytes", [1 << 8, 1 << 18])
def test_rows_are_read_as_they_were_written(
    head: str, block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_positions, "BLOCK_BYTES", block_bytes)
    with olapdb.connect(settings={"user_files_path": str(tmp_path)}) as connection:
        connection.execute(f"CREATE TABLE t ENGINE = Memory AS {_QUERY}")
        text = connection.execute("SELECT * FROM t").fetch_text(f"RowBinary{head}")
        (tmp_path / "data.bin").write_bytes(text)
        connection.execute("CREATE TABLE u AS t")
        connection.execute(f"INSERT INTO u FROM INFILE 'data.bin' FORMAT RowBinary{head}")
        select = "SELECT * FROM {} ORDER BY a FORMAT JSONEachRow"
        expected = connection.execute(select.format("t")).fetch_text()
        assert connection.execute(select.format("u")).fetch_text() == expected


def test_a_row_without_its_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"\x01\x05abc")
    with olapdb.connect(settings={"user_files_path": str(tmp_path)}) as connection:
        with pytest.raises(errors.CannotReadAllData):
            connection.execute("SELECT * FROM file('data.bin', RowBinary, 'a UInt8, s String')")
        with pytest.raises(errors.BadArguments, match="do not say their columns"):
            connection.execute("SELECT * FROM file('data.bin', RowBinary)")

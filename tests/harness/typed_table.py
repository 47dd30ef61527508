"""One small table of every type, with extremes and NULLs, the same in olapdb and in the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from olapdb import functions
from olapdb.functions import Environment
from olapdb.types import STRING, make_nullable
from tests.harness.expressions import Value
from tests.harness.oracle import Oracle

COLUMNS: Mapping[str, tuple[str, Sequence[str | None]]] = {
    "u8": ("UInt8", ["0", "1", "2", "255", "7", "100"]),
    "u16": ("UInt16", ["0", "1", "3", "65535", "9", "10"]),
    "u32": ("UInt32", ["0", "1", "5", "4294967295", "9", "86400"]),
    "u64": ("UInt64", ["0", "1", "5", "18446744073709551615", "9", "9223372036854775808"]),
    "i8": ("Int8", ["0", "-1", "5", "127", "-128", "3"]),
    "i16": ("Int16", ["0", "-1", "5", "32767", "-32768", "3"]),
    "i32": ("Int32", ["0", "-1", "5", "2147483647", "-2147483648", "3"]),
    "i64": ("Int64", ["0", "-1", "5", "9223372036854775807", "-9223372036854775808", "3"]),
    "f32": ("Float32", ["0", "-1.5", "0.1", "inf", "1e20", "16777216"]),
    "f64": ("Float64", ["0", "-1.5", "0.1", "nan", "-inf", "2.5"]),
    "num": ("Float64", ["0", "-1.5", "0.1", "1234.5678", "-2.5", "2.5"]),
    "d9": ("Decimal(9, 2)", ["0", "-1.5", "1.05", "123.45", "99999.99", "3"]),
    "d18": ("Decimal(18, 4)", ["1", "-1.5", "0.0001", "123456.789", "2.5", "3"]),
    "small": ("UInt8", ["1", "2", "3", "4", "5", "6"]),
    "step": ("Int8", ["1", "-2", "3", "-4", "5", "6"]),
    "b": ("Bool", ["true", "false", "true", "false", "true", "true"]),
    "s": ("String", ["", "hello world", "a,b,,c", "ÄÖ ü", " pad ", "12"]),
    "t": ("String", ["x", "o", ",", "Ö", " ", "1"]),
    "digits": ("String", ["0", "12", "+7", "255", "3", "100"]),
    "fs": ("FixedString(3)", ["abc", "a", "", "xyz", "12", "b"]),
    "d": (
        "Date",
        ["1970-01-01", "2024-02-29", "2023-12-31", "2149-06-06", "2024-05-06", "2000-01-03"],
    ),
    "e": (
        "Date",
        ["1970-01-02", "2024-03-01", "2024-01-01", "2100-01-01", "2024-05-05", "1999-12-31"],
    ),
    "dt": (
        "DateTime",
        [
            "1970-01-01 00:00:00",
            "2024-02-29 23:59:59",
            "2023-12-31 12:30:45",
            "2106-02-07 06:28:15",
            "2024-05-06 07:08:09",
            "2000-01-03 00:00:00",
        ],
    ),
    "du": (
        "DateTime",
        [
            "1970-01-01 00:00:01",
            "2024-03-01 00:00:00",
            "2024-01-01 12:29:45",
            "2100-01-01 00:00:00",
            "2024-05-06 06:08:10",
            "1999-12-31 23:00:00",
        ],
    ),
    "ny": (
        "DateTime('America/New_York')",
        [
            "1970-01-02 00:00:00",
            "2024-02-29 23:59:59",
            "2023-12-31 12:30:45",
            "2024-03-10 01:30:00",
            "2024-11-03 00:30:00",
            "2000-01-03 00:00:00",
        ],
    ),
    "ms": (
        "DateTime64(3)",
        [
            "1970-01-01 00:00:00.000",
            "2024-02-29 23:59:59.999",
            "2023-12-31 12:30:45.123",
            "1950-06-01 01:02:03.004",
            "2024-05-06 07:08:09.500",
            "2200-01-03 00:00:00.001",
        ],
    ),
    "n8": ("Nullable(UInt8)", ["1", None, "3", "0", None, "255"]),
    "ni": ("Nullable(Int64)", [None, "-5", "3", "0", None, "255"]),
    "ns": ("Nullable(String)", ["a", None, "", "hello", "7", None]),
    "nd": ("Nullable(Date)", ["2024-01-01", None, "2023-12-31", None, "2024-05-06", "1970-01-01"]),
    "nf": ("Nullable(Float64)", ["1.5", None, "nan", "-0.5", None, "1e10"]),
    "lc": ("LowCardinality(String)", ["x", "y", "x", "", "hello", "x"]),
    "au": ("Array(UInt8)", ["[]", "[1]", "[1,2,3]", "[3,2,1,1]", "[0,255]", "[7]"]),
    "as_": ("Array(String)", ["[]", "['a']", "['a','b','a']", "['']", "['x','y']", "['12']"]),
    "an": ("Array(Nullable(Int32))", ["[]", "[1,NULL]", "[NULL]", "[3,2,NULL,2]", "[0,-5]", "[7]"]),
    "id": (
        "UUID",
        ["00010203-0405-0607-0809-0a0b0c0d0e0f"] * 5 + ["ffffffff-ffff-ffff-ffff-ffffffffffff"],
    ),
}
ROWS = 6


def values() -> dict[str, Value]:
    """Read the same texts as olapdb columns, by name."""
    made: dict[str, Value] = {}
    for name, (type_name, texts) in COLUMNS.items():
        data_type = functions.parse_type(type_name)
        source = pa.array(list(texts), pa.string())
        column = functions.cast_column(
            source, make_nullable(STRING), data_type, Environment(), strict=True
        )
        made[name] = Value(data_type, column)
    return made


def create(oracle: Oracle, name: str) -> None:
    """Create the same table in the oracle, with its row number in `row`."""
    columns = ", ".join(f"{column} {type_name}" for column, (type_name, _) in COLUMNS.items())
    oracle.execute(f"CREATE TABLE {name} (row UInt8, {columns}) ENGINE = Memory")
    rows = []
    for index in range(ROWS):
        texts = [str(index), *(_escaped(texts[index]) for _, texts in COLUMNS.values())]
        rows.append("\t".join(texts))
    body = "\n".join(rows) + "\n"
    oracle.execute(f"INSERT INTO {name} SETTINGS async_insert = 0 FORMAT TabSeparated\n{body}")


def _escaped(text: str | None) -> str:
    return "\\N" if text is None else text.replace("\\", "\\\\")

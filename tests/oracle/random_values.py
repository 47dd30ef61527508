"""Random tables of every column type: values with NULLs, duplicates, empty values and extremes."""

from __future__ import annotations

import random
from dataclasses import dataclass

ROWS_MAX, COLUMNS_MIN, COLUMNS_MAX = 24, 7, 14

POOLS: dict[str, tuple[str, ...]] = {
    "UInt8": ("0", "1", "2", "7", "255"),
    "UInt16": ("0", "1", "3", "300", "65535"),
    "UInt32": ("0", "1", "5", "86400", "4294967295"),
    "UInt64": ("0", "1", "5", "9223372036854775808", "18446744073709551615"),
    "Int8": ("0", "-1", "3", "127", "-128"),
    "Int16": ("0", "-1", "5", "32767", "-32768"),
    "Int32": ("0", "-1", "5", "2147483647", "-2147483648"),
    "Int64": ("0", "-1", "5", "-9007199254740993", "9223372036854775807", "-9223372036854775808"),
    "Float32": ("0", "-1.5", "0.1", "2.5", "1e20", "16777216", "nan", "inf"),
    "Float64": ("0", "-1.5", "0.1", "2.5", "1234.5678", "-inf", "nan", "9007199254740993"),
    "Decimal(9, 2)": ("0", "-1.5", "1.05", "123.45", "99999.99", "3"),
    "Decimal(18, 4)": ("1", "-1.5", "0.0001", "123456.789", "2.5"),
    "Decimal(38, 10)": ("1", "-1.5", "0.0000000001", "123456789012.5"),
    "Bool": ("true", "false"),
    "String": (
        "''",
        "'a'",
        "'hello world'",
        "'a,b,,c'",
        "'ÄÖ ü'",
        "' pad '",
        "'12'",
        "'x\\ny'",
        "'A'",
    ),
    "FixedString(3)": ("'abc'", "'a'", "''", "'xyz'", "'12'"),
    "LowCardinality(String)": ("'x'", "'y'", "''", "'hello'"),
    "Date": ("'1970-01-01'", "'2024-02-29'", "'2023-12-31'", "'2024-05-06'", "'2100-01-01'"),
    "Date32": ("'1970-01-01'", "'1950-06-01'", "'2024-02-29'", "'2200-01-03'"),
    "DateTime": (
        "'1970-01-02 00:00:00'",
        "'2024-02-29 23:59:59'",
        "'2024-05-06 07:08:09'",
        "'2000-01-03 00:00:00'",
    ),
    "DateTime('America/New_York')": (
        "'2024-02-29 23:59:59'",
        "'2024-03-10 01:30:00'",
        "'2000-01-03 00:00:00'",
        "'2023-12-31 12:30:45'",
    ),
    "DateTime64(3)": (
        "'2024-02-29 23:59:59.999'",
        "'1950-06-01 01:02:03.004'",
        "'2024-05-06 07:08:09.500'",
        "'2200-01-03 00:00:00.001'",
    ),
    "DateTime64(6, 'Asia/Tokyo')": (
        "'2024-02-29 23:59:59.999999'",
        "'2024-05-06 07:08:09.5'",
        "'1999-12-31 23:59:59.000001'",
    ),
    "UUID": (
        "'00010203-0405-0607-0809-0a0b0c0d0e0f'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'",
    ),
    "Array(UInt8)": ("[]", "[1]", "[1, 2, 3]", "[3, 2, 1, 1]", "[0, 255]"),
    "Array(Int64)": ("[]", "[-1]", "[1, -2, 3]", "[9223372036854775807]"),
    "Array(String)": ("[]", "['a']", "['a', 'b', 'a']", "['']", "['x', 'y']"),
    "Array(Nullable(Int32))": ("[]", "[1, NULL]", "[NULL]", "[3, 2, NULL, 2]"),
    "Array(Float64)": ("[]", "[1.5]", "[0, -1.5, 2]", "[2.5, 2.5]"),
    "Tuple(UInt8, String)": ("(1, 'a')", "(0, '')", "(255, 'hello')"),
    "Map(String, UInt64)": ("map()", "map('a', 1)", "map('a', 1, 'b', 2)", "map('', 0)"),
}
"""A type name and literals of its values."""
NULLABLE = tuple(t for t in POOLS if not t.startswith(("Array", "Map", "Low", "Tuple")))


@dataclass(frozen=True)
class Column:
    """A column's name and type."""

    name: str
    type_name: str


@dataclass(frozen=True)
class Table:
    """A random table: columns, and rows of literals."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]

    def statements(self) -> list[str]:
        """Return the CREATE and INSERT, valid in both engines."""
        columns = ", ".join(f"{c.name} {c.type_name}" for c in self.columns)
        made = [f"CREATE TABLE {self.name} ({columns}) ENGINE = MergeTree ORDER BY tuple()"]
        if self.rows:
            rows = ", ".join(f"({', '.join(row)})" for row in self.rows)
            made.append(f"INSERT INTO {self.name} VALUES {rows}")
        return made


def random_table(draw: random.Random, name: str, prefix: str) -> Table:
    """Draw a table whose first columns, a small key and a Nullable one, find matches in joins."""
    types = ["UInt8", "Nullable(Int64)", "String"]
    while len(types) < draw.randint(COLUMNS_MIN, COLUMNS_MAX):
        kind = draw.choice(tuple(POOLS))
        types.append(f"Nullable({kind})" if kind in NULLABLE and draw.random() < 0.3 else kind)
    columns = tuple(Column(f"{prefix}{at}", one) for at, one in enumerate(types))
    count = 0 if draw.random() < 0.04 else draw.randint(1, ROWS_MAX)
    rows = tuple(tuple(_value(draw, c.type_name) for c in columns) for _ in range(count))
    return Table(name, columns, rows)


def _value(draw: random.Random, type_name: str) -> str:
    if type_name.startswith("Nullable("):
        type_name = type_name[len("Nullable(") : -1]
        if draw.random() < 0.3:
            return "NULL"
    return draw.choice(POOLS[type_name])

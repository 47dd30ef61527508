"""Names of types from other databases, of one or more words, and what they stand for."""

from __future__ import annotations

from olapdb.types.base import DataType
from olapdb.types.scalars import (
    BOOL,
    DATE,
    DATE32,
    DATETIME,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    IPV4,
    IPV6,
    STRING,
    TIME,
    UINT16,
    UINT64,
    UUID_TYPE,
    Integer,
    Time64,
)

_INTEGERS: dict[str, DataType] = {
    "BIGINT": INT64,
    "INT": INT32,
    "INT1": INT8,
    "INTEGER": INT32,
    "MEDIUMINT": INT32,
    "SMALLINT": INT16,
    "TINYINT": INT8,
}
"""Integers that may say SIGNED or UNSIGNED."""

_TEXTS = (
    "BINARY LARGE OBJECT, BINARY VARYING, BLOB, BYTEA, CHAR, CHAR LARGE OBJECT, CHAR VARYING, "
    "CHARACTER, CHARACTER LARGE OBJECT, CHARACTER VARYING, CLOB, LONGBLOB, LONGTEXT, MEDIUMBLOB, "
    "MEDIUMTEXT, NATIONAL CHAR, NATIONAL CHAR VARYING, NATIONAL CHARACTER, "
    "NATIONAL CHARACTER LARGE OBJECT, NATIONAL CHARACTER VARYING, NCHAR, NCHAR LARGE OBJECT, "
    "NCHAR VARYING, NVARCHAR, TEXT, TINYBLOB, TINYTEXT, VARBINARY, VARCHAR, VARCHAR2"
)

ALIASES: dict[str, DataType] = {
    **_INTEGERS,
    **{f"{name} SIGNED": data_type for name, data_type in _INTEGERS.items()},
    **{
        f"{name} UNSIGNED": Integer(data_type.bits, False)
        for name, data_type in _INTEGERS.items()
        if isinstance(data_type, Integer)
    },
    **dict.fromkeys(_TEXTS.split(", "), STRING),
    "SIGNED": INT64,
    "UNSIGNED": UINT64,
    "BIT": UINT64,
    "BYTE": INT8,
    "SET": UINT64,
    "YEAR": UINT16,
    "DOUBLE": FLOAT64,
    "DOUBLE PRECISION": FLOAT64,
    "FLOAT": FLOAT32,
    "REAL": FLOAT32,
    "SINGLE": FLOAT32,
    "BOOL": BOOL,
    "BOOLEAN": BOOL,
    "TIMESTAMP": DATETIME,
    "DATE": DATE,
    "DATE32": DATE32,
    "DATETIME": DATETIME,
    "DATETIME32": DATETIME,
    "UUID": UUID_TYPE,
    "TIME": TIME,
    "TIME64": Time64(3),
    "INET4": IPV4,
    "INET6": IPV6,
}
"""What each name stands for, in capitals."""

DECIMALS = ("DECIMAL", "NUMERIC", "DEC", "FIXED")
"""Names of Decimal."""

_STARTS = frozenset(
    " ".join(words[:count])
    for words in (name.split() for name in ALIASES)
    for count in range(2, len(words) + 1)
)


def continues(name: str, word: str) -> bool:
    """Return whether `word` after `name` may continue the name of one type, such as DOUBLE PRECISION."""
    return f"{name} {word}".upper() in _STARTS


def with_length(name: str) -> DataType | None:
    """Return the type of an alias whose length in brackets has no meaning: `INT(11)`, `VARCHAR(10)`, `FLOAT(10, 2)`.
    None for names of other types."""
    target = ALIASES.get(name.upper())
    return target if target in _WITH_LENGTH else None


_WITH_LENGTH = frozenset(
    (STRING, FLOAT32, FLOAT64, UINT64, UINT16, *(t for n, t in ALIASES.items() if "INT" in n))
)

CASE_INSENSITIVE = {
    name.upper(): name
    for name in (
        *("DateTime", "DateTime64"),
        *("Decimal32", "Decimal64", "Decimal128", "Decimal256"),
        "Enum",
    )
} | {"BINARY": "FixedString", "DATETIME32": "DateTime"}
"""Names with arguments that may be written in any case, or have another one."""

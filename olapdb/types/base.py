"""The base class of data types."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from olapdb.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


UTC = "UTC"


@dataclass(frozen=True)
class DataType:
    """The base of all types. Equality and hash are by value."""

    @property
    def name(self) -> str:
        """ClickHouse's name of the type, arguments included ("Decimal(9, 2)")."""
        raise NotImplementedError

    @cached_property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column; nullability is not part of it."""
        from olapdb.types.arrow import arrow_type  # a cycle: it imports the types

        return arrow_type(self)

    def __str__(self) -> str:
        """Return the type's name."""
        return self.name


_QUOTED_WORDS = frozenset(
    {"all", "distinct", "false", "from", "null", "select", "table", "true", "values"}
)
"""Words that ClickHouse quotes where they are names."""


def quote_identifier(name: str) -> str:
    """Quote an identifier as ClickHouse does: in backquotes unless it is a plain word."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    if plain and name.lower() not in _QUOTED_WORDS:
        return name
    return backquoted(name)


def backquoted(name: str) -> str:
    """Put the name in backquotes, as ClickHouse writes every name in a column definition."""
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


_ESCAPES = str.maketrans(
    {
        "\\": "\\\\",
        "'": "\\'",
        "\0": "\\0",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
    }
)
_SURROGATE = re.compile("[\udc80-\udcff]")
"""A byte that is no UTF-8, as `surrogateescape` reads it."""


def quote_string(text: str) -> str:
    r"""Quote a text as an SQL string literal, escaped as ClickHouse does. Surrogates, which stand for bytes that are
    not UTF-8, become `\xHH`."""
    escaped = text.translate(_ESCAPES)
    if not escaped.isascii() and _SURROGATE.search(escaped):
        escaped = _SURROGATE.sub(lambda m: f"\\x{ord(m[0]) - 0xDC00:02X}", escaped)
    return f"'{escaped}'"

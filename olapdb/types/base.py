"""What every data type is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


UTC = "UTC"


@dataclass(frozen=True)
class DataType:
    """Base of all types. Equality and hash are by value."""

    @property
    def name(self) -> str:
        raise NotImplementedError

    @cached_property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column; nullability is not part of it."""
        import pyarrow as pa

        return self._arrow(pa)

    def _arrow(self, pa_module: object) -> pa.DataType:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.name


_QUOTED_WORDS = frozenset(
    {"all", "distinct", "false", "from", "null", "select", "table", "true", "values"}
)
"""Words that ClickHouse quotes where they are names."""


def quote_identifier(name: str) -> str:
    """Return the name as ClickHouse writes it: in backquotes unless it is a plain word."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    if plain and name.lower() not in _QUOTED_WORDS:
        return name
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"

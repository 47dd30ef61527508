"""Constants as ClickHouse's syntax tree shows them: `UInt64_1`, `Float64_1.5`, `'text'`."""

from __future__ import annotations

_UINT64_MAX = 2**64 - 1
_INT64_MIN = -(2**63)
_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
)


def literal_label(value: bool | int | float | str | None, text: str) -> str:
    """Return a constant with its type before it; `text` is that of a number as it was written."""
    match value:
        case None:
            return "NULL"
        case bool():
            return f"Bool_{int(value)}"
        case str():
            return f"'{value.translate(_ESCAPES)}'"
        case int() if _INT64_MIN <= value < 0:
            return f"Int64_{value}"
        case int() if 0 <= value <= _UINT64_MAX:
            return f"UInt64_{value}"
        case _:
            number = float(text) if text else float(value)
            whole = number == int(number) if abs(number) < 1e15 else False
            return f"Float64_{int(number)}." if whole else f"Float64_{number!r}"

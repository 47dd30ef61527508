"""Literals and names in ClickHouse's form."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from olapdb.sql.json_steps import read_json_step
from olapdb.sql.parser.keywords import MUST_QUOTE, QUOTED_WHERE_SHOWN, SHOWN_BARE
from olapdb.types.base import quote_string as quote_string

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_QUOTED_WORD = re.compile(r"'(?:[^'\\]|\\.)*'|(\bAS )?`([A-Za-z]+)`|`(?:[^`\\]|\\.)*`", re.DOTALL)


def quote_name(name: str) -> str:
    """Return a name, in backquotes where the parser would not read it back as a name."""
    if _PLAIN_NAME.match(name) and name.upper() not in MUST_QUOTE:
        return name
    return name if read_json_step(name) is not None else backquote(name)


def show_name(name: str) -> str:
    """Return a name as ClickHouse shows it: with fewer backquotes than canonical texts have."""
    return name if name.upper() in SHOWN_BARE else quote_name(name)


def show_names(text: str) -> str:
    """Return a canonical text as ClickHouse shows it: names that the parser also reads without
    backquotes have none."""
    return _QUOTED_WORD.sub(_shown_word, text) if "`" in text else text


def _shown_word(match: re.Match[str]) -> str:
    """Return a name with the AS before it, in backquotes if they are needed; a literal as it is."""
    behind_as, name = match.groups()
    if name is None:
        return match[0]
    word = name.upper()
    bare = word not in QUOTED_WHERE_SHOWN if behind_as else word in SHOWN_BARE
    return f"{behind_as or ''}{name}" if bare else match[0]


def quote_dotted_name(name: str) -> str:
    """Return `a.b` with each part quoted where needed."""
    return ".".join(map(quote_name, name.split(".")))


def backquote(name: str) -> str:
    """Return a name in backquotes."""
    escaped = quote_string(name)[1:-1].replace("\\'", "'").replace("`", "\\`")
    return f"`{escaped}`"


def float_text(value: float) -> str:
    """Return the shortest text in ClickHouse's form: `1.`, `0.1`, `1e100`, `1e-7`, `inf`, `nan`."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return mantissa[:-1] if mantissa.endswith(".0") else mantissa
    power = int(exponent)
    if -7 < power < 0:
        return f"{Decimal(repr(value)):f}"
    if power < 0 or power > 20:
        return f"{mantissa.removesuffix('.0')}e{power}"
    # Python turns to powers at 1e16 and 1e-5, ClickHouse at 1e21 and 1e-7
    whole, _, fraction = mantissa.partition(".")
    return f"{whole}{fraction.removesuffix('0') if fraction == '0' else fraction:0<{power}}."


def literal_text(value: bool | int | float | str | None) -> str:
    """Return a value as ClickHouse writes it in the name of a result column."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return float_text(value)
        case str():
            return quote_string(value)

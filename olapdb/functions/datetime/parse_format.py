"""Times from text by a given format: parseDateTime, parseDateTime64, both InJodaSyntax, and variants.

A format becomes one regular expression with a group for each part, which Arrow runs over the whole
column; the parts become numbers and the numbers a timestamp.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, CannotParseDateTime, NotSupportedError
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.casts.numbers import first_bad
from olapdb.functions.datetime.parsed_parts import ticks_of
from olapdb.functions.kernels import columns, regexes
from olapdb.records import dataclass
from olapdb.types import DateTime, DateTime64, String, make_nullable, plain
from olapdb.types.base import UTC

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FULL_MONTHS, _SHORT_MONTHS = "|".join(_MONTHS), "|".join(m[:3] for m in _MONTHS)
_FULL_DAYS, _SHORT_DAYS = "|".join(_DAYS), "|".join(d[:3] for d in _DAYS)
_WORDS = {
    "month_name": {name[:3]: at for at, name in enumerate(_MONTHS, 1)},
    "weekday_name": {name[:3]: at for at, name in enumerate(_DAYS, 1)},
    "half": {"am": 0, "pm": 12},
}


@dataclass(frozen=True)
class _Part:
    """A part of a time in a format: its name, and the regular expression that matches its text."""

    name: str
    pattern: str


_MOST_FRACTION = 6
"""The digits of a second that MySQL's %f has, and Joda's S at most. %f stands for tenths first, S for
a number of the last digit's units: .5 is 500000 by %f, 5 by SSSSSS."""
_SHORT = "[0-9]{1,2}"
_TWO = "[0-9]{2}"
_MYSQL: dict[str, _Part | str] = {
    "Y": _Part("year", "[0-9]{4}"),
    "y": _Part("short_year", "[0-9]{2}"),
    "m": _Part("month", _TWO),
    "c": _Part("month", _SHORT),
    "d": _Part("day", _TWO),
    "e": _Part("day", " *[0-9]{1,2}"),
    "j": _Part("day_of_year", "[0-9]{3}"),
    "H": _Part("hour", _TWO),
    "k": _Part("hour", _SHORT),
    "h": _Part("half_hour", _TWO),
    "I": _Part("half_hour", _TWO),
    "l": _Part("half_hour", _SHORT),
    "i": _Part("minute", _TWO),
    "s": _Part("second", _TWO),
    "S": _Part("second", _TWO),
    "p": _Part("half", "am|pm"),
    "M": _Part("month_name", _FULL_MONTHS),
    "b": _Part("month_name", _SHORT_MONTHS),
    "W": _Part("weekday_name", _FULL_DAYS),
    "a": _Part("weekday_name", _SHORT_DAYS),
    "z": _Part("offset", "[+-][0-9]{4}"),
    "u": _Part("weekday", "[0-9]"),
    "w": _Part("weekday_from_0", "[0-9]"),
    "V": _Part("week", _TWO),
    "G": _Part("year", "[0-9]{4}"),
    "g": _Part("short_year", _TWO),
    "C": _Part("century", _TWO),
    "f": _Part("fraction", "[0-9]{1,6}"),
    "F": "%Y-%m-%d",
    "T": "%H:%i:%s",
    "R": "%H:%i",
    "D": "%m/%d/%~",
    "~": _Part("short_year_of_2000", _TWO),
    "r": "%h:%i %p",
}
"""The letters of MySQL's formats, as parts or as other letters."""
_UNDER_SETTINGS: dict[str, dict[str, _Part | str]] = {
    "formatdatetime_parsedatetime_m_is_month_name": {"M": "%i"},
    "parsedatetime_e_requires_space_padding": {"e": _Part("day", " [0-9]|[0-9]{2}")},
    "parsedatetime_parse_without_leading_zeros": {
        "c": _Part("month", _TWO),
        "k": _Part("hour", _TWO),
        "l": _Part("half_hour", _TWO),
    },
}
"""The letters that mean something else where a setting is not at its default."""


def _mysql_tokens(name: str, template: str, changed: frozenset[str]) -> list[str | _Part]:
    """Split a format such as `%Y-%m-%d` into literal texts and parts. `changed` are the settings that are not at
    their defaults. Raises NotSupportedError for unknown letters."""
    tokens: list[str | _Part] = []
    letters = _MYSQL | {k: v for setting in changed for k, v in _UNDER_SETTINGS[setting].items()}
    for piece in re.findall("%.|[^%]+|%", template, re.DOTALL):
        meaning = letters.get(piece[1:]) if piece.startswith("%") else None
        if not piece.startswith("%"):
            tokens.append(piece)
        elif piece in ("%%", "%n", "%t"):
            tokens.append({"%%": "%", "%n": "\n", "%t": "\t"}[piece])
        elif isinstance(meaning, str):
            tokens += _mysql_tokens(name, meaning, changed)
        elif isinstance(meaning, _Part):
            tokens.append(meaning)
        else:
            raise NotSupportedError(
                f"{name} does not read the format {piece}.",
                hint=f"It reads {' '.join('%' + letter for letter in _MYSQL)}.",
            )
    return tokens


JODA_TOKEN = re.compile(r"'(?:[^']|'')*'|([a-zA-Z])\1*|[^a-zA-Z']+|'")
"""A quoted text, a letter with its repetitions, or other characters of a Joda format."""
_JODA: dict[str, str] = {
    "y": "year",
    "Y": "year",
    "x": "week_year",
    "w": "week",
    "e": "weekday",
    "D": "day_of_year",
    "d": "day",
    "H": "hour",
    "h": "half_hour",
    "k": "hour_from_1",
    "K": "hour_of_half",
    "m": "minute",
    "s": "second",
    "a": "half",
}


def _joda_tokens(name: str, template: str, _: frozenset[str]) -> list[str | _Part]:
    """Split a Joda format such as `yyyy-MM-dd 'at' HH:mm` into literal texts and parts. Raises BadArguments."""
    tokens: list[str | _Part] = []
    for match in JODA_TOKEN.finditer(template):
        piece = match[0]
        if piece.startswith("'"):
            if len(piece) < 2:
                raise BadArguments(f"{name}: no closing single quote for literal.")
            tokens.append("'" if piece == "''" else piece[1:-1].replace("''", "'"))
        elif not piece[0].isalpha():
            tokens.append(piece)
        else:
            tokens.append(_joda_part(name, piece[0], len(piece)))
    return tokens


def _joda_part(name: str, letter: str, count: int) -> _Part:
    """Return the part that `count` repetitions of a Joda letter mean. Raises CannotParseDateTime and
    NotSupportedError."""
    if letter == "M":
        if count < 3:
            return _Part("month", _SHORT)
        return _Part("month_name", _SHORT_MONTHS if count == 3 else _FULL_MONTHS)
    if letter == "S":
        if count > _MOST_FRACTION:
            raise CannotParseDateTime(f"{name} reads fractions of at most {_MOST_FRACTION} digits.")
        return _Part(f"fraction_{count}", f"[0-9]{{1,{count}}}")
    if letter == "E":
        return _Part("weekday_name", f"{_FULL_DAYS}|{_SHORT_DAYS}")
    meaning = _JODA.get(letter)
    if meaning is None:
        raise NotSupportedError(
            f"{name} does not read the format {letter * count}.",
            hint=f"It reads {' '.join(sorted((*_JODA, 'M', 'E')))}.",
        )
    if meaning in ("year", "week_year"):
        if count == 2:
            return _Part(f"short_{meaning}", _TWO)
        return _Part(meaning, "[0-9]" if count == 1 else "[0-9]{1,4}")
    if meaning == "half":
        return _Part("half", "am|pm")
    return _Part(meaning, "[0-9]{1,3}" if meaning == "day_of_year" else _SHORT)


def _expression(tokens: Sequence[str | _Part]) -> tuple[str, list[str]]:
    """Return the regular expression of a format, and the names of its groups' parts in order."""
    pattern = "(?is)^"
    names: list[str] = []
    for token in tokens:
        if isinstance(token, str):
            pattern += re.escape(token)
        else:
            pattern += f"(?P<g{len(names)}>{token.pattern})"
            names.append(token.name)
    return pattern + "$", names


def _numbers(texts: pa.Array, name: str) -> np.ndarray:
    """Convert the texts of the part `name` to numbers; int64, -1 for a word that is no name of the part."""
    if name == "offset":
        digits = pc.replace_substring(texts, ":", "")
        sign = np.where(np.asarray(pc.starts_with(digits, "-")), -1, 1)
        number = columns.numpy_values(pc.utf8_slice_codeunits(digits, 1).cast(pa.int64()))
        return np.asarray(sign * (number // 100 * 3_600 + number % 100 * 60))
    words = _WORDS.get(name)
    if name == "fraction":
        return columns.numpy_values(pc.utf8_rpad(texts, _MOST_FRACTION, "0").cast(pa.int64()))
    if words is None:
        return columns.numpy_values(pc.ascii_ltrim(texts, " ").cast(pa.int64()))
    heads = pc.utf8_slice_codeunits(pc.ascii_lower(texts), 0, 3)
    places = pc.index_in(heads, pa.array(list(words)))
    return columns.numpy_values(pa.array(list(words.values()), pa.int64()).take(places))


def _target(names: Sequence[str], zone: str) -> DateTime64:
    """Return the DateTime64 type with the format's digits: six for %f, as many as there are S in Joda syntax."""
    counted = [int(name.partition("_")[2]) for name in names if name.startswith("fraction_")]
    return DateTime64(counted[0] if counted else 0, zone)


def _resolver(
    tokens_of: Callable[[str, str, frozenset[str]], list[str | _Part]],
    default_format: str,
    otherwise: str,
    *,
    fractions: bool = False,
    changed: frozenset[str] = frozenset(),
) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of a function (text[, format[, zone]]).

    `otherwise` ("", "Null" or "Zero") decides the value of texts that do not fit. With `fractions`
    the result is a DateTime64. `changed` are the settings that are not at their defaults.
    """

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; format and zone are constants."""
        scalar.require(name, [plain(arguments[0].type)], (String,), "a String")
        given = len(arguments) > 1
        template = scalar.constant_text(name, arguments, 1, "the format") if given else ""
        pattern, names = _expression(tokens_of(name, template or default_format, changed))
        zone = scalar.constant_zone(name, arguments, 2) if len(arguments) > 2 else None
        # the zone is part of the type, as in ClickHouse
        target: DateTime | DateTime64 = DateTime(zone or UTC)
        if fractions and tokens_of is _mysql_tokens:
            target = DateTime64(_MOST_FRACTION, zone or UTC)
        elif fractions:
            target = _target(names, zone or UTC)

        def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            """Parse the texts; raise CannotParseDateTime for the first that does not fit."""
            seconds, fine = _parsed(arrays[0], pattern, names, target, call.environment.zone)
            bad = first_bad(~fine)
            if bad is None or otherwise:
                valid = fine if otherwise == "Null" else None
                return columns.from_values(np.where(fine, seconds, 0), target.arrow, valid)
            raise CannotParseDateTime(
                f"Cannot parse {arrays[0][bad].as_py()!r} by the format"
                f" {template or default_format!r}.",
                hint=f"{name}OrNull returns NULL for such texts.",
            ).at_row(bad)

        if otherwise != "Null":
            return scalar.standard_call(name, arguments, target, kernel)
        result = make_nullable(target)
        call = scalar.standard_call(name, arguments, target, kernel)
        return ScalarCall(name, result, call.kernel)

    return resolve


def _parsed(
    array: pa.Array, pattern: str, names: Sequence[str], target: DateTime | DateTime64, zone: str
) -> tuple[np.ndarray, np.ndarray]:
    """Parse texts without nulls; return their Unix times, in ticks of `target`, and a mask of the texts that match
    the format."""
    if not names:
        matches = np.asarray(pc.match_substring_regex(array, pattern))
        return ticks_of({}, len(array), target, zone)[0], matches
    groups = regexes.extracted(array, pattern)
    matches = np.asarray(groups.is_valid())
    rows = int(matches.sum())
    fields = columns.struct_fields(groups.filter(pa.array(matches)))
    parts: dict[str, np.ndarray] = {}
    for name, field in zip(names, fields, strict=True):
        parts.pop(name, None)  # the last of two stands behind what is between them
        parts[name] = _numbers(field, name)
    seconds, fine = ticks_of(parts, rows, target, zone)
    placed, fits = np.zeros(len(array), np.int64), matches.copy()
    placed[matches], fits[matches] = seconds, fine
    return placed, fits


_ALIASES = {"parseDateTimeOrNull": ("str_to_date",)}


def _under(resolver: Callable[..., scalar.Resolver], changed: frozenset[str]) -> scalar.Resolver:
    """Return the resolver with the settings `changed` applied."""
    return resolver(changed=changed)


def _definitions() -> tuple[scalar.ScalarDefinition, ...]:
    """Return the definitions of both syntaxes, each with …OrNull and …OrZero."""
    definitions = []
    for name, tokens_of, template, fractions in (
        ("parseDateTime", _mysql_tokens, "%Y-%m-%d %H:%i:%s", False),
        ("parseDateTimeInJodaSyntax", _joda_tokens, "yyyy-MM-dd HH:mm:ss", False),
        ("parseDateTime64", _mysql_tokens, "%Y-%m-%d %H:%i:%s.%f", True),
        ("parseDateTime64InJodaSyntax", _joda_tokens, "yyyy-MM-dd HH:mm:ss", True),
    ):
        for otherwise in ("", "Null", "Zero"):
            suffix = f"Or{otherwise}" if otherwise else ""
            resolver = partial(_resolver, tokens_of, template, otherwise, fractions=fractions)
            definition = scalar.custom(
                f"{name}{suffix}",
                resolver(),
                count=(1, 3),
                aliases=_ALIASES.get(name + suffix, ()),
                insensitive=name + suffix in _ALIASES,
            )
            definitions.append(replace(definition, by_settings=partial(_under, resolver)))
    # In any case, which parseDateTime is not.
    in_any_case = replace(definitions[0], name="TO_UNIXTIME", case_insensitive=True)
    return (*definitions, in_any_case)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = _definitions()

"""The arguments of Dynamic and JSON in the name of a type."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from olapdb import errors
from olapdb.types.base import DataType
from olapdb.types.dynamic import PATHS_MAX, TYPES_MAX, Dynamic, Json

_TYPES_LIMIT = 254
_PATHS_LIMIT = 10_000


class Words(Protocol):
    """The parser of a type name, positioned in the arguments of a Dynamic or JSON."""

    def take(self, symbol: str) -> bool:
        """Skip the next character if it is `symbol`; return whether it was."""

    def peek(self) -> str:
        """Return the next character, "" at the end."""

    def word(self) -> str:
        """Return the next word, plain or in backquotes, and skip it."""

    def integer(self) -> int:
        """Return the next number, and skip it."""

    def quoted(self) -> str:
        """Return the next text in quotes, and skip it."""

    def parse(self) -> DataType:
        """Return the next type, and skip it."""


def dynamic_of(words: Words) -> Dynamic:
    """Parse the arguments of a Dynamic: max_types=N. Raises UnexpectedAstStructure."""
    name = words.word()
    if name != "max_types" or not words.take("="):
        raise errors.UnexpectedAstStructure("Dynamic has one argument, max_types=N.")
    return Dynamic(_bounded("max_types", words.integer(), _TYPES_LIMIT))


def _bounded(name: str, value: int, limit: int) -> int:
    """Return the value of the argument `name`. Raises UnexpectedAstStructure if it is above the limit."""
    if value > limit:
        raise errors.UnexpectedAstStructure(
            f"{name} is a number from 0 to {limit}, not {value}.", hint=f"Write at most {limit}."
        )
    return value


def json_of(words: Words) -> Json:
    """Parse the arguments of a JSON, up to the closing bracket: bounds, typed paths, SKIP and SKIP REGEXP.

    Raises UnexpectedAstStructure for an unknown argument, BadArguments for paths that contradict."""
    bounds = {"max_dynamic_types": TYPES_MAX, "max_dynamic_paths": PATHS_MAX}
    limits = {"max_dynamic_types": _TYPES_LIMIT, "max_dynamic_paths": _PATHS_LIMIT}
    typed: dict[str, DataType] = {}
    skipped: set[str] = set()
    patterns: list[str] = []
    while words.peek() not in (")", ""):
        is_quoted = words.peek() == "`"
        name = words.word()
        if words.take("="):
            if name not in bounds:
                raise errors.UnexpectedAstStructure(
                    f"JSON has no argument {name}.",
                    hint="It has max_dynamic_types and max_dynamic_paths.",
                )
            bounds[name] = _bounded(name, words.integer(), limits[name])
        elif name.upper() == "SKIP" and not is_quoted:
            first = words.word()
            if first.upper() == "REGEXP" and words.peek() == "'":
                patterns.append(_checked_pattern(words.quoted()))
            else:
                skipped.add(_path(words, first))
        else:
            path = _path(words, name)
            if path in typed:
                raise errors.BadArguments(f"JSON has the path {path} twice with a type.")
            typed[path] = words.parse()
        if not words.take(","):
            break
    _refuse_skipped(typed, skipped, patterns)
    return Json(
        tuple(sorted(typed.items(), key=lambda item: item[0].encode())),
        tuple(sorted(skipped)),
        tuple(patterns),
        bounds["max_dynamic_types"],
        bounds["max_dynamic_paths"],
    )


def _path(words: Words, first: str) -> str:
    """Return the dotted path that begins with the word `first`."""
    parts = [first]
    while words.take("."):
        parts.append(words.word())
    return ".".join(parts)


def _checked_pattern(pattern: str) -> str:
    """Return the pattern unchanged. Raises CannotCompileRegexp if it is no valid regular expression."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise errors.CannotCompileRegexp(
            f"SKIP REGEXP {pattern!r} is no regular expression: {error}."
        ) from error
    return pattern


def _refuse_skipped(typed: Iterable[str], skipped: Iterable[str], patterns: Iterable[str]) -> None:
    """Raise BadArguments if a path with a declared type is also skipped."""
    for path in typed:
        for other in skipped:
            if path == other or path.startswith(f"{other}."):
                raise errors.BadArguments(f"The path {path} has a type, but SKIP {other} omits it.")
        for pattern in patterns:
            if re.fullmatch(pattern, path):
                raise errors.BadArguments(
                    f"The path {path} has a type, but SKIP REGEXP {pattern!r} omits it."
                )

"""Paths of SQL's JSON, `$.a[0].b[*]`: keys, places, and selectors of several places."""

from __future__ import annotations

import re
from typing import TypeAlias

from olapdb.errors import BadArguments

Selector: TypeAlias = tuple[tuple[int, int | None], ...]
"""Ranges of places of an array, from 0, without their ends; None is the array's end."""
Segment: TypeAlias = tuple[list[str | int], Selector | None]
"""Keys and places, and the selector behind them; the last segment of a path has none."""

_STEP = re.compile(
    r"""\.(?P<name>\w[\w-]*)|\[\s*(?P<place>\d+)\s*\]"""
    r"""|\[\s*(?P<word>[A-Za-z_]\w*)\s*\]|\[(?P<several>[^\]"']*)\]"""
)
_QUOTED = re.compile(r"""\."(?P<name>[^"]*)"|\[\s*["'](?P<key>[^"']*)["']\s*\]""")
_RANGE = re.compile(r"\s*(\d+)(?:\s+to\s+(\d+))?\s*", re.IGNORECASE)


def parse_path(name: str, path: str) -> list[Segment]:
    """Return the segments of a path for the function `name`; the last one has no selector.

    Raises BadArguments for a text that is no path, and for a range without places.
    """
    segments: list[Segment] = []
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        match = _QUOTED.match(path, at) or _STEP.match(path, at)
        if match is None:
            break
        groups = match.groupdict()
        if groups.get("several") is not None:
            segments.append((steps, _selector(name, path, groups["several"])))
            steps = []
        else:
            place = groups.get("place")
            key = groups["name"] or groups.get("key") or groups.get("word") or ""
            steps.append(key if place is None else int(place))
        at = match.end()
    if not path.startswith("$") or at < len(path):
        raise _no_path(name, path)
    return [*segments, (steps, None)]


def _no_path(name: str, path: str) -> BadArguments:
    """Return the BadArguments error for a text that is no path; `name` is the function."""
    return BadArguments(
        f"Unable to parse the JSONPath {path!r} of {name}.", hint="Write $.key[0].key[*]."
    )


def _selector(name: str, path: str, text: str) -> Selector:
    """Return the selector of all places (`*`), or of places and ranges such as `0, 1 to 3`.

    Raises BadArguments."""
    if text.strip() == "*":
        return ((0, None),)
    ranges: list[tuple[int, int | None]] = []
    for item in text.rstrip().removesuffix(",").split(","):
        match = _RANGE.fullmatch(item)
        if match is None:
            raise _no_path(name, path)
        begin, end = int(match[1]), int(match[2] or int(match[1]) + 1)
        if begin >= end:
            raise BadArguments(f"The range {item.strip()!r} in the JSONPath of {name} is empty.")
        ranges.append((begin, end))
    return tuple(ranges)

"""All matches of a pattern in many texts at once.

Arrow finds one match of a text at a time, but replaces all of them. So each match is replaced by
itself and its groups between marks, and what lies between marks is cut out.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from olapdb.functions.kernels import columns, regexes
from olapdb.functions.strings.arguments import DOT_MATCHES_ALL
from olapdb.records import dataclass

_CONTROLS = np.arange(1, 32)
"""The characters that may be marks."""
_GROUPS_MAX = 9
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_ANCHORS = re.compile(r"\\[AbBzZ]|[\^$]")


@dataclass(frozen=True)
class PatternMatches:
    """The matches of a pattern in all texts: the row of each match, its text, and the texts of its groups."""

    owners: np.ndarray
    texts: list[pa.Array]
    rows: int

    @property
    def counts(self) -> np.ndarray:
        """The number of matches in each row."""
        return np.bincount(self.owners, minlength=self.rows)


def all_matches(array: pa.Array, pattern: str, groups: int) -> PatternMatches | None:
    """Return the matches with their first `groups` groups; None if they cannot be found by replacing them with marks.

    That is so for too many groups, for a pattern that may match nothing, and for texts that use nearly all control
    characters, of which three are the marks. The pattern, one of Python, has that many groups."""
    if groups > _GROUPS_MAX or _may_be_empty(pattern):
        return None
    used = np.bincount(columns.bytes_of(array)[1], minlength=256)
    marks = _CONTROLS[used[_CONTROLS] == 0]
    if len(marks) < 3:
        return None
    begin, between, end = (chr(mark) for mark in marks[:3])
    marked = "".join(f"{between}\\{group}" for group in range(1, groups + 1))
    replaced = regexes.replaced(array, DOT_MATCHES_ALL + pattern, f"{begin}\\0{marked}{end}")
    offsets, data = columns.bytes_of(replaced)
    begins, between_groups, ends = (np.flatnonzero(data == mark) for mark in marks[:3])
    bounds = [begins, *between_groups.reshape(len(begins), groups).T, ends]
    texts = [cut(data, bounds[at] + 1, bounds[at + 1]) for at in range(groups + 1)]
    owners = np.searchsorted(offsets, begins, "right") - 1
    return PatternMatches(owners, texts, len(array))


def _may_be_empty(pattern: str) -> bool:
    """Return whether the pattern may match the empty text at some place of a text."""
    simple = re.sub(r"\\[^AbBzZ]", "x", _CLASS.sub("x", pattern))
    try:
        return re.compile(_ANCHORS.sub("", simple)).match("") is not None
    except re.error:
        return True


def cut(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
    """Return one text for each pair of `starts` and `ends`, positions in the bytes `data`."""
    offsets = columns.offsets_from_counts(ends - starts)
    places = np.repeat(starts - offsets[:-1], ends - starts) + np.arange(offsets[-1])
    return columns.strings_from(offsets, data[places])

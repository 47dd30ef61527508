"""Lines of names, and types, at the start of data whose format does not say that they have them."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import BinaryIO, Protocol, cast

from olapdb import errors, types
from olapdb.formats.base import Input, Rows
from olapdb.formats.blocks import BLOCK_BYTES, Behind, take_lines
from olapdb.formats.heads import Head, checked_head
from olapdb.formats.inference import ANY
from olapdb.formats.nested_inference import type_of_values
from olapdb.functions import parse_type

_HEAD_LINES = 2


class HeadLayout(Protocol):
    """What a format of lines tells about its head lines."""

    @property
    def skipped(self) -> int:
        """The number of lines before the head."""

    @property
    def head_lines(self) -> int:
        """The number of lines of the head: 1 for names, 2 for types too."""

    @property
    def detects(self) -> bool:
        """Return whether a head is recognized by its names although the format has none."""


def read_head(
    source: Input, layout: HeadLayout, split: Callable[[bytes], Sequence[str]]
) -> tuple[Head | None, BinaryIO]:
    """Read the head lines; return the head (None for data without one) and the stream after it. `split` cuts a line
    into values. Raises AttemptToReadAfterEof."""
    take_lines(source.stream, layout.skipped)
    if not layout.head_lines:
        if layout.detects and source.structure is not None:
            return detected_head(source, split)
        return None, source.stream
    lines = take_lines(source.stream, layout.head_lines)
    if len(lines) < layout.head_lines:
        raise errors.AttemptToReadAfterEof("The data end before their line of names or of types.")
    names, *type_names = map(split, lines)
    return checked_head(source, names, type_names[0] if type_names else None), source.stream


def detected_head(
    source: Input, split: Callable[[bytes], Sequence[str]]
) -> tuple[Head | None, BinaryIO]:
    """Return the head, and the stream after it, if the first line has only names of wanted columns; else None and all
    data. A second line whose values are all type names belongs to the head. `split` cuts a line into values. Raises
    the errors of `checked_head`."""
    lines = [line for _ in range(_HEAD_LINES) if (line := source.stream.readline())]
    parts = [split(line.rstrip(b"\r\n")) for line in lines]
    wanted = {name for name, _ in source.structure or ()}
    if not parts or not wanted.issuperset(parts[0]) or not parts[0]:
        return None, _with(lines, source.stream)
    used = 1
    if len(parts) > 1 and len(parts[1]) == len(parts[0]) and _types_of(parts[1]) is not None:
        used = 2
    head = checked_head(source, parts[0], parts[1] if used > 1 else None)
    return head, _with(lines[used:], source.stream)


def _with(lines: Sequence[bytes], stream: BinaryIO) -> BinaryIO:
    """Return a stream of the lines followed by the rest of `stream`."""
    first = b"".join(lines)
    if not first:
        return stream
    return cast(BinaryIO, io.BufferedReader(Behind(first, stream), BLOCK_BYTES))


def _types_of(names: Sequence[str | None]) -> tuple[types.DataType, ...] | None:
    """Parse type names; None if any of them is not one."""
    try:
        return tuple(parse_type(name or "") for name in names)
    except errors.Error:
        return None


def inferred_head(rows: Rows) -> Head | None:
    """Return the head if the first row has only texts and the second one only type names, or a value that is not a
    text. Otherwise return None."""
    if rows.rows < _HEAD_LINES:
        return None
    pairs = [tuple(array.slice(0, _HEAD_LINES).to_pylist()) for array in rows.arrays]
    names = [first for first, _ in pairs]
    kinds = [type_of_values(array.slice(0, 1), ANY) for array in rows.arrays]
    if not all(names) or any(kind != types.STRING for kind in kinds):
        return None
    kinds_below = _types_of([second for _, second in pairs])
    below = [type_of_values(array.slice(1, 1), ANY) for array in rows.arrays]
    if kinds_below is None and all(kind in (None, types.STRING) for kind in below):
        return None
    return Head(tuple(names), kinds_below)

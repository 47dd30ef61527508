"""Lines of values between separators, and what all formats with lines of names share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.formats.base import Input, Rows, Structure
from olapdb.formats.blocks import blocks_of, end_of_escaped_lines, end_of_lines
from olapdb.formats.header_detection import inferred_head, read_head
from olapdb.formats.heads import Head, count_error, no_structure, numbered_names
from olapdb.formats.inference import Guess
from olapdb.formats.nested_inference import type_of_values
from olapdb.formats.texts import is_text
from olapdb.functions.kernels.escapes import escaped, spans, unescaped

_NEWLINE = ord("\n")
_RETURN = ord("\r")


@dataclass(frozen=True)
class Lines:
    """How lines are read. Without a separator a line is one value; without `escapes` a backslash is
    a character; `null` is the text of NULL. `skipped` lines come before the head's. `detects`: a head
    that the format does not have is recognized by its names."""

    separator: str
    head_lines: int = 0
    escapes: bool = True
    null: str | None = "\\N"
    skipped: int = 0
    empty_as_default: bool = False
    detects: bool = False


# --- lines


def _split(line: bytes, layout: Lines) -> list[str]:
    """Return the values of a line of the head."""
    if not layout.escapes:
        return line.decode("utf-8", "replace").split(layout.separator)
    values = pa.array(line.split(layout.separator.encode()), pa.binary())
    return [
        value.decode("utf-8", "replace")
        for value in unescaped(values.cast(pa.string(), safe=False)).cast(pa.binary()).to_pylist()
    ]


def read_lines(source: Input, layout: Lines) -> Iterator[Rows]:
    """Yield the rows of a block of lines at a time, their values as texts.

    Raises CannotParseInput or IncorrectData for a line with too few or too many values."""
    head, stream = read_head(source, layout, partial(_split, layout=layout))
    first_row = 1
    end_of_rows = end_of_escaped_lines if layout.escapes else end_of_lines
    for block in blocks_of(stream, end_of_rows):
        data = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", np.uint8)
        if head is None:
            head = Head(_names_without_head(source, data, layout))
        starts, ends = _fields(data, head.names, layout, first_row)
        yield _rows(source, layout, head, data, starts, ends)
        first_row += len(starts)


def _names_without_head(source: Input, data: np.ndarray, layout: Lines) -> tuple[str, ...]:
    """Return the names of columns of data without a head: the wanted ones, else c1, c2, …"""
    if source.structure is not None:
        return tuple(name for name, _ in source.structure)
    first = data[: int(np.argmax(data == _NEWLINE))]
    count = 1 + int((first == ord(layout.separator)).sum()) if layout.separator else 1
    return numbered_names(count)


def _fields(
    data: np.ndarray, names: Sequence[str], layout: Lines, first_row: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return where each value starts and ends; shape (rows, columns)."""
    is_mark = data == _NEWLINE
    if layout.separator:
        is_mark = is_mark | (data == ord(layout.separator))
    if layout.escapes:
        is_mark &= ~escaped(data)
    marks = np.flatnonzero(is_mark)
    width = len(names)
    line_ends = np.flatnonzero(data[marks] == _NEWLINE)
    counts = np.diff(line_ends, prepend=-1)
    wrong = np.flatnonzero(counts != width)
    if len(wrong):
        raise count_error(first_row + int(wrong[0]), int(counts[wrong[0]]), names)
    ends = marks.reshape(-1, width)
    starts = np.concatenate(([0], marks[:-1] + 1)).reshape(-1, width)
    last = ends[:, -1].copy()
    has_return = (last > starts[:, -1]) & (data[last - 1] == _RETURN)
    if has_return.any():
        ends = ends.copy()
        ends[:, -1] -= has_return
    return starts, ends


def _rows(
    source: Input, layout: Lines, head: Head, data: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> Rows:
    """Return the wanted columns of a block."""
    wanted = dict(source.structure or ())
    names, arrays = [], []
    for at, name in enumerate(head.names):
        if (source.structure is not None and name not in wanted) or name in names:
            continue
        if source.needed is not None and name not in source.needed:
            continue
        texts = spans(data, starts[:, at], ends[:, at])
        target = wanted.get(name)
        arrays.append(text_values(texts, target, layout))
        names.append(name)
    kinds = tuple(types.Nullable(types.STRING) for _ in names)
    return Rows(tuple(names), kinds, tuple(arrays), len(starts))


def text_values(texts: pa.Array, target: types.DataType | None, layout: Lines) -> pa.Array:
    """Return the texts of a column without escapes, NULL and what stands for a default as null."""
    nulls = None if layout.null is None else pc.equal(texts, layout.null)
    if layout.empty_as_default:
        empty = pc.equal(texts, "")
        nulls = empty if nulls is None else pc.or_(nulls, empty)
    if layout.escapes and (target is None or is_text(target)):
        texts = unescaped(texts)
    if nulls is None or not pc.any(nulls, min_count=0).as_py():
        return texts
    return pc.if_else(nulls, pa.scalar(None, pa.string()), texts)


# --- inference


def infer_lines(source: Input, layout: Lines) -> Structure:
    """Return the columns of the lines: by the head, and types by the values of the first rows."""
    plain = Input(source.stream, source.settings, source.environment)
    batches = read_lines(plain, layout)
    if layout.head_lines > 1:
        head, _ = read_head(plain, layout, partial(_split, layout=layout))
        assert head is not None
        assert head.types is not None
        return tuple(zip(head.names, head.types, strict=True))
    first = next(batches, None)
    if first is None:
        raise no_structure("they have no rows")
    return infer_texts(first, plain, layout.detects and not layout.head_lines)


def infer_texts(
    rows: Rows,
    source: Input,
    detects: bool = False,
    quoted: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset()),
) -> Structure:
    """Return the columns of rows of texts, Nullable but for arrays, by the first rows.

    `detects`: the first rows may be names and types. `quoted` are the columns with a value in quotes
    that is no number: in any row, and behind the first one."""
    rows_max = source.settings.integer("input_format_max_rows_to_read_for_schema_inference")
    head = inferred_head(rows) if detects else None
    if head is not None and head.types is not None:
        return tuple(zip(head.names, head.types, strict=True))
    names = rows.names if head is None else head.names
    start = 0 if head is None else 1
    guess = Guess.of(source.settings)
    found = []
    for at, (name, array) in enumerate(zip(names, rows.arrays, strict=True)):
        sample = array.slice(start, max(rows_max, 1))
        data_type = type_of_values(sample, guess, numbers=at not in quoted[start]) or types.STRING
        if at in quoted[start] and isinstance(data_type, types.Tuple):
            data_type = types.STRING
        found.append((name, types.make_nullable(data_type)))
    return tuple(found)

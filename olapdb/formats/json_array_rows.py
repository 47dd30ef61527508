"""Reads JSONCompactEachRow and the like: rows that are arrays of values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb import errors
from olapdb.formats.base import Input, Reader, Rows, Structure
from olapdb.formats.blocks import take_lines
from olapdb.formats.heads import (
    Head,
    checked_head,
    count_error,
    no_structure,
    numbered_names,
    plain_names,
)
from olapdb.formats.json_read import as_strings, index_of, inferred_type, is_needed, rows_of_tokens
from olapdb.formats.json_row_blocks import RowBlocks
from olapdb.functions.json import paths
from olapdb.functions.json.index import JsonIndex

_RAGGED = "input_format_json_compact_allow_variable_number_of_columns"


def compact_reader(head_lines: int, *, strings: bool) -> Reader:
    """Return the reader of JSONCompact…EachRow with `head_lines` lines of names and types; with `strings` all values
    are strings."""

    def head_of(source: Input) -> Head | None:
        """Read the head lines; None for data without them. Raises AttemptToReadAfterEof."""
        lines = take_lines(source.stream, head_lines)
        if not head_lines:
            return None
        if len(lines) < head_lines:
            raise errors.AttemptToReadAfterEof("The data end before their line of names or types.")
        parts = [_names_of(line) for line in lines]
        return checked_head(source, parts[0], parts[1] if head_lines > 1 else None)

    def read(source: Input) -> Iterator[Rows]:
        """Yield the rows of a block at a time."""
        head = head_of(source)
        inner = as_strings(source) if strings else source
        return array_rows(inner, RowBlocks(source, b"[").texts(), head)

    def infer(source: Input) -> Structure:
        """Return the columns by the head, and types by the values of the first rows."""
        plain = Input(source.stream, source.settings, source.environment)
        head = head_of(plain)
        if head is not None and head.types is not None:
            return tuple(zip(head.names, head.types, strict=True))
        return infer_array_texts(plain, next(RowBlocks(plain, b"[").texts(), None), head)

    return Reader(infer, read, named=head_lines > 0)


def _names_of(line: bytes) -> list[str]:
    """Parse a head line to names or type names. Raises IncorrectData if it is not an array of strings."""
    try:
        names = json.loads(line.decode().rstrip(", "))
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise errors.IncorrectData(
            f"The line of names is no array of strings: {line[:80].decode('utf-8', 'replace')}"
        )
    return names


def array_rows(source: Input, blocks: Iterator[pa.Array], head: Head | None) -> Iterator[Rows]:
    """Yield the columns of blocks of JSON arrays, one array a row. Raises CannotParseInput or IncorrectData for a row
    with another number of values."""
    first_row = 1
    for texts in blocks:
        index = index_of(texts, first_row)
        offsets, values = paths.members_of(index, index.root)
        if head is None:
            head = Head(plain_names(source, _width(source, offsets)))
        grid = _grid(source, offsets, values, head.names, first_row)
        yield _compact_rows(index, head, grid, source, first_row)
        first_row += len(texts)


def infer_array_texts(source: Input, texts: pa.Array | None, head: Head | None) -> Structure:
    """Return the columns of rows that are arrays: by the head, and types by the values."""
    if texts is None:
        raise no_structure("they have no rows")
    index = index_of(texts, 1)
    offsets, values = paths.members_of(index, index.root)
    names = numbered_names(_width(source, offsets)) if head is None else head.names
    if not names:
        raise no_structure("their rows have no values")
    grid = _grid(source, offsets, values, names, 1)
    return tuple((name, inferred_type(index, grid[:, at], source)) for at, name in enumerate(names))


def _width(source: Input, offsets: np.ndarray) -> int:
    """Return the number of values of the first row; of the longest row if the settings allow several lengths."""
    counts = np.diff(offsets)
    return int(counts.max() if source.settings.boolean(_RAGGED) else counts[0])


def _grid(
    source: Input, offsets: np.ndarray, values: np.ndarray, names: Sequence[str], first_row: int
) -> np.ndarray:
    """Return the tokens of the values as a matrix (rows, columns), -1 for a missing value. Raises CannotParseInput or
    IncorrectData for rows of another length, unless the settings allow it."""
    counts, width = np.diff(offsets), len(names)
    wrong = np.flatnonzero(counts != width)
    if not len(wrong):
        return values.reshape(len(counts), width)
    if not source.settings.boolean(_RAGGED):
        raise count_error(first_row + int(wrong[0]), int(counts[wrong[0]]), names)
    columns_at = np.arange(width)
    present = columns_at < counts[:, None]
    return np.where(present, values[np.where(present, offsets[:-1, None] + columns_at, 0)], -1)


def _compact_rows(
    index: JsonIndex, head: Head, grid: np.ndarray, source: Input, first_row: int
) -> Rows:
    """Return the wanted columns of a block of arrays; `grid` is the matrix of their elements' tokens."""
    wanted = None if source.structure is None else {name for name, _ in source.structure}
    chosen: dict[str, np.ndarray] = {}
    for at, name in enumerate(head.names):
        if (wanted is None or name in wanted) and is_needed(name, source):
            chosen.setdefault(name, np.ascontiguousarray(grid[:, at]))
    return rows_of_tokens(index, list(chosen.items()), source, first_row)

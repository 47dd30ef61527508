"""Reads Values: rows of literals in parentheses. Values are texts that the caller converts.

INSERT … VALUES, whose values may be expressions, is read by the parser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Input, Reader, Rows, Structure
from olapdb.formats.blocks import blocks_of
from olapdb.formats.escaping_rules import infer_values, read_values
from olapdb.formats.heads import no_structure, numbered_names
from olapdb.formats.json_row_blocks import outside_strings
from olapdb.formats.texts import is_text
from olapdb.functions.kernels.escapes import spans

_QUOTE, _COMMA = ord("'"), ord(",")
_LITERAL = (
    r"(?is)^(?:'(?:[^'\\]|\\.|'')*'|[\[({].*|[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
    r"|[-+]?inf(?:inity)?|[-+]?nan|null|true|false)$"
)
"""A text in quotes, a number, a word that stands for itself, or what stands in brackets; of RE2."""
_OPEN = np.zeros(256, bool)
_OPEN[list(b"([{")] = True
_CLOSE = np.zeros(256, bool)
_CLOSE[list(b")]}")] = True
_BLANK = np.zeros(256, bool)
_BLANK[list(b" \t\r\n,;")] = True


def _levels(data: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bracket depth after each byte, and masks of the opening and of the closing brackets; brackets in
    quotes do not count."""
    outside = outside_strings(data, _QUOTE)
    opens, closes = _OPEN[data] & outside, _CLOSE[data] & outside
    return np.cumsum(opens.astype(np.int32) - closes), opens, closes


def _end_of_rows(data: bytes) -> int:
    """Return the number of bytes up to the end of the last whole row."""
    level, _, closes = _levels(np.frombuffer(data, np.uint8))
    ends = np.flatnonzero(closes & (level == 0))
    return int(ends[-1]) + 1 if len(ends) else 0


def _fields(data: np.ndarray, first_row: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where each value of each row starts and ends; shape (rows, columns).

    Raises CannotParseInput and SyntaxError for text that is not a row, and for rows of several widths."""
    if not data.tobytes().lstrip(b" \t\r\n,;").startswith(b"("):
        raise errors.CannotParseInput(f"Row {first_row} of Values begins with no parenthesis.")
    level, opens, closes = _levels(data)
    inside = level - opens + closes  # that of the brackets themselves
    is_start, is_end = opens & (level == 1), closes & (level == 0)
    if is_start.sum() != is_end.sum() or not _BLANK[data[(inside == 0) & ~is_start]].all():
        raise errors.SyntaxError(
            f"The rows from row {first_row} on are not Values.", hint="They are (1, 'a'), (2, 'b')."
        )
    is_comma = (data == _COMMA) & (level == 1) & outside_strings(data, _QUOTE)
    marks = np.flatnonzero(is_start | is_end | is_comma)
    kinds = is_end[marks]
    counts = np.diff(np.flatnonzero(kinds), prepend=-1) - 1
    wrong = np.flatnonzero(counts != counts[0])
    if len(wrong):
        at = int(wrong[0])
        raise errors.SyntaxError(
            f"Row {first_row + at} of Values has {int(counts[at])} values for {int(counts[0])}."
        )
    grid = marks.reshape(len(counts), int(counts[0]) + 1)
    return _trimmed(data, grid[:, :-1] + 1, grid[:, 1:])


def _trimmed(
    data: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the spans without the blanks at both ends."""
    filled = np.flatnonzero(~_BLANK[data])
    first = np.searchsorted(filled, starts)
    last = np.searchsorted(filled, ends)
    starts = np.minimum(filled[np.minimum(first, len(filled) - 1)], ends)
    return starts, np.maximum(filled[last - 1] + 1, starts)


def _rows(source: Input, data: bytes, first_row: int) -> Rows:
    """Return the wanted columns of a block of rows."""
    values = np.frombuffer(data, np.uint8)
    starts, ends = _fields(values, first_row)
    wanted = list(source.structure or ())
    width = starts.shape[1]
    if source.structure is not None and width != len(wanted):
        raise errors.SyntaxError(
            f"Row {first_row} of Values has {width} values for {len(wanted)} columns."
        )
    names: Sequence[str] = [name for name, _ in wanted] or numbered_names(width)
    arrays, kinds = [], []
    for at in range(width):
        texts = spans(values, starts[:, at], ends[:, at])
        if wanted and isinstance(wanted[at][1], types.Dynamic):
            raise errors.NotSupportedError(
                f"The format Values does not read a column of type {wanted[at][1]}.",
                hint="INSERT INTO … VALUES as a statement does; JSONEachRow and CSV do.",
            )
        target = wanted[at][1] if wanted and not is_text(wanted[at][1]) else None
        if target is None:
            _refuse_expressions(texts)
            texts = _undoubled(texts)
        array, kind = read_values(texts, target, "Quoted", source, first_row)
        arrays.append(array)
        kinds.append(kind)
    return Rows(tuple(names), tuple(kinds), tuple(arrays), len(starts))


def _refuse_expressions(texts: pa.Array) -> None:
    """Raise CannotParseQuotedString if a text is an expression and no literal, since it would be read as plain text."""
    is_literal = pc.match_substring_regex(texts, _LITERAL)
    if not pc.all(is_literal, min_count=0).as_py():
        row = int(pc.index(is_literal, False).as_py())
        raise errors.CannotParseQuotedString(
            f"A value of Values is {texts[row].as_py()[:80]!r}, which is no literal.",
            hint="Expressions are computed in INSERT … VALUES, and in format(Values, 'structure', …).",
        )


def _undoubled(texts: pa.Array) -> pa.Array:
    """Replace each doubled single quote inside a quoted text by one single quote; other texts stay."""
    doubled = pc.match_substring_regex(texts, r"(?s)^'.*''.*'$")
    if not pc.any(doubled, min_count=0).as_py():
        return texts
    inner = pc.utf8_slice_codeunits(texts, 1, -1)
    single = pc.replace_substring(inner, "''", "'")
    return pc.if_else(doubled, pc.binary_join_element_wise("'", single, "'", ""), texts)


def _kind(texts: pa.Array, source: Input) -> types.DataType:
    """Infer the type of a column's literals. Raises CannotParseQuotedString for an expression, or for brackets that
    hold something else."""
    _refuse_expressions(texts)
    if pc.all(pc.match_substring_regex(texts, r"(?i)^NULL$")).as_py():
        raise no_structure("a column has nothing but NULL")
    kind = infer_values(texts, "Quoted", source)
    if is_text(kind) and pc.any(pc.match_substring_regex(texts, r"^[\[({]"), min_count=0).as_py():
        raise errors.CannotParseQuotedString(
            "Brackets of Values have something else in them than literals."
        )
    return kind


def _read(source: Input) -> Iterator[Rows]:
    """Yield the rows of one block at a time. Raises SyntaxError for a row that is not made of literals."""
    first_row = 1
    for block in blocks_of(source.stream, _end_of_rows):
        if block.strip(b" \t\r\n,;"):
            rows = _rows(source, block, first_row)
            first_row += rows.rows
            yield rows


def _infer(source: Input) -> Structure:
    """Return the columns c1, c2, … with types inferred from the first rows."""
    block = next(blocks_of(source.stream, _end_of_rows), b"")
    if not block.strip(b" \t\r\n,;"):
        raise no_structure("they have no rows")
    data = np.frombuffer(block, np.uint8)
    starts, ends = _fields(data, 1)
    rows_max = max(source.settings.integer("input_format_max_rows_to_read_for_schema_inference"), 1)
    texts = partial(spans, data)
    return tuple(
        (name, _kind(texts(starts[:rows_max, at], ends[:rows_max, at]), source))
        for at, name in enumerate(numbered_names(starts.shape[1]))
    )


VALUES_READER = Reader(_infer, _read)

"""Lines of values between separators, and what all formats with lines of names share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.absent import apart
from olapdb.formats.base import Input, Rows, Structure
from olapdb.formats.blocks import blocks_of, end_of_escaped_lines, end_of_lines, without_empty_end
from olapdb.formats.header_detection import inferred_head, read_head
from olapdb.formats.heads import Head, count_error, no_structure, numbered_names
from olapdb.formats.inference import Guess
from olapdb.formats.nested_inference import type_of_values
from olapdb.formats.texts import is_text, zero_for_empty
from olapdb.functions.kernels.escapes import escaped, spans, unescaped
from olapdb.lazy import LazyModule
from olapdb.records import dataclass

if TYPE_CHECKING:
    from olapdb.functions.dynamic import casts as dynamic_casts
else:
    dynamic_casts = LazyModule("olapdb.functions.dynamic.casts")

Returns: TypeAlias = Literal["kept", "refused", "dropped"]
"""A carriage return before a line feed belongs to the value; is an error in the first line, and
belongs to the value in others; or belongs to the line feed."""
_NEWLINE = ord("\n")
_RETURN = ord("\r")


@dataclass(frozen=True)
class Lines:
    """The layout of lines. No separator: a line is one value. `escapes`: backslashes escape. `null`: the text of
    NULL. `skipped`: lines before the head. `detects`: recognize a head by its names where the format has none.
    `ragged`: lines may have too few or too many values. `returns`: the meaning of a carriage return at a line's end.
    `trims_end`: drop empty lines at the end. `guesses`: infer numbers and dates from texts."""

    separator: str
    head_lines: int = 0
    escapes: bool = True
    null: str | None = "\\N"
    skipped: int = 0
    empty_as_default: bool = False
    detects: bool = False
    ragged: bool = False
    returns: Returns = "kept"
    trims_end: bool = False
    guesses: bool = True

    def blocks(self, stream: BinaryIO) -> Iterator[bytes]:
        """Yield blocks of whole lines."""
        blocks = blocks_of(stream, end_of_escaped_lines if self.escapes else end_of_lines)
        return without_empty_end(blocks) if self.trims_end else blocks


# --- lines


def _split(line: bytes, layout: Lines) -> list[str]:
    """Split a head line into its values."""
    if not layout.escapes:
        return line.decode("utf-8", "replace").split(layout.separator)
    values = pa.array(line.split(layout.separator.encode()), pa.binary())
    return [
        value.decode("utf-8", "replace")
        for value in unescaped(values.cast(pa.string(), safe=False)).cast(pa.binary()).to_pylist()
    ]


def read_lines(source: Input, layout: Lines) -> Iterator[Rows]:
    """Yield the rows of one block of lines at a time, values as texts. Raises CannotParseInput or IncorrectData for a
    line with too few or too many values."""
    head, stream = read_head(source, layout, partial(_split, layout=layout))
    first_row = 1
    for block in layout.blocks(stream):
        data = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", np.uint8)
        if head is None:
            head = Head(_names_without_head(source, data, layout))
        fields = _fields(data, head.names, layout, first_row)
        rows = _rows(source, layout, head, data, fields)
        yield from apart(rows, _absent(source, layout, head, fields))
        first_row += len(fields.starts)


def _names_without_head(source: Input, data: np.ndarray, layout: Lines) -> tuple[str, ...]:
    """Return the column names of data without a head: the wanted columns' names, else c1, c2, …."""
    if source.structure is not None:
        return tuple(name for name, _ in source.structure)
    if not layout.separator:
        return numbered_names(1)
    rows = data if layout.ragged else data[: int(np.argmax(data == _NEWLINE)) + 1]
    marks = _marks(rows, layout)
    return numbered_names(int(np.diff(np.flatnonzero(rows[marks] == _NEWLINE), prepend=-1).max()))


@dataclass(frozen=True)
class _Fields:
    """The positions in the data at which each value starts and ends, and whether its line has the value at all;
    each of shape (rows, columns)."""

    starts: np.ndarray
    ends: np.ndarray
    present: np.ndarray | None = None


def _marks(data: np.ndarray, layout: Lines) -> np.ndarray:
    """Return the positions of the separators and line feeds that end values."""
    is_mark = data == _NEWLINE
    if layout.separator:
        is_mark = is_mark | (data == ord(layout.separator))
    if layout.escapes:
        is_mark &= ~escaped(data)
    return np.flatnonzero(is_mark)


def _fields(data: np.ndarray, names: Sequence[str], layout: Lines, first_row: int) -> _Fields:
    """Return where each value starts and ends. Raises CannotParseInput or IncorrectData."""
    marks = _marks(data, layout)
    width = len(names)
    line_ends = np.flatnonzero(data[marks] == _NEWLINE)
    counts = np.diff(line_ends, prepend=-1)
    starts = np.concatenate(([0], marks[:-1] + 1))
    ends = _without_returns(data, marks, starts, line_ends, layout, first_row)
    wrong = np.flatnonzero(counts != width)
    if not len(wrong):
        return _Fields(starts.reshape(-1, width), ends.reshape(-1, width))
    if not layout.ragged:
        raise count_error(first_row + int(wrong[0]), int(counts[wrong[0]]), names)
    columns = np.arange(width)
    present = columns < counts[:, None]
    places = np.where(present, (line_ends - counts + 1)[:, None] + columns, 0)
    return _Fields(starts[places], np.where(present, ends[places], starts[places]), present)


def _without_returns(
    data: np.ndarray,
    ends: np.ndarray,
    starts: np.ndarray,
    line_ends: np.ndarray,
    layout: Lines,
    first_row: int,
) -> np.ndarray:
    """Return the ends of values moved before carriage returns at line ends, as the layout says. Raises IncorrectData
    for one in the first line if carriage returns are refused."""
    last = ends[line_ends]
    has_return = (last > starts[line_ends]) & (data[last - 1] == _RETURN)
    if layout.returns == "refused" and first_row == 1 and has_return[:1].any():
        raise errors.IncorrectData(
            "The first line ends with a carriage return, as those of Windows do.",
            hint="SETTINGS input_format_tsv_crlf_end_of_line = 1 reads such lines.",
        )
    if layout.returns == "dropped" and has_return.any():
        ends = ends.copy()
        ends[line_ends] -= has_return
    return ends


def _absent(source: Input, layout: Lines, head: Head, fields: _Fields) -> dict[str, np.ndarray]:
    """Return for each column with a default the mask of the rows that lack its value, where this does not mean NULL."""
    masks: dict[str, np.ndarray] = {}
    for at, name in enumerate(head.names):
        if name not in source.absent_apart or name in masks:
            continue
        mask = np.zeros(len(fields.starts), bool)
        if fields.present is not None:
            mask |= ~fields.present[:, at]
        if layout.empty_as_default:
            mask |= fields.starts[:, at] == fields.ends[:, at]
        masks[name] = mask
    return masks


def _rows(source: Input, layout: Lines, head: Head, data: np.ndarray, fields: _Fields) -> Rows:
    """Return the wanted columns of a block of lines; the columns are texts."""
    wanted = dict(source.structure or ())
    names, arrays = [], []
    for at, name in enumerate(head.names):
        if (source.structure is not None and name not in wanted) or name in names:
            continue
        if source.needed is not None and name not in source.needed:
            continue
        texts = spans(data, fields.starts[:, at], fields.ends[:, at])
        values = text_values(texts, wanted.get(name), layout)
        if fields.present is not None and not fields.present[:, at].all():
            present = pa.array(np.ascontiguousarray(fields.present[:, at]))
            values = pc.if_else(present, values, pa.scalar(None, pa.string()))
        arrays.append(values)
        names.append(name)
    rows = Rows(tuple(names), kinds_of_texts(names), tuple(arrays), len(fields.starts))
    return with_dynamics(rows, source)


def kinds_of_texts(names: Sequence[str]) -> tuple[types.DataType, ...]:
    """Return the type Nullable(String), once for each name."""
    return tuple(types.Nullable(types.STRING) for _ in names)


def with_dynamics(rows: Rows, source: Input) -> Rows:
    """Convert columns whose wanted type is Dynamic: each text becomes a number, a Bool, a date or time, an array of
    numbers or texts, or else a String."""
    wanted = dict(source.structure or ())
    arrays, kinds = list(rows.arrays), list(rows.types)
    for at, name in enumerate(rows.names):
        if isinstance(wanted.get(name), types.Dynamic):
            arrays[at] = dynamic_casts.of_fields(arrays[at], source.environment)
            kinds[at] = types.Dynamic()
    return replace(rows, arrays=tuple(arrays), types=tuple(kinds))


def text_values(texts: pa.Array, target: types.DataType | None, layout: Lines) -> pa.Array:
    """Return the texts of a column unescaped; NULL, and texts that stand for a default, are null."""
    nulls = None if layout.null is None else pc.equal(texts, layout.null)
    if layout.empty_as_default:
        empty = pc.equal(texts, "")
        nulls = empty if nulls is None else pc.or_(nulls, empty)
    if layout.escapes and (target is None or is_text(target)):
        texts = unescaped(texts)
    texts = zero_for_empty(texts, target)
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
    if not layout.guesses:
        return tuple((name, types.Nullable(types.STRING)) for name in first.names)
    detects = layout.detects and not layout.head_lines
    return infer_texts(first, plain, detects, leading_zeros=False)


def infer_texts(
    rows: Rows,
    source: Input,
    detects: bool = False,
    quoted: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset()),
    *,
    quoted_numbers: bool = False,
    leading_zeros: bool = True,
) -> Structure:
    """Return the columns of rows of texts, Nullable but for arrays, by the first rows.

    `detects`: the first rows may be names and types. `quoted` are the columns with a value in quotes, which is no
    Bool or tuple, and a number only with `quoted_numbers`: in any row, and behind the first one.
    Without `leading_zeros` a column with a value such as 007 is a String."""
    rows_max = source.settings.integer("input_format_max_rows_to_read_for_schema_inference")
    head = inferred_head(rows) if detects else None
    if head is not None and head.types is not None:
        return tuple(zip(head.names, head.types, strict=True))
    names = rows.names if head is None else head.names
    start = 0 if head is None else 1
    guess = Guess.of(source.settings)
    structure = []
    for at, (name, array) in enumerate(zip(names, rows.arrays, strict=True)):
        sample = array.slice(start, max(rows_max, 1))
        in_quotes = at in quoted[start]
        bare = quoted_numbers or not in_quotes
        data_type = type_of_values(sample, guess, numbers=bare) or types.STRING
        if in_quotes and isinstance(data_type, types.Tuple | types.Boolean):
            data_type = types.STRING
        if not leading_zeros and isinstance(data_type, types.Integer) and _has_leading_zero(sample):
            data_type = types.STRING
        structure.append((name, types.make_nullable(data_type)))
    return tuple(structure)


def _has_leading_zero(texts: pa.Array) -> bool:
    """Return whether a text is a whole number with a 0 before other digits."""
    return bool(pc.any(pc.match_substring_regex(texts, "^0[0-9]+$")).as_py())

"""Lines of values between separators, and what all formats with lines of names share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Input, Rows, Structure
from olapdb.formats.blocks import blocks_of, end_of_escaped_lines, end_of_lines, take_lines
from olapdb.formats.inference import type_of_texts
from olapdb.formats.texts import is_text
from olapdb.functions import parse_type
from olapdb.functions.json.index import spans
from olapdb.functions.kernels import columns

_NEWLINE = ord("\n")
_RETURN = ord("\r")
_BACKSLASH = ord("\\")
_LETTERS = np.arange(256, dtype=np.uint8)
_IS_KNOWN = np.arange(256) < 32  # a control character, such as a line feed, stands for itself
for _letter, _byte in zip(b"abefnrtv0\\'\"`/=", b"\a\b\x1b\f\n\r\t\v\0\\'\"`/=", strict=True):
    _LETTERS[_letter] = _byte
    _IS_KNOWN[_letter] = True


@dataclass(frozen=True)
class Lines:
    """How lines are read. Without a separator a line is one value; without `escapes` a backslash is
    a character; `null` is the text of NULL. `skipped` lines come before the head's."""

    separator: str
    head_lines: int = 0
    escapes: bool = True
    null: str | None = "\\N"
    skipped: int = 0
    empty_as_default: bool = False


@dataclass(frozen=True)
class Head:
    """The columns of the data in their order: names, and types where the head has them."""

    names: tuple[str, ...]
    types: tuple[types.DataType, ...] | None = None


def checked_head(source: Input, names: Sequence[str], type_names: Sequence[str] | None) -> Head:
    """Return the head of data that begin with names, and types if any.

    Checks both against the wanted columns, as the settings say: raises NoSuchColumn for a name that
    is not wanted unless input_format_skip_unknown_fields is on, and IncorrectData for another type."""
    found = None if type_names is None else tuple(parse_type(name) for name in type_names)
    if source.structure is None:
        return Head(tuple(names), found)
    settings = source.settings
    if not settings.boolean("input_format_with_names_use_header"):
        return Head(tuple(name for name, _ in source.structure), found)
    wanted = dict(source.structure)
    for at, name in enumerate(names):
        if name in wanted and name in names[:at]:
            raise errors.IncorrectData(f"The data name column {name} twice.")
        if name not in wanted:
            if not settings.boolean("input_format_skip_unknown_fields"):
                raise unknown_field(name, wanted)
        elif (
            found
            and settings.boolean("input_format_with_types_use_header")
            and found[at] != wanted[name]
        ):
            raise errors.IncorrectData(
                f"Column {name} has type {wanted[name]}, the data say {found[at]}.",
                hint="SETTINGS input_format_with_types_use_header = 0 converts the values.",
            )
    return Head(tuple(names), found)


def unknown_field(name: str, wanted: Sequence[str] | dict[str, types.DataType]) -> errors.Error:
    """Return the error about a column of the data that nobody wants."""
    return errors.IncorrectData(
        f"The data have a column {name}, which is none of {', '.join(wanted)}.",
        hint="SETTINGS input_format_skip_unknown_fields = 1 skips it.",
    )


def numbered_names(count: int) -> tuple[str, ...]:
    """Return the names c1, c2, … of columns without names."""
    return tuple(f"c{at}" for at in range(1, count + 1))


# --- lines


def _read_head(source: Input, layout: Lines) -> Head | None:
    """Read the lines of names and types; None for data without them."""
    take_lines(source.stream, layout.skipped)
    if not layout.head_lines:
        return None
    lines = take_lines(source.stream, layout.head_lines)
    if len(lines) < layout.head_lines:
        raise errors.AttemptToReadAfterEof("The data end before their line of names or of types.")
    separator = layout.separator.encode()
    parts = [
        unescaped(pa.array(line.split(separator), pa.binary()).cast(pa.string())).to_pylist()
        if layout.escapes
        else line.decode("utf-8", "replace").split(layout.separator)
        for line in lines
    ]
    return checked_head(source, parts[0], parts[1] if layout.head_lines > 1 else None)


def read_lines(source: Input, layout: Lines) -> Iterator[Rows]:
    """Yield the rows of a block of lines at a time, their values as texts.

    Raises CannotParseInput or IncorrectData for a line with too few or too many values."""
    head = _read_head(source, layout)
    first_row = 1
    end_of_rows = end_of_escaped_lines if layout.escapes else end_of_lines
    for block in blocks_of(source.stream, end_of_rows):
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
        is_mark &= ~_escaped(data)
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


def _escaped(data: np.ndarray) -> np.ndarray:
    """Return which bytes an odd number of backslashes stands right before."""
    is_backslash = data == _BACKSLASH
    if not is_backslash.any():
        return np.zeros(len(data), bool)
    position = np.arange(len(data))
    other = np.maximum.accumulate(np.where(is_backslash, -1, position))
    run = position - other  # the backslashes up to this byte, itself included
    before = np.concatenate((np.zeros(1, np.int64), run[:-1]))
    return np.asarray(before & 1 == 1)


def count_error(row: int, found: int, names: Sequence[str]) -> errors.DataError:
    """Return the error about a row with too few or too many values."""
    if found < len(names):
        missing = names[found]
        return errors.CannotParseInput(
            f"Row {row} has {found} values for {len(names)} columns: {missing} has none.",
            hint=f"The columns are {', '.join(names)}.",
        )
    return errors.IncorrectData(
        f"Row {row} has {found} values for {len(names)} columns.",
        hint=f"The columns are {', '.join(names)}.",
    )


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
        arrays.append(_values(texts, target, layout))
        names.append(name)
    kinds = tuple(types.Nullable(types.STRING) for _ in names)
    return Rows(tuple(names), kinds, tuple(arrays), len(starts))


def _values(texts: pa.Array, target: types.DataType | None, layout: Lines) -> pa.Array:
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


def unescaped(texts: pa.Array) -> pa.Array:
    r"""Return texts without the escapes of TabSeparated: `\t` is a tab, `\x41` an A; an unknown
    escape stays."""
    offsets, data = columns.bytes_of(texts)
    is_backslash = data == _BACKSLASH
    if not is_backslash.any():
        return texts
    data = data.copy()
    rows = np.repeat(np.arange(len(texts)), np.diff(offsets))
    position = np.arange(len(data))
    other = np.maximum.accumulate(np.where(is_backslash, -1, position))
    run = position - np.maximum(other, offsets[:-1][rows] - 1)
    leads = np.flatnonzero(is_backslash & (run & 1 == 1))
    # In a run of backslashes each second one is the character that the one before escapes.
    leads = leads[leads + 1 < offsets[1:][rows[leads]]]
    letters = data[leads + 1]
    keep = np.ones(len(data), bool)
    known = _IS_KNOWN[letters]
    keep[leads[known]] = False
    data[leads[known] + 1] = _LETTERS[letters[known]]
    _unescape_hexadecimal(data, keep, leads[letters == ord("x")], offsets[1:][rows])
    kept = np.bincount(rows[keep], minlength=len(texts))
    valid = columns.validity(texts)
    return columns.strings_from(columns.offsets_from_counts(kept), data[keep], valid)


def _unescape_hexadecimal(
    data: np.ndarray, keep: np.ndarray, leads: np.ndarray, ends: np.ndarray
) -> None:
    r"""Replace `\xHH` by the byte that its digits denote, in place."""
    leads = leads[leads + 3 < ends[leads]] if len(leads) else leads
    if not len(leads):
        return
    digits = data[leads[:, None] + np.array([2, 3])] | 0x20
    values = np.where(digits >= ord("a"), digits - 87, digits - ord("0")).astype(np.uint8)
    data[leads] = (values[:, 0] << 4) | values[:, 1]
    for step in (1, 2, 3):
        keep[leads + step] = False


# --- inference


def infer_lines(source: Input, layout: Lines) -> Structure:
    """Return the columns of the lines: by the head, and types by the values of the first rows."""
    rows_max = source.settings.integer("input_format_max_rows_to_read_for_schema_inference")
    plain = Input(source.stream, source.settings, source.environment)
    batches = read_lines(plain, layout)
    if layout.head_lines > 1:
        head = _read_head(plain, layout)
        assert head is not None
        assert head.types is not None
        return tuple(zip(head.names, head.types, strict=True))
    first = next(batches, None)
    if first is None:
        raise no_structure("they have no rows")
    return infer_texts(first, rows_max)


def infer_texts(rows: Rows, rows_max: int) -> Structure:
    """Return the columns of rows of texts, Nullable but for arrays, by the first `rows_max` rows."""
    found = []
    for name, array in zip(rows.names, rows.arrays, strict=True):
        data_type = type_of_texts(array.slice(0, max(rows_max, 1))) or types.STRING
        found.append((name, types.make_nullable(data_type)))
    return tuple(found)


def no_structure(reason: str) -> errors.DataError:
    """Return the error about data whose columns cannot be found."""
    return errors.CannotExtractTableStructure(
        f"The columns of the data cannot be found: {reason}.",
        hint="Give the structure: file('path', 'format', 'a UInt8, b String').",
    )

"""TSKV: lines of `name=value` between tabs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Ending, Format, Input, Reader, Rows, Structure
from olapdb.formats.blocks import blocks_of, end_of_escaped_lines
from olapdb.formats.delimited import Lines, infer_texts, kinds_of_texts, text_values, with_dynamics
from olapdb.formats.heads import no_structure, unknown_field
from olapdb.formats.tab_separated import TabWriter
from olapdb.formats.texts import joined_rows, tab_escaped_name
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.escapes import escaped, spans, unescaped
from olapdb.records import dataclass

_TAB, _NEWLINE, _EQUALS = ord("\t"), ord("\n"), ord("=")
_MARKER = "tskv"
"""A field that has no value; lines may begin with it."""


class TskvWriter(TabWriter):
    """A writer of TSKV: `name=value` between tabs."""

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the line of each row."""
        texts = [
            pc.binary_join_element_wise(_tskv_name(name), text, "=")
            for name, text in zip(self.header.names, self.texts(batch), strict=True)
        ]
        return joined_rows(texts, "\t", "", "\n")

    def finish(self, ending: Ending) -> bytes:
        """Return nothing: TSKV has no totals."""
        return b""


def _tskv_name(name: str) -> str:
    """Escape a name for TSKV: `=` is escaped, quotes are not."""
    return tab_escaped_name(name).replace("\\'", "'").replace("=", "\\=")


# --- reading


@dataclass(frozen=True)
class _Fields:
    """The fields of a block of lines: the distinct names, and for each field the number of its name, its row, and the
    start and end of its value in the data."""

    data: np.ndarray
    rows: int
    names: tuple[str, ...]
    codes: np.ndarray
    row: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def positions(self, name: str) -> np.ndarray:
        """Return for each row the number of its field with this name; -1 without one."""
        result = np.full(self.rows, -1, np.int64)
        if name in self.names:
            own = np.flatnonzero(self.codes == self.names.index(name))
            result[self.row[own]] = own
        return result

    def texts(self, positions: np.ndarray) -> pa.Array:
        """Return the values of fields, still escaped; empty for -1."""
        present = positions >= 0
        starts = np.where(present, self.starts[positions], 0) if len(self.starts) else positions + 1
        ends = np.where(present, self.ends[positions], 0) if len(self.ends) else positions + 1
        return spans(self.data, starts, ends)


def _fields_of(block: bytes, first_row: int) -> _Fields:
    """Split a block of lines into fields. Raises IncorrectData for a field without a value and for a name that
    repeats in a row; CannotReadAllData for a last line without a line feed."""
    data = np.frombuffer(block, np.uint8)
    plain = ~escaped(data)
    ends = np.flatnonzero(((data == _TAB) | (data == _NEWLINE)) & plain)
    if not len(ends) or ends[-1] != len(data) - 1 or data[-1] != _NEWLINE:
        raise errors.CannotReadAllData(
            "The last line of TSKV does not end.", hint="A line feed stands behind each line."
        )
    starts = np.concatenate(([0], ends[:-1] + 1))
    row = np.concatenate(([0], np.cumsum(data[ends] == _NEWLINE)[:-1]))
    rows = int(row[-1]) + 1 if len(row) else 0
    equals = np.append(np.flatnonzero((data == _EQUALS) & plain), len(data))
    middle = equals[np.searchsorted(equals, starts)]
    has_value = middle < ends
    _refuse_without_value(data, starts[~has_value], ends[~has_value], row[~has_value] + first_row)
    starts, ends, row, middle = (a[has_value] for a in (starts, ends, row, middle))
    keys = unescaped(spans(data, starts, middle)).dictionary_encode()
    codes = columns.numpy_values(keys.indices).astype(np.int64)
    names = tuple(keys.dictionary.to_pylist())
    pairs = np.sort(row * max(len(names), 1) + codes)
    twice = np.flatnonzero(pairs[1:] == pairs[:-1])
    if len(twice):
        at, code = divmod(int(pairs[twice[0]]), len(names))
        raise errors.IncorrectData(f"Row {first_row + at} has the field {names[code]} twice.")
    return _Fields(data, rows, names, codes, row, middle + 1, ends)


def _refuse_without_value(
    data: np.ndarray, starts: np.ndarray, ends: np.ndarray, rows: np.ndarray
) -> None:
    """Raise IncorrectData for the first field without `=`, unless it is empty or the word tskv."""
    texts = spans(data, starts, ends)
    allowed = pc.is_in(pc.utf8_rtrim(texts, "\r"), pa.array(["", _MARKER]))
    wrong = np.flatnonzero(~allowed.to_numpy(zero_copy_only=False))
    if len(wrong):
        at = int(wrong[0])
        raise errors.IncorrectData(
            f"Row {int(rows[at])} has a field without a value: {texts[at].as_py()}.",
            hint="A field of TSKV is name=value.",
        )


def _chosen(fields: _Fields, source: Input) -> list[tuple[str, types.DataType | None]]:
    """Return the names of a block's columns to read, with their wanted types or None. Raises IncorrectData for a name
    that is not wanted."""
    if source.structure is None:
        return [(name, None) for name in fields.names]
    wanted = dict(source.structure)
    if not source.settings.boolean("input_format_skip_unknown_fields"):
        for name in fields.names:
            if name not in wanted:
                raise unknown_field(name, wanted)
    needed = source.needed
    return [
        (name, kind)
        for name, kind in source.structure
        if name in fields.names and (needed is None or name in needed)
    ]


def _layout(source: Input) -> Lines:
    """Return how values are read with the settings."""
    return Lines(
        separator="\t",
        null=source.settings.text("format_tsv_null_representation"),
        empty_as_default=source.settings.boolean("input_format_tsv_empty_as_default"),
    )


def _read(source: Input) -> Iterator[Rows]:
    """Yield the rows of one block of lines at a time; a column that no row has is left out."""
    layout = _layout(source)
    first_row = 1
    for block in blocks_of(source.stream, end_of_escaped_lines):
        fields = _fields_of(block, first_row)
        chosen = [(name, kind, fields.positions(name)) for name, kind in _chosen(fields, source)]
        apart = [at < 0 for name, _, at in chosen if name in source.absent_apart]
        for start, stop in pairwise(_bounds(apart, fields.rows)):
            yield _rows(fields, chosen, slice(start, stop), source, layout)
        first_row += fields.rows


def _bounds(apart: Sequence[np.ndarray], rows: int) -> list[int]:
    """Return the starts of the runs of rows that lack the same columns, and the total number of rows last."""
    changes = np.zeros(max(rows - 1, 0), bool)
    for absent in apart:
        changes |= absent[1:] != absent[:-1]
    return [0, *(np.flatnonzero(changes) + 1).tolist(), rows]


def _rows(
    fields: _Fields,
    chosen: Sequence[tuple[str, types.DataType | None, np.ndarray]],
    span: slice,
    source: Input,
    layout: Lines,
) -> Rows:
    """Return the columns of the rows in `span`."""
    names, arrays = [], []
    for name, kind, every in chosen:
        positions = every[span]
        if name in source.absent_apart and positions[0] < 0:
            continue
        values = text_values(fields.texts(positions), kind, layout)
        absent = positions < 0
        if absent.any():
            values = pc.if_else(pa.array(absent), pa.scalar(None, pa.string()), values)
        names.append(name)
        arrays.append(values)
    rows = Rows(tuple(names), kinds_of_texts(names), tuple(arrays), span.stop - span.start)
    return with_dynamics(rows, source)


def _infer(source: Input) -> Structure:
    """Infer the columns from the fields of the first rows, in order of appearance."""
    first = next(_read(Input(source.stream, source.settings, source.environment)), None)
    if first is None:
        raise no_structure("they have no rows")
    return infer_texts(first, source)


FORMATS = (
    Format("TSKV", "name=value between tabs.", TskvWriter, Reader(_infer, _read, named=True)),
)

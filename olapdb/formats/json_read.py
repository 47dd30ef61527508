"""Reads JSON: rows as objects or arrays, columns as texts that the caller converts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Input, Reader, Rows, Structure
from olapdb.formats.blocks import take_lines
from olapdb.formats.heads import (
    Head,
    checked_head,
    count_error,
    no_structure,
    numbered_names,
    unknown_field,
)
from olapdb.formats.inference import Guess
from olapdb.formats.json_row_blocks import RowBlocks
from olapdb.formats.json_types import type_of_tokens
from olapdb.formats.texts import is_text
from olapdb.functions.json import paths
from olapdb.functions.json.index import ARRAY, OBJECT, SCALAR, STRING, JsonIndex, build_index
from olapdb.functions.json.read import Reader as ValueReader
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.escapes import spans

# --- columns


@dataclass(frozen=True)
class _StrictReader(ValueReader):
    """A reader of nested values to which a value that does not convert is an error."""

    def values(self, tokens: np.ndarray, data_type: types.DataType) -> pa.Array:
        """Return the values of tokens; null is NULL, or the default. Raise CannotParse for others
        that do not convert."""
        _, converted = self.read(tokens, types.plain(data_type))
        bad = ~converted & (tokens >= 0) & ~_is_null(self.index, tokens)
        if bad.any():
            token = int(tokens[np.flatnonzero(bad)[0]])
            text = _token_text(self.index, token)
            raise errors.CannotParse(f"Cannot read {text} as {data_type}.").at_row(
                int(self.index.row[token])
            )
        return super().values(tokens, data_type)

    def _tuples(self, tokens: np.ndarray, data_type: types.Tuple) -> tuple[pa.Array, np.ndarray]:
        """Return tuples; raise CannotParseInput for an array of another size."""
        is_array = self.index.kind_of(tokens) == ARRAY
        offsets, _ = paths.members_of(self.index, np.where(is_array, tokens, -1))
        sizes = np.diff(offsets)
        wrong = np.flatnonzero(is_array & (sizes != len(data_type.elements)))
        if len(wrong):
            token = int(tokens[wrong[0]])
            raise errors.CannotParseInput(
                f"Cannot read an array of {int(sizes[wrong[0]])} values as {data_type}."
            ).at_row(int(self.index.row[token]))
        return super()._tuples(tokens, data_type)

    def _clocks(
        self, texts: pa.Array, data_type: types.Time | types.Time64
    ) -> tuple[pa.Array, np.ndarray]:
        """Return numbers as times; one with a fraction does not convert."""
        times, converted = super()._clocks(texts, data_type)
        _, is_whole = self._cast(texts, np.ones(len(texts), bool), types.INT64)
        return times, converted & is_whole

    def _integers(
        self, texts: pa.Array, readable: np.ndarray, data_type: types.Integer
    ) -> tuple[pa.Array, np.ndarray]:
        """Return texts as integers; a number with a fraction does not convert."""
        numbers, converted = super()._integers(texts, readable, data_type)
        floats, _ = self._cast(texts, readable & converted, types.FLOAT64)
        values = columns.numpy_values(floats)
        return numbers, converted & (values == np.trunc(values))


def _token_text(index: JsonIndex, token: int) -> str:
    """Return the text of a token, of a container the start."""
    end = index.end[token] if index.kind[token] not in (ARRAY, OBJECT) else index.start[token] + 40
    return index.data[index.start[token] : end].tobytes().decode("utf-8", "replace")


def _is_null(index: JsonIndex, tokens: np.ndarray) -> np.ndarray:
    """Return for each token whether it is the word null."""
    kind = index.kind_of(tokens)
    result = np.zeros(len(tokens), bool)
    scalars = np.flatnonzero(kind == SCALAR)
    result[scalars] = index.data[index.start[tokens[scalars]]] == ord("n")
    return result


def column_of_tokens(
    index: JsonIndex, tokens: np.ndarray, data_type: types.DataType, source: Input
) -> tuple[pa.Array, types.DataType]:
    """Return the values of one column and the type as which they are read: texts of scalars, values
    of arrays, maps and tuples. null and a missing member are NULL."""
    plain = types.plain(data_type)
    if isinstance(plain, types.Array | types.Map | types.Tuple | types.Time | types.Time64):
        reader = _StrictReader(index, source.environment)
        missing = (tokens < 0) | _is_null(index, tokens)
        values = reader.values(np.where(missing, -1, tokens), plain)
        if missing.any():
            values = pc.if_else(pa.array(missing), pa.scalar(None, values.type), values)
        return values, plain
    if is_text(plain) and not isinstance(plain, types.Enum):
        texts, present = _raw_texts(index, tokens)
    else:
        texts, present = ValueReader(index, source.environment).strings(tokens)
    if isinstance(plain, types.Integer | types.Float | types.Decimal):
        for word, number in (("true", "1"), ("false", "0")):
            texts = pc.if_else(pc.equal(texts, word), number, texts)
    if not present.all():
        texts = pc.if_else(pa.array(present), texts, pa.scalar(None, pa.string()))
    return texts, types.Nullable(types.STRING)


def _raw_texts(index: JsonIndex, tokens: np.ndarray) -> tuple[pa.Array, np.ndarray]:
    """Return strings decoded and other values as they are written, and which are neither null nor
    absent."""
    missing = (tokens < 0) | _is_null(index, tokens)
    safe = np.where(missing, 0, tokens)
    starts = np.where(missing, 0, index.start[safe] if len(index.kind) else 0)
    ends = np.where(missing, 0, index.end[index.close[safe]] if len(index.kind) else 0)
    texts = spans(index.data, starts, ends)
    strings = np.flatnonzero(index.kind_of(tokens) == STRING)
    if len(strings):
        texts = columns.replaced_rows(texts, strings, paths.keys_of(index, tokens[strings]))
    return texts, ~missing


def index_of(texts: pa.Array, first_row: int) -> JsonIndex:
    """Return the index of rows. Raise IncorrectData for one that is no JSON."""
    index = build_index(texts)
    if not index.valid.all():
        at = int(np.flatnonzero(~index.valid)[0])
        shown = columns.binary(texts)[at].as_py()[:80].decode("utf-8", "replace")
        raise errors.IncorrectData(f"Row {first_row + at} is no JSON: {shown}")
    return index


def rows_of_tokens(
    index: JsonIndex, tokens: list[tuple[str, np.ndarray]], source: Input, first_row: int
) -> Rows:
    """Return the wanted columns of a block; `tokens` are their names and the values' tokens."""
    wanted = dict(source.structure or ())
    names, kinds, arrays = [], [], []
    for name, column in tokens:
        data_type = wanted.get(name)
        if data_type is None:
            data_type = (
                type_of_tokens(index, column, Guess.of(source.settings, json=True)) or types.STRING
            )
        try:
            values, kind = column_of_tokens(index, column, data_type, source)
        except errors.DataError as error:
            row = None if error.row is None else first_row + error.row
            raise type(error)(f"Column {name}, row {row}: {error.message}") from None
        names.append(name)
        kinds.append(kind)
        arrays.append(values)
    rows = len(tokens[0][1]) if tokens else len(index.root)
    return Rows(tuple(names), tuple(kinds), tuple(arrays), rows)


def is_needed(name: str, source: Input) -> bool:
    """Return whether the column is read at all."""
    return source.needed is None or name in source.needed


# --- objects


def _members(
    index: JsonIndex, containers: np.ndarray
) -> tuple[list[str], Callable[[str], np.ndarray]]:
    """Return the names of the members of objects, one a row, and a function to the tokens of one's
    values, -1 where a row lacks it. A row whose token is -1 has no members."""
    offsets, values = paths.members_of(index, containers)
    rows = columns.parents_of(offsets)
    keys = paths.keys_of(index, values - 2).dictionary_encode()
    codes = columns.numpy_values(keys.indices)
    names: list[str] = keys.dictionary.to_pylist()
    numbers = {name: at for at, name in enumerate(names)}

    def tokens(name: str) -> np.ndarray:
        """Return the token of the value of the member `name` in each row, -1 where it is missing."""
        result = np.full(len(containers), -1, np.int64)
        number = numbers.get(name)
        if number is not None:
            own = codes == number
            result[rows[own][::-1]] = values[own][::-1]
        return result

    return names, tokens


def _with_nested(
    index: JsonIndex, names: list[str], tokens: Callable[[str], np.ndarray], wanted: Sequence[str]
) -> tuple[list[str], Callable[[str], np.ndarray]]:
    """Return the names and tokens of members where a wanted column `n.s` that no row has is the
    member s of the object n, as of a Nested column."""
    inner: dict[str, np.ndarray] = {}
    outer = set()
    for name in wanted:
        prefix, dot, rest = name.partition(".")
        if dot and name not in names and prefix in names and prefix not in wanted:
            objects = tokens(prefix)
            objects = np.where(index.kind_of(objects) == OBJECT, objects, -1)
            inner[name] = _members(index, objects)[1](rest)
            outer.add(prefix)
    shown = [name for name in names if name not in outer] + list(inner)
    return shown, lambda name: inner[name] if name in inner else tokens(name)


def _read_objects(source: Input) -> Iterator[Rows]:
    """Yield the rows of JSONEachRow; a column that no row of a block has is not among its columns."""
    return object_rows(source, RowBlocks(source, b"{").texts())


def object_rows(source: Input, blocks: Iterator[pa.Array], first_row: int = 1) -> Iterator[Rows]:
    """Yield the columns of blocks of objects, of which the first is the row `first_row`."""
    for texts in blocks:
        yield from _object_rows(source, texts, first_row)
        first_row += len(texts)


def _object_rows(source: Input, texts: pa.Array, first_row: int) -> Iterator[Rows]:
    """Yield the columns of a block of objects; several times if rows lack columns that they must
    lack together."""
    index = index_of(texts, first_row)
    names, tokens = _members(index, index.root)
    if source.structure is not None:
        wanted = [name for name, _ in source.structure]
        if source.settings.boolean("input_format_import_nested_json"):
            names, tokens = _with_nested(index, names, tokens, wanted)
        if not source.settings.boolean("input_format_skip_unknown_fields"):
            for name in names:
                if name not in wanted:
                    raise unknown_field(name, wanted)
        names = [name for name in wanted if name in set(names)]
    chosen = [(name, tokens(name)) for name in names if is_needed(name, source)]
    apart = [column < 0 for name, column in chosen if name in source.absent_apart]
    changes = np.zeros(max(len(texts) - 1, 0), bool)
    for absent in apart:
        changes |= absent[1:] != absent[:-1]
    if not changes.any():
        present = [
            (name, column)
            for name, column in chosen
            if name not in source.absent_apart or column[0] >= 0
        ]
        yield rows_of_tokens(index, present, source, first_row)
        return
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), len(texts)]
    for start, stop in pairwise(bounds):
        yield from _object_rows(source, texts.slice(start, stop - start), first_row + start)


def _infer_objects(source: Input) -> Structure:
    """Return the members of the first rows, in the order in which they come."""
    texts = next(RowBlocks(source, b"{").texts(), None)
    return infer_object_texts(source, texts)


def infer_object_texts(source: Input, texts: pa.Array | None) -> Structure:
    """Return the members of the first objects, in the order in which they come."""
    rows_max = source.settings.integer("input_format_max_rows_to_read_for_schema_inference")
    if texts is None:
        raise no_structure("they have no rows")
    index = index_of(texts.slice(0, max(rows_max, 1)), 1)
    names, tokens = _members(index, index.root)
    return tuple((name, inferred_type(index, tokens(name), source)) for name in names)


def inferred_type(index: JsonIndex, tokens: np.ndarray, source: Input) -> types.DataType:
    """Return the type of a column's values, Nullable where it can be; String where all are null."""
    return types.make_nullable(
        type_of_tokens(index, tokens, Guess.of(source.settings, json=True)) or types.STRING
    )


def object_reader() -> Reader:
    """Return the reader of JSONEachRow."""
    return Reader(_infer_objects, _read_objects, named=True)


def string_reader() -> Reader:
    """Return the reader of JSONStringsEachRow: values are strings of any type's text."""

    def infer(source: Input) -> Structure:
        """Return the members, all of type String."""
        names = [name for name, _ in _infer_objects(source)]
        return tuple((name, types.Nullable(types.STRING)) for name in names)

    def read(source: Input) -> Iterator[Rows]:
        """Yield the rows as texts."""
        return _read_objects(_as_strings(source))

    return Reader(infer, read, named=True)


def _as_strings(source: Input) -> Input:
    """Return the source with String as the type of all columns: their texts are converted later."""
    if source.structure is None:
        return source
    return replace(source, structure=tuple((name, types.STRING) for name, _ in source.structure))


# --- arrays


def compact_reader(head_lines: int, *, strings: bool) -> Reader:
    """Return the reader of a format JSONCompact…EachRow, with or without names and types."""

    def head_of(source: Input) -> Head | None:
        """Read the lines of names and types; None for data without them.

        Raises AttemptToReadAfterEof."""
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
        inner = _as_strings(source) if strings else source
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
    """Return the names, or types, of a line. Raise IncorrectData if it is no array of strings."""
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
    """Yield the columns of blocks of arrays. Raises CannotParseInput or IncorrectData for a row
    with another number of values."""
    first_row = 1
    for texts in blocks:
        index = index_of(texts, first_row)
        offsets, values = paths.members_of(index, index.root)
        counts = np.diff(offsets)
        if head is None:
            head = Head(_plain_names(source, int(counts[0])))
        wrong = np.flatnonzero(counts != len(head.names))
        if len(wrong):
            at = int(wrong[0])
            raise count_error(first_row + at, int(counts[at]), head.names)
        grid = values.reshape(len(counts), len(head.names))
        yield _compact_rows(index, head, grid, source, first_row)
        first_row += len(texts)


def infer_array_texts(source: Input, texts: pa.Array | None, head: Head | None) -> Structure:
    """Return the columns of rows that are arrays: by the head, and types by the values."""
    if texts is None:
        raise no_structure("they have no rows")
    index = index_of(texts, 1)
    offsets, values = paths.members_of(index, index.root)
    names = numbered_names(int(offsets[1])) if head is None else head.names
    counts = np.diff(offsets)
    wrong = np.flatnonzero(counts != len(names))
    if len(wrong):
        raise count_error(int(wrong[0]) + 1, int(counts[wrong[0]]), names)
    grid = values.reshape(-1, len(names))
    return tuple((name, inferred_type(index, grid[:, at], source)) for at, name in enumerate(names))


def _plain_names(source: Input, count: int) -> tuple[str, ...]:
    """Return the names of the columns of data without a head."""
    if source.structure is None:
        return numbered_names(count)
    return tuple(name for name, _ in source.structure)


def _compact_rows(
    index: JsonIndex, head: Head, grid: np.ndarray, source: Input, first_row: int
) -> Rows:
    """Return the wanted columns of a block of arrays; `grid` are the tokens of their elements."""
    wanted = None if source.structure is None else {name for name, _ in source.structure}
    chosen: dict[str, np.ndarray] = {}
    for at, name in enumerate(head.names):
        if (wanted is None or name in wanted) and is_needed(name, source):
            chosen.setdefault(name, np.ascontiguousarray(grid[:, at]))
    return rows_of_tokens(index, list(chosen.items()), source, first_row)

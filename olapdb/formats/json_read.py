"""Reads JSON: rows as objects or arrays, columns as texts that the caller converts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.config import Settings
from olapdb.config.function_settings import INFERENCE_SETTINGS
from olapdb.formats.base import Input, Reader, Rows, Structure
from olapdb.formats.heads import no_structure, unknown_field
from olapdb.formats.inference import Guess
from olapdb.formats.json_row_blocks import RowBlocks
from olapdb.formats.json_types import type_of_tokens
from olapdb.formats.name_matching import SETTING, matched_names
from olapdb.formats.refusals import refusal_of
from olapdb.formats.texts import is_text, zero_for_empty
from olapdb.functions import settings as function_settings
from olapdb.functions.json import paths
from olapdb.functions.json.index import ARRAY, OBJECT, SCALAR, STRING, JsonIndex, build_index
from olapdb.functions.json.read import ValueReader
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.escapes import spans
from olapdb.lazy import LazyModule
from olapdb.records import dataclass

if TYPE_CHECKING:
    from olapdb.functions.dynamic import objects
else:
    objects = LazyModule("olapdb.functions.dynamic.objects")

# --- columns


@dataclass(frozen=True)
class _StrictReader(ValueReader):
    """A reader of nested values that raises an error for values that do not convert."""

    settings: Settings = field(default_factory=Settings)
    """The settings of the data, which say whether objects may lack elements of a tuple, or have others."""

    def values(self, tokens: np.ndarray, data_type: types.DataType) -> pa.Array:
        """Return the values of tokens; JSON null is NULL, or the type's default. Raises CannotParse for a value that
        does not convert."""
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
        """Return tuples; raise CannotParseInput for an array of another size, IncorrectData for an object with
        other members where the settings say so."""
        self._check_members(tokens, data_type)
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

    def _check_members(self, tokens: np.ndarray, data_type: types.Tuple) -> None:
        """Raise IncorrectData for an object that lacks an element of the tuple or has another member, unless the
        settings allow it."""
        suffix = "_in_named_tuple"
        missing = f"input_format_json_defaults_for_missing_elements{suffix}"
        unknown = f"input_format_json_ignore_unknown_keys{suffix}"
        both = self.settings.boolean(missing) and self.settings.boolean(unknown)
        if both or not data_type.names:
            return
        objects = tokens[self.index.kind_of(tokens) == OBJECT]
        offsets, values = paths.members_of(self.index, objects)
        known = pc.is_in(paths.keys_of(self.index, values - 2), pa.array(data_type.names))
        sums = np.concatenate(([0], np.cumsum(columns.numpy_values(known.cast(pa.int64())))))
        member_counts = sums[offsets[1:]] - sums[offsets[:-1]]
        for name, wrong, said in (
            (missing, member_counts < len(data_type.names), "lacks an element"),
            (unknown, np.diff(offsets) > member_counts, "has a member that is no element"),
        ):
            if wrong.any() and not self.settings.boolean(name):
                token = int(objects[int(np.argmax(wrong))])
                raise errors.IncorrectData(
                    f"A JSON object {said} of {data_type}.", hint=f"SETTINGS {name} = 1 allows it."
                ).at_row(int(self.index.row[token]))

    def _clocks(
        self, texts: pa.Array, data_type: types.Time | types.Time64
    ) -> tuple[pa.Array, np.ndarray]:
        """Convert number texts to times, and return a mask of those that convert; numbers with a fraction do not."""
        times, converted = super()._clocks(texts, data_type)
        _, is_whole = self._cast(texts, np.ones(len(texts), bool), types.INT64)
        return times, converted & is_whole

    def _integers(
        self, texts: pa.Array, readable: np.ndarray, data_type: types.Integer
    ) -> tuple[pa.Array, np.ndarray]:
        """Convert texts to integers, and return a mask of those that convert; numbers with a fraction do not."""
        numbers, converted = super()._integers(texts, readable, data_type)
        floats, _ = self._cast(texts, readable & converted, types.FLOAT64)
        values = columns.numpy_values(floats)
        return numbers, converted & (values == np.trunc(values))


def _token_text(index: JsonIndex, token: int) -> str:
    """Return the source text of a token; of an object or array only the start. For error messages."""
    end = index.end[token] if index.kind[token] not in (ARRAY, OBJECT) else index.start[token] + 40
    return index.data[index.start[token] : end].tobytes().decode("utf-8", "replace")


def _is_null(index: JsonIndex, tokens: np.ndarray) -> np.ndarray:
    """Return a mask of the tokens that are null."""
    kind = index.kind_of(tokens)
    result = np.zeros(len(tokens), bool)
    scalars = np.flatnonzero(kind == SCALAR)
    result[scalars] = index.data[index.start[tokens[scalars]]] == ord("n")
    return result


def _is_empty(index: JsonIndex, tokens: np.ndarray) -> np.ndarray:
    """Return a mask of the tokens that are empty strings."""
    strings = index.kind_of(tokens) == STRING
    safe = np.where(strings, tokens, 0)
    return np.asarray(strings & (index.end[safe] - index.start[safe] == len('""')))


def column_of_tokens(
    index: JsonIndex, tokens: np.ndarray, data_type: types.DataType, source: Input
) -> tuple[pa.Array, types.DataType]:
    """Return one column's values and the type as which they are read: scalars as texts; arrays, maps and tuples as
    values. null and a missing member (-1) are NULL."""
    plain = types.plain(data_type)
    if isinstance(plain, types.Dynamic | types.Json):
        return _by_row(index, tokens, plain, source), types.make_nullable(plain)
    if isinstance(plain, types.Variant):
        reader = ValueReader(index, source.environment)
        values, converted = reader.read(tokens, plain)
        if not converted.all():
            token = int(tokens[int(np.argmin(converted))])
            raise errors.CannotParse(
                f"Cannot read {_token_text(index, token)} as {data_type}."
            ).at_row(int(index.row[token]))
        return values, plain
    if isinstance(plain, types.Array | types.Map | types.Tuple | types.Time | types.Time64):
        reader = _StrictReader(index, source.environment, settings=source.settings)
        missing = (tokens < 0) | _is_null(index, tokens)
        if source.settings.boolean("input_format_json_empty_as_default"):
            missing |= _is_empty(index, tokens)
        values = reader.values(np.where(missing, -1, tokens), plain)
        if missing.any():
            values = pc.if_else(pa.array(missing), pa.scalar(None, values.type), values)
        return values, plain
    if is_text(plain) and not isinstance(plain, types.Enum):
        _refuse_other_kinds(index, tokens, source)
        texts, present = _raw_texts(index, tokens)
    else:
        texts, present = ValueReader(index, source.environment).strings(tokens)
    if source.settings.boolean("input_format_json_empty_as_default") and not is_text(plain):
        present &= ~pc.equal(texts, "").to_numpy(zero_copy_only=False)
    texts = zero_for_empty(texts, plain)
    if isinstance(plain, types.Date | types.Date32):
        texts = _with_days(index, tokens, texts)
    if isinstance(plain, types.Integer | types.Float | types.Decimal):
        for word, number in (("true", "1"), ("false", "0")):
            texts = pc.if_else(pc.equal(texts, word), number, texts)
    if not present.all():
        texts = pc.if_else(pa.array(present), texts, pa.scalar(None, pa.string()))
    return texts, types.Nullable(types.STRING)


def _by_row(index: JsonIndex, tokens: np.ndarray, plain: types.DataType, source: Input) -> pa.Array:
    """Return values of JSON or Dynamic columns; objects in a Dynamic are tuples. null and missing members are NULL.
    Raises IncorrectData if a JSON column's value is no object."""
    changed = function_settings.changed_settings(INFERENCE_SETTINGS, source.settings.__getitem__)
    environment = replace(source.environment, changed=frozenset(changed))
    reader = objects.ObjectReader(index, environment)
    missing = (tokens < 0) | _is_null(index, tokens)
    present = tokens[~missing]
    if isinstance(plain, types.Json):
        read, is_object = reader.read(present, plain)
        if not is_object.all():
            token = int(present[int(np.argmin(is_object))])
            raise errors.IncorrectData(
                f"Cannot read {_token_text(index, token)} as {plain}: it is no object.",
                hint="Write the object itself, not in quotes.",
            ).at_row(int(index.row[token]))
    else:
        read = reader.dynamic(present)
    return columns.scatter(read, ~missing) if missing.any() else read


def _refuse_other_kinds(index: JsonIndex, tokens: np.ndarray, source: Input) -> None:
    """Raise an error for the first value that is no string, if the settings do not let its kind be read as a text.
    The error is CannotParseQuotedString for a number, else IncorrectData."""
    prefix = "input_format_json_read_"
    kinds = index.kind_of(tokens)
    is_bool = np.zeros(len(tokens), bool)
    scalars = np.flatnonzero((kinds == SCALAR) & ~_is_null(index, tokens))
    is_bool[scalars] = np.isin(index.data[index.start[tokens[scalars]]], list(b"tf"))
    is_number = np.zeros(len(tokens), bool)
    is_number[scalars] = ~is_bool[scalars]
    for name, is_other, kind in (
        ("numbers", is_number, errors.CannotParseQuotedString),
        ("bools", is_bool, errors.IncorrectData),
        ("objects", kinds == OBJECT, errors.IncorrectData),
        ("arrays", kinds == ARRAY, errors.IncorrectData),
    ):
        if is_other.any() and not source.settings.boolean(f"{prefix}{name}_as_strings"):
            token = int(tokens[int(np.argmax(is_other))])
            raise kind(
                f"Cannot parse JSON String value here: {_token_text(index, token)}.",
                hint=f"SETTINGS {prefix}{name}_as_strings = 1 reads it as text.",
            ).at_row(int(index.row[token]))


def _with_days(index: JsonIndex, tokens: np.ndarray, texts: pa.Array) -> pa.Array:
    """Return the texts of dates; where the token is a number, of days since 1970, it is converted to the text of a
    date."""
    numbers = np.flatnonzero((index.kind_of(tokens) == SCALAR) & ~_is_null(index, tokens))
    if not len(numbers):
        return texts
    try:
        days = texts.take(pa.array(numbers)).cast(pa.int32())
    except pa.ArrowInvalid:
        return texts
    return columns.replaced_rows(texts, numbers, days.cast(pa.date32()).cast(pa.string()))


def _raw_texts(index: JsonIndex, tokens: np.ndarray) -> tuple[pa.Array, np.ndarray]:
    """Return texts of tokens (strings decoded, other values as written), and a mask of those that are neither null
    nor absent."""
    missing = (tokens < 0) | _is_null(index, tokens)
    safe = np.where(missing, 0, tokens)
    starts = np.where(missing, 0, index.start[safe] if len(index.kind) else 0)
    ends = np.where(missing, 0, index.end[index.close[safe]] if len(index.kind) else 0)
    texts = spans(index.data, starts, ends)
    strings = np.flatnonzero(index.kind_of(tokens) == STRING)
    if len(strings):
        texts = columns.replaced_rows(texts, strings, paths.keys_of(index, tokens[strings]))
    return texts, ~missing


_BARE_KEY = re.compile(r'\{\s*[^"\s}]|,\s*\}')
"""The place of a key of an object that does not begin with a quote."""


def index_of(texts: pa.Array, first_row: int) -> JsonIndex:
    """Parse rows, one JSON value each. Raises CannotParseInput for invalid JSON, and CannotParseQuotedString for a
    key without quotes."""
    index = build_index(texts)
    if not index.valid.all():
        at = int(np.flatnonzero(~index.valid)[0])
        shown = columns.binary(texts)[at].as_py()[:80].decode("utf-8", "replace")
        is_key = _BARE_KEY.search(shown) is not None
        kind = errors.CannotParseQuotedString if is_key else errors.CannotParseInput
        raise kind(f"Row {first_row + at} is no JSON: {shown}")
    return index


def rows_of_tokens(
    index: JsonIndex, tokens: list[tuple[str, np.ndarray]], source: Input, first_row: int
) -> Rows:
    """Return the wanted columns of a block; `tokens` are pairs of column name and value tokens."""
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
            error = refusal_of(error, "JSON", data_type, False)
            raise type(error)(f"Column {name}, row {row}: {error.message}") from None
        names.append(name)
        kinds.append(kind)
        arrays.append(values)
    rows = len(tokens[0][1]) if tokens else len(index.root)
    return Rows(tuple(names), tuple(kinds), tuple(arrays), rows)


def is_needed(name: str, source: Input) -> bool:
    """Return whether the query reads the column at all."""
    return source.needed is None or name in source.needed


# --- objects


def _members(
    index: JsonIndex,
    containers: np.ndarray,
    renamed: Callable[[Sequence[str]], Sequence[str]] = list,
) -> tuple[list[str], Callable[[str], np.ndarray]]:
    """Return the names of all members of the rows' objects, and a function from a name to the value tokens by row, -1
    where missing. A container of -1 has no members. `renamed` maps member names to column names; the first member of
    a name counts."""
    offsets, values = paths.members_of(index, containers)
    rows = columns.parents_of(offsets)
    keys = paths.keys_of(index, values - 2).dictionary_encode()
    codes = columns.numpy_values(keys.indices)
    numbers: dict[str, list[int]] = {}
    for at, name in enumerate(renamed(keys.dictionary.to_pylist())):
        numbers.setdefault(name, []).append(at)

    def tokens(name: str) -> np.ndarray:
        """Return the token of the value of the member `name` in each row, -1 where it is missing."""
        result = np.full(len(containers), -1, np.int64)
        own_numbers = numbers.get(name)
        if own_numbers is not None:
            own = codes == own_numbers[0]
            for other in own_numbers[1:]:
                own |= codes == other
            result[rows[own][::-1]] = values[own][::-1]
        return result

    return list(numbers), tokens


def _with_nested(
    index: JsonIndex, names: list[str], tokens: Callable[[str], np.ndarray], wanted: Sequence[str]
) -> tuple[list[str], Callable[[str], np.ndarray]]:
    """Extend names and tokens: a wanted column `n.s` that no row has is read from the member s of the object n, as
    for a Nested column."""
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
    """Yield the columns of a block of JSON objects in pieces, such that a column of `source.absent_apart` is present
    in all rows of a piece or in none."""
    index = index_of(texts, first_row)
    if source.structure is None:
        names, tokens = _members(index, index.root)
    else:
        wanted = [name for name, _ in source.structure]
        renamed = partial(matched_names, wanted=wanted, mode=source.settings.text(SETTING))
        names, tokens = _members(index, index.root, renamed)
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
    if not names:
        raise no_structure("their objects are empty")
    return tuple((name, inferred_type(index, tokens(name), source)) for name in names)


def inferred_type(index: JsonIndex, tokens: np.ndarray, source: Input) -> types.DataType:
    """Infer the type of a column's values, Nullable where possible; String if all are null. Raises
    CannotExtractTableStructure if they have no common type, or, if the settings say so, if all are null."""
    guess = Guess.of(source.settings, json=True)
    _require_one_type(index, tokens, guess, source)
    data_type = type_of_tokens(index, tokens, guess)
    as_text = source.settings.boolean("input_format_json_infer_incomplete_types_as_strings")
    if not as_text and (data_type is None or _has_no_elements(index, tokens, data_type)):
        raise no_structure("a column has nothing but null or empty arrays")
    return types.make_nullable(data_type or types.STRING)


def _has_no_elements(index: JsonIndex, tokens: np.ndarray, data_type: types.DataType) -> bool:
    """Return whether the values are arrays none of which has a non-null element."""
    while isinstance(data_type, types.Array):
        arrays = tokens[index.kind_of(tokens) == ARRAY]
        tokens = paths.members_of(index, arrays)[1]
        if not len(tokens) or bool(_is_null(index, tokens).all()):
            return True
        data_type = types.plain(data_type.inner)
    return False


def _require_one_type(index: JsonIndex, tokens: np.ndarray, guess: Guess, source: Input) -> None:
    """Raise CannotExtractTableStructure for mixed kinds that the settings do not allow: arrays or objects among other
    values, numbers among strings, Bools among numbers."""
    kinds = index.kind_of(tokens)
    kinds = np.where(_is_null(index, tokens), -1, kinds)
    words = index.data[index.start[tokens[kinds == SCALAR]]]
    bools = np.isin(words, list(b"tf"))
    is_present = {
        "arrays": bool((kinds == ARRAY).any()),
        "objects": guess.named_tuples and bool((kinds == OBJECT).any()),
        "strings": bool((kinds == STRING).any()),
        "numbers": bool((~bools).any()),
        "bools": bool(bools.any()),
    }
    present = {name for name, is_there in is_present.items() if is_there}
    settings, prefix = source.settings, "input_format_json_read_"
    one_type = len(present) < 2 or not present & {"arrays", "objects"}
    if present >= {"strings", "numbers"}:
        one_type &= settings.boolean(f"{prefix}numbers_as_strings")
    if present >= {"strings", "bools"}:
        one_type &= settings.boolean(f"{prefix}bools_as_strings")
    if present >= {"numbers", "bools"} and "strings" not in present:
        one_type &= settings.boolean(f"{prefix}bools_as_numbers")
    if not one_type:
        raise no_structure(f"rows of a column have {', '.join(sorted(present))}")


def object_reader() -> Reader:
    """Return the reader of JSONEachRow."""
    return Reader(_infer_objects, _read_objects, named=True)


def string_reader() -> Reader:
    """Return the reader of JSONStringsEachRow, in which every value is a string that holds the text of a value."""

    def infer(source: Input) -> Structure:
        """Return the members, all of type String."""
        names = [name for name, _ in _infer_objects(source)]
        return tuple((name, types.Nullable(types.STRING)) for name in names)

    def read(source: Input) -> Iterator[Rows]:
        """Yield the rows as texts."""
        return _read_objects(as_strings(source))

    return Reader(infer, read, named=True)


def as_strings(source: Input) -> Input:
    """Return the source with String as the type of all columns: their texts are converted later."""
    if source.structure is None:
        return source
    return replace(source, structure=tuple((name, types.STRING) for name, _ in source.structure))

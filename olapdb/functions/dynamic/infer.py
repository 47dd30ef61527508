"""The types of values in JSON texts, and the values as a Dynamic.

Whole numbers are Int64 or UInt64, others Float64; a whole number beyond 64 bits is a String. Strings that are
dates or times are such. An array has the type that its elements have in common, else it is an Array(Dynamic);
objects within arrays are JSON."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import IncorrectData
from olapdb.functions.base import Environment
from olapdb.functions.dynamic.stored import stored_texts
from olapdb.functions.dynamic.times import FINE_TIME, TIME, days_and_times, read_times
from olapdb.functions.json import paths
from olapdb.functions.json.index import ARRAY, OBJECT, SCALAR, STRING, JsonIndex
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.escapes import spans
from olapdb.records import dataclass
from olapdb.types.arrow import DYNAMIC
from olapdb.types.arrow_values import from_numpy

NOTHING, BOOL, INT64, UINT64, FLOAT64, TEXT, DAY, CLOCK, FINE, OBJECTS, ARRAYS = range(11)
"""Classes of values. NOTHING is null, or a token that is not there."""
_SCALARS: dict[int, types.DataType] = {
    BOOL: types.BOOL,
    INT64: types.INT64,
    UINT64: types.UINT64,
    FLOAT64: types.FLOAT64,
    TEXT: types.STRING,
    DAY: types.DATE,
    CLOCK: TIME,
    FINE: FINE_TIME,
}
_NO_DATES, _NO_TIMES = "input_format_try_infer_dates", "input_format_try_infer_datetimes"
_NO_NUMBERS = "input_format_json_read_bools_as_numbers"
_NUMBERS = 1 << INT64 | 1 << UINT64 | 1 << FLOAT64
_INTEGER = r"^-?[0-9]+$"
_LENGTH_OF_INT64 = 18
NESTING_MAX = 16
"""Levels of arrays in arrays, and of objects in arrays of objects. Each level of objects is a text in a text, whose
escapes double: 22 levels took 12 s to read."""


def refuse_depth(index: JsonIndex, tokens: np.ndarray, depth: int) -> None:
    """Raise IncorrectData with the row of the first token if arrays nest `depth` levels deep and that is too many."""
    if depth > NESTING_MAX and len(tokens):
        raise IncorrectData(
            f"The arrays of a JSON nest deeper than {NESTING_MAX} levels.",
            hint="Keep such a text as String; JSONExtract reads parts of it.",
        ).at_row(int(index.row[tokens[0]]))


@dataclass(frozen=True)
class Inference:
    """The inference of the types of values in an index. `json` is the type that objects within arrays get."""

    index: JsonIndex
    environment: Environment
    json: types.Json
    read_objects: Callable[[np.ndarray, types.Json], pa.Array]
    """Reads objects as a JSON."""
    nullable: bool = True
    """Whether elements of arrays are Nullable also where none is null, as at the paths of a JSON."""

    def dynamic(self, tokens: np.ndarray, objects: types.Json) -> pa.Array:
        """Return the values of tokens as a Dynamic: NULL for null and -1. `objects`: the type of an object."""
        classes = self.classes(tokens)
        names = np.full(len(tokens), -1, np.int64)
        row_types: list[types.DataType] = []
        pieces: list[pa.Array] = []
        places: list[np.ndarray] = []

        def add(rows: np.ndarray, data_type: types.DataType, texts: pa.Array) -> None:
            """Add the texts of the rows that have one type to the pieces."""
            names[rows] = len(row_types)
            row_types.append(data_type)
            pieces.append(texts)
            places.append(rows)

        for code, data_type in _SCALARS.items():
            rows = np.flatnonzero(classes == code)
            if len(rows):
                add(rows, data_type, self.scalar_texts(tokens[rows], code))
        rows = np.flatnonzero(classes == OBJECTS)
        if len(rows):
            add(rows, objects, stored_texts(self.read_objects(tokens[rows], objects), objects))
        rows = np.flatnonzero(classes == ARRAYS)
        if len(rows):
            kinds, types_of_kinds = self.array_types(tokens[rows])
            for kind in np.unique(kinds).tolist():
                own = rows[kinds == kind]
                data_type = types_of_kinds[kind]
                add(own, data_type, stored_texts(self.values(tokens[own], data_type), data_type))
        return _assembled(names, row_types, pieces, places)

    def classes(self, tokens: np.ndarray) -> np.ndarray:
        """Return the class of each token's value, such as INT64, TEXT or OBJECTS; uint8."""
        kind = self.index.kind_of(tokens)
        classes = np.full(len(tokens), NOTHING, np.uint8)
        classes[kind == OBJECT] = OBJECTS
        classes[kind == ARRAY] = ARRAYS
        rows = np.flatnonzero(kind == SCALAR)
        if len(rows):
            classes[rows] = _scalar_classes(self.index, tokens[rows])
        rows = np.flatnonzero(kind == STRING)
        if len(rows):
            texts = paths.keys_of(self.index, tokens[rows])
            day, clock, fine = days_and_times(texts, self.environment)
            if _NO_DATES in self.environment.changed:  # a day is a time then
                day, clock = np.zeros_like(day), day | clock
            if _NO_TIMES in self.environment.changed:
                clock, fine = np.zeros_like(clock), np.zeros_like(fine)
            classes[rows] = np.select([day, clock, fine], [DAY, CLOCK, FINE], TEXT)
        return classes

    def scalar_texts(self, tokens: np.ndarray, code: int) -> pa.Array:
        """Return the texts in which a Dynamic keeps the values of one class, `code`."""
        if code in (BOOL, UINT64):
            return _written(self.index, tokens)
        if code == INT64:
            texts = _written(self.index, tokens)
            return pc.if_else(pc.equal(texts, "-0"), "0", texts)
        if code == TEXT:
            return self.texts(tokens)
        return stored_texts(self.values(tokens, _SCALARS[code]), _SCALARS[code])

    def texts(self, tokens: np.ndarray) -> pa.Array:
        """Return the texts of tokens: strings decoded, scalars as they are written."""
        strings = self.index.kind_of(tokens) == STRING
        if strings.all():
            return paths.keys_of(self.index, tokens)
        texts = _written(self.index, tokens)
        rows = np.flatnonzero(strings)
        if not len(rows):
            return texts
        return columns.replaced_rows(texts, rows, paths.keys_of(self.index, tokens[rows]))

    def array_types(self, tokens: np.ndarray) -> tuple[np.ndarray, list[types.DataType]]:
        """Return the distinct types of arrays, and for each array the position of its type among them.
        `tokens` are in the order of the text.

        Raises IncorrectData for arrays that nest too deep."""
        offsets, members = paths.members_of(self.index, tokens)
        kinds, inner = self._common(offsets, members, 1)
        return kinds, [types.Array(t) for t in inner]

    def _common(
        self, offsets: np.ndarray, members: np.ndarray, depth: int
    ) -> tuple[np.ndarray, list[types.DataType]]:
        """Return the distinct common types of lists of tokens, and for each list the position of its type
        among them."""
        count = len(offsets) - 1
        owners = columns.parents_of(offsets)
        masks = np.zeros(count, np.int64)
        classes = self.classes(members)
        np.bitwise_or.at(masks, owners, np.int64(1) << classes.astype(np.int64))
        negative = np.zeros(count, bool)
        negative[owners[(classes == INT64) & _is_negative(self.index, members)]] = True
        places = np.zeros(count, np.int64)
        common_types: list[types.DataType] = []
        keys = masks * 2 + negative
        for key in np.unique(keys).tolist():
            rows = np.flatnonzero(keys == key)
            mask, has_negative = key >> 1, bool(key & 1)
            if mask & ~(1 << NOTHING) != 1 << ARRAYS:
                places[rows] = len(common_types)
                if mask >> BOOL & 1 and mask & _NUMBERS and _NO_NUMBERS in self.environment.changed:
                    element: types.DataType = types.Dynamic()
                else:
                    element = _element_type(mask, has_negative, self.json)
                common_types.append(element if self.nullable or mask & 1 else types.plain(element))
                continue
            own = np.isin(owners, rows) & (classes == ARRAYS)
            kinds, inner = self._common_of_arrays(rows, owners[own], members[own], depth + 1)
            places[rows] = kinds + len(common_types)
            common_types += inner
        return places, common_types

    def _common_of_arrays(
        self, rows: np.ndarray, owners: np.ndarray, arrays: np.ndarray, depth: int
    ) -> tuple[np.ndarray, list[types.DataType]]:
        """Return for each row the number of the type that its arrays have in common, and the list of these types.

        `owners` has the row of each array."""
        refuse_depth(self.index, arrays, depth)
        offsets, members = paths.members_of(self.index, arrays)
        numbers = np.searchsorted(rows, owners[columns.parents_of(offsets)])
        order = np.argsort(numbers, kind="stable")
        counts = np.bincount(numbers, minlength=len(rows))
        kinds, inner = self._common(columns.offsets_from_counts(counts), members[order], depth)
        mixed = types.Dynamic()
        return kinds, [mixed if t == mixed else types.Array(t) for t in inner]

    def values(self, tokens: np.ndarray, data_type: types.DataType) -> pa.Array:
        """Return tokens as values of a type that was found for them; NULL for null."""
        plain = types.plain(data_type)
        match plain:
            case types.Array(inner):
                offsets, members = paths.members_of(self.index, tokens)
                lists = columns.lists_from(offsets, self.values(members, inner))
                return columns.retype(lists, plain.arrow)
            case types.Dynamic():
                return self.dynamic(tokens, types.Json())
        kind = self.index.kind_of(tokens)
        is_null = (kind < 0) | ((kind == SCALAR) & _is_null(self.index, tokens))
        present = np.flatnonzero(~is_null)
        own = tokens[present]
        if isinstance(plain, types.Json):
            read = self.read_objects(own, plain)
        elif isinstance(plain, types.Date | types.DateTime | types.DateTime64):
            texts = self.texts(own)
            if _NO_DATES in self.environment.changed:
                is_day = pc.invert(pc.match_substring(texts, ":"))
                texts = pc.if_else(
                    is_day, pc.binary_join_element_wise(texts, "00:00:00", " "), texts
                )
            read = read_times(texts, plain, self.environment)
        else:
            read = _scalars(self.texts(own), plain)
        return columns.scatter(read, ~is_null) if is_null.any() else read


def _scalars(texts: pa.Array, plain: types.DataType) -> pa.Array:
    """Return texts as numbers, Bools or Strings of type `plain`; true and false as numbers are 1 and 0."""
    if isinstance(plain, types.String):
        return texts
    if isinstance(plain, types.Boolean):
        return pc.equal(texts, "true")
    for word, number in (("true", "1"), ("false", "0")):
        texts = pc.if_else(pc.equal(texts, word), number, texts)
    return texts.cast(plain.arrow)


def _assembled(
    names: np.ndarray,
    row_types: list[types.DataType],
    pieces: list[pa.Array],
    places: list[np.ndarray],
) -> pa.Array:
    """Return a Dynamic: `names` has the place of each row's type, -1 for NULL."""
    if not pieces:
        return pa.nulls(len(names), DYNAMIC)
    valid = names >= 0
    labels = pa.array([t.name for t in row_types], pa.string())
    order = np.argsort(np.concatenate(places), kind="stable")
    texts = pa.concat_arrays([columns.text(p) for p in pieces])
    if len(pieces) > 1:
        texts = texts.take(from_numpy(order))
    if not valid.all():
        texts = columns.scatter(texts, valid)
    types_of_rows = labels.take(from_numpy(np.maximum(names, 0), ~valid))
    return columns.structs_from([types_of_rows, texts], DYNAMIC, None if valid.all() else valid)


def _written(index: JsonIndex, tokens: np.ndarray) -> pa.Array:
    """Return the text of each token as it is written."""
    return spans(index.data, index.start[tokens], index.end[tokens])


def _is_null(index: JsonIndex, tokens: np.ndarray) -> np.ndarray:
    """Return a mask of the tokens that are null: they begin with the letter n."""
    if not len(index.data):
        return np.zeros(len(tokens), bool)
    return np.asarray(index.data[index.start[np.maximum(tokens, 0)]] == ord("n"))


def _is_negative(index: JsonIndex, tokens: np.ndarray) -> np.ndarray:
    """Return a mask of the tokens that are negative numbers: they begin with a minus."""
    if not len(index.data):
        return np.zeros(len(tokens), bool)
    return np.asarray(index.data[index.start[np.maximum(tokens, 0)]] == ord("-"))


def _scalar_classes(index: JsonIndex, tokens: np.ndarray) -> np.ndarray:
    """Return the classes of numbers, true, false and null. An integer that neither Int64 nor UInt64 holds is TEXT."""
    first = index.data[index.start[tokens]]
    classes = np.full(len(tokens), FLOAT64, np.uint8)
    classes[first == ord("n")] = NOTHING
    classes[(first == ord("t")) | (first == ord("f"))] = BOOL
    rows = np.flatnonzero(classes == FLOAT64)
    texts = _written(index, tokens[rows])
    whole = np.asarray(pc.match_substring_regex(texts, _INTEGER))
    classes[rows[whole]] = INT64
    sizes = index.end[tokens] - index.start[tokens]
    long = np.flatnonzero((classes == INT64) & (sizes > _LENGTH_OF_INT64))
    if len(long):
        texts = _written(index, tokens[long])
        wide = columns.numpy_values(
            _fits(texts, "-?", "9223372036854775807", "9223372036854775808")
        )
        unsigned = columns.numpy_values(_fits(texts, "", "18446744073709551615", ""))
        classes[long] = np.select([wide != 0, unsigned != 0], [INT64, UINT64], TEXT)
    return classes


def _fits(texts: pa.Array, sign: str, largest: str, least: str) -> pa.Array:
    """Return which texts of whole numbers are from -`least` to `largest`. A text has no zeros in front. `sign` "": no
    negative number fits."""
    digits = pc.utf8_ltrim(texts, characters="-")
    negative = pc.starts_with(texts, "-")
    bound = pc.if_else(negative, least or "0", largest)
    size, most = pc.binary_length(digits), pc.binary_length(bound)
    within = pc.or_(
        pc.less(size, most), pc.and_(pc.equal(size, most), pc.less_equal(digits, bound))
    )
    return within if sign else pc.and_(within, pc.invert(negative))


def _element_type(mask: int, has_negative: bool, json: types.Json) -> types.DataType:
    """Return the common type of an array's elements, whose classes are the bits of `mask`; none of them is an array.

    A Dynamic if they have no common type. `has_negative`: one of the integers is below 0."""
    present = {code for code in range(ARRAYS + 1) if mask >> code & 1} - {NOTHING}
    if not present:
        return types.Nullable(types.STRING)
    if present == {OBJECTS}:
        return types.Nullable(json) if mask & 1 else json
    numbers = present - {BOOL}
    if present == {BOOL}:
        return types.Nullable(types.BOOL)
    if numbers <= {INT64, UINT64, FLOAT64}:
        if FLOAT64 in numbers:
            return types.Nullable(types.FLOAT64)
        if UINT64 in numbers:
            return types.Dynamic() if has_negative else types.Nullable(types.UINT64)
        return types.Nullable(types.INT64)
    if present <= {BOOL, TEXT}:
        return types.Nullable(types.STRING)
    if present <= {TEXT, DAY, CLOCK, FINE}:
        if TEXT in present:
            return types.Nullable(types.STRING)
        finest = max(present)
        return types.Nullable(_SCALARS[finest])
    return types.Dynamic()

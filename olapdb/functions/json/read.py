"""JSON values as values of olapdb's types."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions.base import Environment
from olapdb.functions.casts import cast
from olapdb.functions.json import paths
from olapdb.functions.json.index import ARRAY, OBJECT, SCALAR, STRING, JsonIndex
from olapdb.functions.json.raw import is_wide_integer, number_texts, raw_texts
from olapdb.functions.kernels import clocks, columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.escapes import spans
from olapdb.functions.variants.json_values import read_variants
from olapdb.lazy import LazyModule
from olapdb.records import dataclass

if TYPE_CHECKING:
    from olapdb.functions.dynamic import objects
else:
    objects = LazyModule("olapdb.functions.dynamic.objects")

_FROM_TEXT = (types.Date, types.Date32, types.UUID, types.IPv4, types.IPv6)
_TIMES = (types.DateTime, types.DateTime64, types.Time, types.Time64)


def refuse_type(name: str, data_type: types.DataType) -> None:
    """Raise IllegalTypeOfArgument if a type, or a type within it, is one as which JSON is not read; `name` is the
    function."""
    inner = types.plain(data_type)
    if isinstance(inner, types.Array):
        return refuse_type(name, inner.inner)
    if isinstance(inner, types.Tuple):
        for element in inner.elements:
            refuse_type(name, element)
        return None
    if isinstance(inner, types.Map):
        if not isinstance(types.plain(inner.key), types.String):
            raise IllegalTypeOfArgument(f"{name} reads maps with keys of type String only.")
        return refuse_type(name, inner.value)
    if isinstance(inner, types.Variant):
        for alternative in inner.alternatives:
            refuse_type(name, alternative)
        return None
    if isinstance(inner, types.Json | types.Dynamic):
        return None
    scalars = types.Integer | types.Float | types.Boolean | types.Decimal | types.String
    if isinstance(inner, scalars | types.FixedString):
        return None
    if isinstance(inner, (types.Enum, *_FROM_TEXT, *_TIMES)):
        return None
    raise IllegalTypeOfArgument(f"{name} does not support the return type {data_type}.")


@dataclass(frozen=True)
class ValueReader:
    """A reader of an index's values. `bool_as_number`: true and false are 1 and 0 where a number is read."""

    index: JsonIndex
    environment: Environment
    bool_as_number: bool = True

    def values(self, tokens: np.ndarray, data_type: types.DataType) -> pa.Array:
        """Return the values of tokens as the type; a value that does not convert is NULL, or the default of a type
        without NULL."""
        read, converted = self.read(tokens, types.plain(data_type))
        if converted.all():
            return read
        if types.is_nullable(data_type):
            return pc.if_else(pa.array(converted), read, pa.scalar(None, read.type))
        default = default_value(types.plain(data_type))
        rows = np.flatnonzero(~converted)
        return columns.replaced_rows(read, rows, columns.as_array(default, len(rows)))

    def read(self, tokens: np.ndarray, data_type: types.DataType) -> tuple[pa.Array, np.ndarray]:
        """Return the values of tokens as a type that is not Nullable, and a mask of those that convert. Others have
        arbitrary values."""
        match data_type:
            case types.Array():
                return self._arrays(tokens, data_type)
            case types.Tuple():
                return self._tuples(tokens, data_type)
            case types.Map():
                return self._maps(tokens, data_type)
            case types.String():
                return self.strings(tokens)
            case types.FixedString():
                texts, converted = self.strings(tokens)
                fits = columns.numpy_values(pc.binary_length(texts)) <= data_type.length
                return self._cast(texts, converted & fits, data_type)
            case types.Boolean():
                return self._flags(tokens)
            case types.Integer() | types.Float():
                return self._numbers(tokens, data_type)
            case types.Json():
                return objects.ObjectReader(self.index, self.environment).read(tokens, data_type)
            case types.Dynamic():
                reader = objects.ObjectReader(self.index, self.environment)
                return reader.dynamic(tokens, nullable=True), np.ones(len(tokens), bool)
            case types.Variant():
                parse = partial(cast.parse_or_null, environment=self.environment)
                return read_variants(self, tokens, data_type, parse)
            case _:
                return self._others(tokens, data_type)

    def strings(self, tokens: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        """Return strings decoded and other values as their JSON text, and a mask of the tokens that have a text:
        null and token -1 have none."""
        kind = self.index.kind_of(tokens)
        texts = raw_texts(self.index, np.where(kind == STRING, -1, tokens), self.environment)
        texts = self._unquoted_wide_integers(texts, kind == SCALAR)
        rows = np.flatnonzero(kind == STRING)
        decoded = paths.keys_of(self.index, tokens[rows])
        texts = columns.replaced_rows(texts, rows, decoded) if len(rows) else texts
        is_null = columns.numpy_values(pc.equal(texts, "null")).astype(bool) & (kind == SCALAR)
        return texts, (tokens >= 0) & ~is_null

    def _unquoted_wide_integers(self, texts: pa.Array, scalar: np.ndarray) -> pa.Array:
        """Return the JSON texts; of the scalars among them, integers beyond 64 bits lose the quotes that `raw_texts`
        puts round them."""
        quoted = scalar & columns.numpy_values(pc.starts_with(texts, '"')).astype(bool)
        if not quoted.any():
            return texts
        rows = np.flatnonzero(quoted)
        digits = pc.ascii_trim(texts.take(pa.array(rows)), characters='"')
        return columns.replaced_rows(texts, rows, digits)

    def _contents(self, tokens: np.ndarray) -> tuple[pa.Array, np.ndarray, np.ndarray]:
        """Return the texts of strings and scalars, a mask of the strings, and a mask of the scalars."""
        kind = self.index.kind_of(tokens)
        chosen = np.where((kind == STRING) | (kind == SCALAR), tokens, -1)
        empty = np.zeros(len(tokens), np.int64)
        rows = np.flatnonzero(chosen >= 0)
        starts, ends = empty.copy(), empty.copy()
        starts[rows], ends[rows] = self.index.start[chosen[rows]], self.index.end[chosen[rows]]
        texts = spans(self.index.data, starts, ends)
        strings = np.flatnonzero(kind == STRING)
        if len(strings):
            decoded = paths.keys_of(self.index, tokens[strings])
            texts = columns.replaced_rows(texts, strings, decoded)
        return texts, kind == STRING, kind == SCALAR

    def _words(
        self, tokens: np.ndarray
    ) -> tuple[pa.Array, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the texts of strings and scalars, and masks of the strings, the numbers, true, and false."""
        texts, string, scalar = self._contents(tokens)
        true = columns.numpy_values(pc.equal(texts, "true")).astype(bool) & scalar
        false = columns.numpy_values(pc.equal(texts, "false")).astype(bool) & scalar
        null = columns.numpy_values(pc.equal(texts, "null")).astype(bool) & scalar
        number = scalar & ~(true | false | null)
        if number.any():
            wide = number & is_wide_integer(texts, self.environment)
            string, number = string | wide, number & ~wide
        return texts, string, number, true, false

    def _numbers(
        self, tokens: np.ndarray, data_type: types.Integer | types.Float
    ) -> tuple[pa.Array, np.ndarray]:
        """Return numbers, and strings that spell numbers, as integers (a fraction is cut off) or floats, and a mask
        of those that convert."""
        texts, string, number, true, false = self._words(tokens)
        readable = string | number
        if isinstance(data_type, types.Float):
            numbers, converted = self._cast(texts, readable, data_type)
        else:
            numbers, converted = self._integers(texts, readable, data_type)
        if self.bool_as_number and (true | false).any():
            rows = np.flatnonzero(true | false)
            flags = columns.from_values(true[rows].astype(np.int64), pa.int64())
            numbers = columns.replaced_rows(numbers, rows, flags.cast(data_type.arrow))
            converted = converted | true | false
        return numbers, converted

    def _integers(
        self, texts: pa.Array, readable: np.ndarray, data_type: types.Integer
    ) -> tuple[pa.Array, np.ndarray]:
        """Return texts as integers, and a mask of those that convert: a fraction is cut off, a number out of range
        does not convert."""
        numbers, converted = self._cast(texts, readable, data_type)
        rest = np.flatnonzero(readable & ~converted)
        if not len(rest):
            return numbers, converted
        floats, finite = self._cast(
            texts.take(pa.array(rest)), np.ones(len(rest), bool), types.FLOAT64
        )
        whole = np.trunc(columns.numpy_values(floats))
        limits = np.iinfo(columns.dtype_of(data_type.arrow))
        within = finite & (whole >= float(limits.min)) & (whole < float(limits.max) + 1)
        whole = np.where(within, whole, 0)
        cut = whole.astype(columns.dtype_of(data_type.arrow))
        numbers = columns.replaced_rows(numbers, rest, columns.from_values(cut, data_type.arrow))
        converted = converted.copy()
        converted[rest] = within
        return numbers, converted

    def _flags(self, tokens: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        """Return values as Bool, and a mask of those that convert: true and false, and numbers, which are true
        unless they are 0 when cut to an integer."""
        texts, _, number, true, false = self._words(tokens)
        whole, converted = self._integers(texts, number, types.INT64)
        nonzero = columns.numpy_values(whole) != 0
        flags = columns.from_values(np.where(converted, nonzero, true), types.BOOL.arrow)
        return flags, converted | true | false

    def _clocks(
        self, texts: pa.Array, data_type: types.Time | types.Time64
    ) -> tuple[pa.Array, np.ndarray]:
        """Return numbers as Time or Time64, and a mask of those that convert.

        Integers are seconds for a Time and ticks for a Time64; a fraction is seconds for a Time64 and does not
        convert to a Time."""
        every = np.ones(len(texts), bool)
        whole, is_whole = self._cast(texts, every, types.INT64)
        ticks = columns.numpy_values(whole)
        stopped = clocks.stopped(ticks, data_type)
        times = columns.from_values(stopped, data_type.arrow)
        rest = np.flatnonzero(~is_whole)
        if isinstance(data_type, types.Time) or not len(rest):
            return times, is_whole
        seconds, is_number = self._cast(texts.take(pa.array(rest)), every[rest], types.FLOAT64)
        fractions = cast.cast_column(
            seconds, types.FLOAT64, data_type, self.environment, strict=True
        )
        converted = is_whole.copy()
        converted[rest] = is_number
        return columns.replaced_rows(times, rest, fractions), converted

    def _others(self, tokens: np.ndarray, data_type: types.DataType) -> tuple[pa.Array, np.ndarray]:
        """Return values of the remaining types, and a mask of those that convert: decimals from numbers and texts,
        dates and UUIDs from texts, times from texts and integers."""
        texts, string, number, _, _ = self._words(tokens)
        if isinstance(data_type, types.Decimal | types.Enum):
            rows = np.flatnonzero(number)
            if len(rows):  # a text keeps digits that a Float64 has not
                read_numbers = number_texts(texts.take(pa.array(rows)), self.environment)
                texts = columns.replaced_rows(texts, rows, read_numbers)
            return self._cast(texts, string | number, data_type)
        read, converted = self._cast(texts, string, data_type)
        rows = np.flatnonzero(number)
        if not isinstance(data_type, _TIMES) or not len(rows):
            return read, converted
        if isinstance(data_type, types.Time | types.Time64):
            times, whole = self._clocks(texts.take(pa.array(rows)), data_type)
            converted = converted.copy()
            converted[rows] = whole
            return columns.replaced_rows(read, rows, times), converted
        seconds, whole = self._integers(texts.take(pa.array(rows)), number[rows], types.INT64)
        times = cast.cast_column(seconds, types.INT64, data_type, self.environment, strict=True)
        converted = converted.copy()
        converted[rows] = whole
        return columns.replaced_rows(read, rows, times), converted

    def _cast(
        self, texts: pa.Array, readable: np.ndarray, data_type: types.DataType
    ) -> tuple[pa.Array, np.ndarray]:
        """Return texts cast to a type, and a mask of those that are `readable` and convert."""
        masked = pc.if_else(pa.array(readable), texts, pa.scalar(None, pa.string()))
        source, target = types.make_nullable(types.STRING), types.make_nullable(data_type)
        read = cast.cast_or_null(masked, source, target, self.environment)
        valid = columns.validity(read)
        converted = np.ones(len(read), bool) if valid is None else np.asarray(valid).astype(bool)
        if converted.all():
            return read, converted
        filler = default_value(types.plain(data_type))
        return pc.fill_null(read, filler), converted

    def _arrays(self, tokens: np.ndarray, data_type: types.Array) -> tuple[pa.Array, np.ndarray]:
        """Return arrays, and a mask of the tokens that are arrays; elements that do not convert are NULL or the
        default."""
        is_array = self.index.kind_of(tokens) == ARRAY
        offsets, elements = paths.members_of(self.index, np.where(is_array, tokens, -1))
        values = self.values(elements, data_type.inner)
        lists = columns.lists_from(offsets, values)
        return columns.retype(lists, data_type.arrow), is_array

    def _maps(self, tokens: np.ndarray, data_type: types.Map) -> tuple[pa.Array, np.ndarray]:
        """Return objects as maps, and a mask of the tokens that are objects; values that do not convert are NULL or
        the default."""
        is_object = self.index.kind_of(tokens) == OBJECT
        offsets, elements = paths.members_of(self.index, np.where(is_object, tokens, -1))
        keys = paths.keys_of(self.index, elements - 2)
        values = self.values(elements, data_type.value)
        entries = pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, values)
        return columns.retype(entries, data_type.arrow), is_object

    def _tuples(self, tokens: np.ndarray, data_type: types.Tuple) -> tuple[pa.Array, np.ndarray]:
        """Return tuples, and a mask of the tokens that convert: arrays by place; objects by name, or by place if the
        tuple has no names."""
        kind = self.index.kind_of(tokens)
        is_object, is_array = kind == OBJECT, kind == ARRAY
        fields = []
        for place, element in enumerate(data_type.elements, start=1):
            at = self._members_at(np.where(is_array, tokens, -1), place)
            if data_type.names:
                named = self._members_named(
                    np.where(is_object, tokens, -1), data_type.names[place - 1]
                )
            else:
                named = self._members_at(np.where(is_object, tokens, -1), place)
            fields.append(self.values(np.maximum(at, named), element))
        rows = len(tokens)
        return columns.structs_from(fields, data_type.arrow, rows=rows), is_object | is_array

    def _members_at(self, containers: np.ndarray, place: int) -> np.ndarray:
        """Return the value of each container's member at the place, -1 where there is none."""
        offsets, values = paths.members_of(self.index, containers)
        result = np.full(len(containers), -1, np.int64)
        rows = np.flatnonzero(np.diff(offsets) >= place)
        result[rows] = values[offsets[rows] + place - 1]
        return result

    def _members_named(self, containers: np.ndarray, name: str) -> np.ndarray:
        """Return the value of each object's first member with the key, -1 where there is none."""
        offsets, values = paths.members_of(self.index, containers)
        equal = columns.numpy_values(pc.equal(paths.keys_of(self.index, values - 2), name)).astype(
            bool
        )
        owners = columns.parents_of(offsets)
        result = np.full(len(containers), -1, np.int64)
        result[owners[equal][::-1]] = values[equal][::-1]
        return result

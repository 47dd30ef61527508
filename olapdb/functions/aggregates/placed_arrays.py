"""groupArrayInsertAt and groupArraySample: arrays of values at places, and of a sample of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    BadArguments,
    CannotConvertType,
    DataError,
    NumberOfArgumentsDoesntMatch,
    TooLargeArray,
    TooManyArguments,
    TypeMismatch,
)
from olapdb.functions.aggregates.gathered import Gathered, rows_type
from olapdb.functions.aggregates.signatures import illegal_argument, require_count, state_type_of
from olapdb.functions.base import Aggregate, Environment, Groups
from olapdb.functions.casts import cast
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.integer_order import order_by
from olapdb.records import dataclass
from olapdb.types import FLOAT64, INT64, STRING, UINT64, Array, DataType, Integer, String, plain
from olapdb.types.arrow_values import from_numpy

_SIZE_MAX = 0xFFFFFF
_SEED = 123456


@dataclass(frozen=True)
class GroupArrayInsertAt(Gathered):
    """groupArrayInsertAt([default[, size]])(value, place): an array with each value at its place.

    Of several values for one place the first row's counts. Places without a value have the
    default; with a size the array has that many places, and values behind them are left out."""

    default: pa.Scalar
    size: int | None = None

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's values and places; raise TooLargeArray for a place that is too large."""
        states = super().state(arguments, groups)
        places = columns.numpy_values(columns.struct_fields(columns.elements_of(states)[1])[1])
        if self.size is None and int(places.max(initial=0)) >= _SIZE_MAX:
            raise TooLargeArray(f"The places of {self.name} are less than {_SIZE_MAX}.")
        return states

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the array of each group."""
        offsets, rows = columns.elements_of(states)
        values, places = columns.struct_fields(rows)
        at = columns.numpy_values(places).astype(np.uint64)
        codes = columns.parents_of(offsets)
        if self.size is not None:
            kept = np.flatnonzero(at < np.uint64(self.size))
            values, at, codes = values.take(from_numpy(kept)), at[kept], codes[kept]
        at = at.astype(np.int64)
        sizes = np.full(len(states), self.size or 0)
        if self.size is None:
            np.maximum.at(sizes, codes, at + 1)
        starts = columns.offsets_from_counts(sizes)
        filled = np.full(int(starts[-1]), len(values))
        filled[(starts[:-1][codes] + at)[::-1]] = np.arange(len(values))[::-1]  # the first is last
        missing = columns.retype(columns.single(self.default), values.type)
        elements = pa.concat_arrays([values, missing]).take(from_numpy(filled))
        return columns.lists_from(starts, elements)

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Raise NotImplementedError: `finalize` keeps the type of the values."""
        raise NotImplementedError


def insert_at(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve groupArrayInsertAt of a value and an unsigned integer, its place from 0.

    Raises TooManyArguments, CannotConvertType, TooLargeArray and IllegalTypeOfArgument."""
    if len(parameters) > 2:
        raise TooManyArguments(f"Aggregate function {name} takes up to two parameters.")
    size = parameters[1] if len(parameters) > 1 else None
    if size is not None and (not isinstance(size, int) or isinstance(size, bool)):
        raise CannotConvertType(f"The size of {name} is an integer, not {size!r}.")
    if size is not None and not 0 <= size <= _SIZE_MAX:
        raise TooLargeArray(f"The size of {name} is at most {_SIZE_MAX}, not {size}.")
    require_count(name, types, 2)
    place = plain(types[1])
    if not isinstance(place, Integer) or place.signed:
        raise illegal_argument(name, types[1], "an unsigned integer as the place")
    value = plain(types[0])
    default = _default_of(name, parameters[0] if parameters else None, value)
    state = state_type_of(name, parameters, types, rows_type(types))
    return GroupArrayInsertAt(
        name,
        parameters,
        types,
        Array(value),
        state,
        merge_class="ordered",
        default=default,
        size=size or None,
    )


def _default_of(name: str, value: object, data_type: DataType) -> pa.Scalar:
    """Return a parameter as a value of a type; None is the type's default.

    Raises TypeMismatch for a text that does not parse, else CannotConvertType."""
    if value is None:
        return default_value(data_type)
    if isinstance(data_type, String):
        return pa.scalar(str(value), data_type.arrow)
    kinds: tuple[tuple[type, DataType], ...] = ((str, STRING), (float, FLOAT64), (int, INT64))
    try:
        source = next(kind for python, kind in kinds if isinstance(value, python))
        if source == INT64 and isinstance(value, int) and value >= 2**63:
            source = UINT64
        given = pa.array([value], source.arrow)
        made = cast.store_column(given, source, data_type, Environment())
    except (DataError, StopIteration, pa.ArrowException):
        kind = TypeMismatch if isinstance(value, str) else CannotConvertType
        raise kind(f"The default of {name}, {value!r}, is no {data_type}.") from None
    return made[0] if isinstance(made, pa.Array) else made


@dataclass(frozen=True)
class GroupArraySample(Gathered):
    """groupArraySample(limit[, seed]): `limit` values of each group, in the order of the rows.

    Which ones depends on the seed and on the places of the rows in their group alone, so that the
    sample is the same for every cut into blocks. A smaller group has all of its values."""

    limit: int = 1
    seed: int = _SEED

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the sample of each group, in row order: the `limit` rows whose hashes of (place in the group, seed)
        are smallest."""
        offsets, rows = columns.elements_of(states)
        (values,) = columns.struct_fields(rows)
        codes = columns.parents_of(offsets)
        places = np.arange(len(values)) - offsets[:-1][codes]
        order = order_by(codes, _mixed(places.astype(np.uint64), self.seed))
        chosen = np.sort(order[places < self.limit])
        counts = np.minimum(np.diff(offsets), self.limit)
        return columns.lists_from(
            columns.offsets_from_counts(counts), values.take(from_numpy(chosen))
        )

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Raise NotImplementedError: `finalize` keeps the type of the values."""
        raise NotImplementedError


def _mixed(places: np.ndarray, seed: int) -> np.ndarray:
    """Return SplitMix64 hashes (Steele, Lea and Flood 2014) of the places, from this seed."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (places + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def array_sample(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve groupArraySample(limit[, seed]) of one value.

    Raises NumberOfArgumentsDoesntMatch and BadArguments."""
    if not 1 <= len(parameters) <= 2:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} takes a limit and a seed.")
    numbers = []
    for place, parameter in enumerate(parameters):
        least = 0 if place else 1
        if not isinstance(parameter, int) or isinstance(parameter, bool) or parameter < least:
            raise BadArguments(f"The parameters of {name} are positive, not {parameter!r}.")
        numbers.append(parameter)
    require_count(name, types, 1)
    state = state_type_of(name, parameters, types, rows_type(types))
    return GroupArraySample(
        name,
        parameters,
        types,
        Array(plain(types[0])),
        state,
        merge_class="ordered",
        limit=min(numbers[0], 2**62),  # no group has as many rows
        seed=numbers[1] % 2**64 if len(numbers) > 1 else _SEED,
    )

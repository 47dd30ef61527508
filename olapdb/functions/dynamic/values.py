"""Columns of Dynamic, taken apart by type and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb import types
from olapdb.errors import DataError
from olapdb.functions.dynamic.stored import read_texts, stored_texts, type_named
from olapdb.functions.kernels import columns
from olapdb.functions.variants.values import alternatives_of, in_rows
from olapdb.records import dataclass
from olapdb.types.arrow import DYNAMIC
from olapdb.types.arrow_values import from_numpy


@dataclass(frozen=True)
class TypedRows:
    """The rows of a Dynamic that have values of one type.

    `rows` are their positions, ascending, int64; `texts` are the texts that keep their values."""

    type: types.DataType
    rows: np.ndarray
    texts: pa.Array

    def values(self) -> pa.Array:
        """Return the values, in the order of the rows."""
        return read_texts(self.texts, self.type)


def kinds_of(array: pa.Array) -> Iterator[TypedRows]:
    """Yield the types of which a Dynamic has values, with their rows."""
    if not len(array):
        return
    names, texts = columns.struct_fields(array)
    yield from kinds(names, texts)


def kinds(names: pa.Array, texts: pa.Array) -> Iterator[TypedRows]:
    """Yield the types of values, with their rows, given the name of each value's type (NULL for none) and the text
    that keeps it."""
    encoded = names.dictionary_encode()
    codes = columns.numpy_values(encoded.indices.fill_null(-1))
    for place, name in enumerate(encoded.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == place)
        own = texts if len(rows) == len(texts) else texts.take(from_numpy(rows))
        yield TypedRows(type_named(name), rows, own)


def gathered(
    array: pa.Array, convert: Callable[[pa.Array, types.DataType], pa.Array], arrow: pa.DataType
) -> pa.Array:
    """Convert the values of each type by `convert` and return the results in the order of the rows; NULL stays NULL.

    `convert` returns as many values of the Arrow type `arrow`. A DataError of it names the row of the column."""
    pieces: list[pa.Array] = []
    rows: list[np.ndarray] = []
    for kind in kinds_of(array):
        try:
            pieces.append(convert(kind.values(), kind.type))
        except DataError as error:
            if error.row is not None:
                error.row = int(kind.rows[error.row])
            raise
        rows.append(kind.rows)
    return in_rows(pieces, rows, len(array), arrow)


def of_type(values: pa.Array, data_type: types.DataType) -> pa.Array:
    """Return values of one type as a Dynamic; NULL is NULL. Raises NotSupportedError."""
    plain = types.plain(data_type)
    if isinstance(plain, types.Dynamic):
        return values
    if isinstance(plain, types.Nothing):
        return pa.nulls(len(values), DYNAMIC)
    if isinstance(plain, types.Variant):
        alternatives = list(alternatives_of(values, plain))
        pieces = [of_type(alternative.values, alternative.type) for alternative in alternatives]
        return in_rows(
            pieces, [alternative.rows for alternative in alternatives], len(values), DYNAMIC
        )
    texts = stored_texts(values, plain)
    valid = columns.validity(texts)
    names = columns.as_array(pa.scalar(_named(data_type).name), len(values))
    return columns.structs_from([names, texts], DYNAMIC, valid)


def _named(data_type: types.DataType) -> types.DataType:
    """Return the type that a Dynamic notes for a value: without Nullable, since NULL is a row without a type."""
    match data_type:
        case types.Nullable(inner) | types.SimpleAggregateFunction(inner=inner):
            return _named(inner)
        case types.LowCardinality(inner):
            return types.LowCardinality(_named(inner))
        case _:
            return types.stored_type(data_type)


def joined(pieces: Sequence[pa.Array], rows: Sequence[np.ndarray], count: int) -> pa.Array:
    """Return a Dynamic of `count` rows with the values of each piece at its rows, NULL at all others."""
    return in_rows(list(pieces), list(rows), count, DYNAMIC)

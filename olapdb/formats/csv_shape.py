"""Rows of CSV whose number of values is not the number of columns: of other sizes, and with tuples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Input
from olapdb.formats.conversion import store_with_nulls
from olapdb.formats.texts import zero_for_empty
from olapdb.functions.base import Environment
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value

_NEWLINE, _RETURN = ord("\n"), ord("\r")


def row_sizes(values: np.ndarray, is_mark: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the marks that end values, and the number of values of each row."""
    places = np.flatnonzero(is_mark)
    return places, np.diff(np.flatnonzero(values[places] == _NEWLINE), prepend=-1)


def evened(values: np.ndarray, is_mark: np.ndarray, width: int, filler: bytes) -> bytes:
    """Rewrite rows to `width` values each: drop surplus values, add `filler` and a delimiter for each missing one.
    The last row ends with a line feed."""
    places, counts = row_sizes(values, is_mark)
    if (counts == width).all():
        return values.tobytes()
    firsts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    ends = places[firsts + counts - 1]
    ends = ends - ((ends > 0) & (values[ends - 1] == _RETURN))
    long = np.flatnonzero(counts > width)
    changes = np.zeros(len(values) + 1, np.int64)
    np.add.at(changes, places[firsts[long] + width - 1], 1)
    np.subtract.at(changes, ends[long], 1)
    dropped = np.cumsum(changes)[:-1] > 0
    short = np.flatnonzero(counts < width)
    missing = width - counts[short]
    text = np.frombuffer(filler, np.uint8)
    at = np.repeat(ends[short], missing * len(text))
    positions = np.concatenate((np.flatnonzero(~dropped), at))
    data = np.concatenate((values[~dropped], np.tile(text, int(missing.sum()))))
    early = np.concatenate((np.ones(len(data) - len(at), np.int8), np.zeros(len(at), np.int8)))
    return data[np.lexsort((early, positions))].tobytes()


# --- tuples


def leaf_counts(names: Sequence[str], source: Input) -> tuple[int, ...]:
    """Return the number of CSV values of each column in a row: one for each element of a tuple, else 1."""
    wanted = dict(source.structure or ())
    if not source.settings.boolean("input_format_csv_deserialize_separate_columns_into_tuple"):
        return (1,) * len(names)
    return tuple(len(_leaves(wanted[n])) if n in wanted else 1 for n in names)


def _leaves(data_type: types.DataType) -> list[types.DataType]:
    """Return the types of the CSV values that a column of the type has in a row."""
    if not isinstance(data_type, types.Tuple) or not data_type.elements:
        return [data_type]
    return [leaf for element in data_type.elements for leaf in _leaves(element)]


def tuple_of_texts(
    texts: Sequence[pa.Array], data_type: types.Tuple, environment: Environment
) -> pa.Array:
    """Build tuples from the texts of their elements. Raises the DataError of an element, with its row."""
    return _gathered(iter(texts), data_type, environment)


def _gathered(
    texts: Iterator[pa.Array], data_type: types.DataType, environment: Environment
) -> pa.Array:
    """Build values of the type from the next arrays of `texts`; NULL becomes the default where the type is not
    Nullable."""
    if isinstance(data_type, types.Tuple) and data_type.elements:
        parts = [_gathered(texts, element, environment) for element in data_type.elements]
        return columns.structs_from(parts, data_type.arrow, rows=len(parts[0]))
    (array,) = islice(texts, 1)
    array = zero_for_empty(array, data_type)
    values = store_with_nulls(array, types.Nullable(types.STRING), data_type, environment)
    if values.null_count and not types.is_nullable(data_type):
        values = pc.if_else(values.is_valid(), values, default_value(data_type))
    return values


def placed(error: errors.DataError, name: str, first_row: int) -> errors.DataError:
    """Return the error with the column's name, and its row counted from `first_row`."""
    row = "" if error.row is None else f", row {first_row + error.row}"
    return type(error)(f"Column {name}{row}: {error.message}", hint=error.hint)

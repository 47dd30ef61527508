"""Values of part files between the Arrow types of files, of the column cache and of the engine."""

from __future__ import annotations

import pyarrow as pa

from olapdb.errors import NotSupportedError
from olapdb.functions import parse_type
from olapdb.functions.kernels.decimal_width import (
    has_short_form,
    is_short,
    lengthened,
    short_form,
    shortened,
    with_precision,
)


def compact_form(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values as the column cache keeps them: Decimals of at most 18 digits with 64 bits."""
    if not has_short_form(values.type):
        return values
    return pa.chunked_array(map(shortened, values.chunks), short_form(values.type))


def long_form(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return Decimals that the cache has in their short form with 128 bits; other values unchanged."""
    if not is_short(values.type):
        return values
    arrow = pa.decimal128(values.type.precision, values.type.scale)
    return pa.chunked_array(map(lengthened, values.chunks), arrow)


def as_named(values: pa.ChunkedArray, type_name: str) -> pa.ChunkedArray:
    """Return values of a file in the Arrow type of the ClickHouse type that the file names.
    Dictionaries, and values of a file that names no types, are returned unchanged."""
    if type_name == "" or pa.types.is_dictionary(values.type):
        return values
    arrow = parse_type(type_name).arrow
    return values if values.type == arrow else as_stored(values, arrow)


def as_stored(values: pa.ChunkedArray, arrow: pa.DataType) -> pa.ChunkedArray:
    """Convert values whose Arrow type in files differs from the engine's: seconds stored as
    milliseconds, decimals stored with the most digits of their width.

    Raises NotSupportedError for states of aggregates that had other parts when they were stored."""
    if not _has_parts(values.type, arrow):
        raise NotSupportedError(
            f"Values are stored as {values.type}, in a form of an older version of olapdb, not as {arrow}.",
            hint="REPLAY the view that made them, or INSERT the rows again.",
        )
    if not pa.types.is_decimal(arrow):
        return values.cast(arrow)
    return pa.chunked_array([with_precision(chunk, arrow) for chunk in values.chunks], arrow)


def _has_parts(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether the structs of two types, at any depth, have fields of the same names; True for types without
    structs. A cast would give NULL to fields that the stored values lack."""
    if pa.types.is_struct(stored) != pa.types.is_struct(wanted):
        return False
    if pa.types.is_nested(stored) and stored.num_fields == wanted.num_fields:
        fields = [(stored.field(at), wanted.field(at)) for at in range(stored.num_fields)]
        is_named = not pa.types.is_struct(stored) or all(a.name == b.name for a, b in fields)
        return is_named and all(_has_parts(a.type, b.type) for a, b in fields)
    return pa.types.is_nested(stored) == pa.types.is_nested(wanted) and not pa.types.is_struct(
        stored
    )

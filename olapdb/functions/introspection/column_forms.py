"""Functions about the form in which ClickHouse keeps columns: dictionaries of LowCardinality, the parts of a
column in memory, and the streams of a type in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.introspection.values import column_of
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.nested import map_parts
from olapdb.types import (
    STRING,
    UINT64,
    Array,
    DataType,
    Dynamic,
    Json,
    LowCardinality,
    Map,
    Nullable,
    String,
    Tuple,
    Variant,
    parse_type,
    plain,
)


def _dictionary(array: pa.Array, data_type: LowCardinality) -> tuple[np.ndarray, pa.Array]:
    """Return each row's index in the dictionary, and the dictionary: first NULL if the type is Nullable, then the
    type's default, then the values by first appearance."""
    values = plain(data_type)
    default = columns.single(default_value(values))
    head = [pa.nulls(1, default.type), default] if _may_be_null(data_type) else [default]
    keys = pa.concat_arrays([*head, array.cast(default.type)]).dictionary_encode(
        null_encoding="encode"
    )
    return columns.numpy_values(keys.indices)[len(head) :].astype(np.int64), keys.dictionary


def _may_be_null(data_type: LowCardinality) -> bool:
    """Return whether the LowCardinality's values may be NULL."""
    return isinstance(data_type.inner, Nullable)


def _of_dictionary(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve lowCardinalityIndices(x) or lowCardinalityKeys(x). Raises IllegalTypeOfArgument."""
    data_type = arguments[0].type
    if not isinstance(data_type, LowCardinality):
        raise scalar.illegal(name, data_type, "a LowCardinality")
    wants_keys = name == "lowCardinalityKeys"

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the dictionary index of each row's value, or the dictionary's keys, one in each row."""
        places, keys = _dictionary(columns.as_array(values[0], rows), data_type)
        if not wants_keys:
            return columns.from_values(places.astype(np.uint64), pa.uint64())
        default = pa.scalar(None, keys.type) if _may_be_null(data_type) else keys[0]
        missing = pa.array([default] * max(rows - len(keys), 0), keys.type)
        return pa.concat_arrays([keys.slice(0, rows), missing])

    return ScalarCall(name, data_type.inner if wants_keys else UINT64, kernel, "row")


def _structure(array: pa.Array, data_type: DataType) -> str:
    """Describe the parts of a column with their sizes, as ClickHouse's dumpColumnStructure does."""
    size = f"(size = {len(array)}"
    match data_type:
        case LowCardinality():
            places, keys = _dictionary(array, data_type)
            unique = (
                f"Unique(size = {len(keys)}, {column_of(plain(data_type))}(size = {len(keys)}))"
            )
            width = next(bits for bits in (8, 16, 32, 64) if len(keys) <= 1 << bits)
            return f"LowCardinality{size}, UInt{width}(size = {len(places)}), {unique})"
        case Nullable(inner):
            return f"Nullable{size}, {_structure(array, inner)}, UInt8{size}))"
        case Array(inner):
            elements = columns.elements_of(array)[1]
            return f"Array{size}, UInt64{size}), {_structure(elements, inner)})"
        case Map(key, value):
            _, keys, values = map_parts(array)
            pairs = f"{_structure(keys, key)}, {_structure(values, value)}"
            entries = f"Tuple(size = {len(keys)}, {pairs})"
            return f"Map{size}, Array{size}, UInt64{size}), {entries}))"
        case Tuple(elements):
            fields = zip(columns.struct_fields(array), elements, strict=True)
            return f"Tuple{size}, {', '.join(_structure(f, kind) for f, kind in fields)})"
    return f"{column_of(data_type).partition('(')[0]}{size})"


def _dump_structure(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve dumpColumnStructure(x): the type of x, and the parts of its column."""
    argument = arguments[0]

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return one text for all rows."""
        if argument.constant is None:
            shown = _structure(columns.as_array(values[0], rows), argument.type)
        else:
            single = columns.as_array(argument.constant, 1)
            shown = f"Const(size = {rows}, {_structure(single, argument.type)})"
        return pa.scalar(f"{argument.type}, {shown}", STRING.arrow)

    return ScalarCall(name, STRING, kernel, "query")


def _streams(data_type: DataType, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the paths of the streams in which ClickHouse would store a column of the type."""
    own: tuple[str, ...] = ("Regular",)
    match data_type:
        case LowCardinality():
            own = ("DictionaryKeys", "DictionaryIndexes")
        case String():
            own = ("InlinedStringSizes()", "Regular")
        case Json():
            own = ("ObjectStructure",)
        case Dynamic():
            own = ("DynamicStructure",)
        case Nullable() | Array() | Map():
            own = ("NullMap" if isinstance(data_type, Nullable) else "ArraySizes",)
        case Variant():
            own = ("VariantDiscriminators",)
        case Tuple():
            own = ()
    yield from ("{" + ", ".join((*path, last)) + "}" for last in own)
    match data_type:
        case Nullable(inner):
            yield from _streams(inner, (*path, "NullableElements"))
        case Array(inner):
            yield from _streams(inner, (*path, "ArrayElements"))
        case Map(key, value):
            for field, inner in (("keys", key), ("values", value)):
                yield from _streams(inner, (*path, "ArrayElements", f"TupleElement({field})"))
        case Tuple(elements):
            names = data_type.names or tuple(str(at) for at in range(1, len(elements) + 1))
            for field, inner in zip(names, elements, strict=True):
                yield from _streams(inner, (*path, f"TupleElement({field})"))
        case Variant(alternatives):
            for inner in alternatives:
                yield from _streams(inner, (*path, "VariantElements", f"VariantElement({inner})"))
            for inner in alternatives:
                parts = (*path, "VariantElements", f"VariantElementNullMap({inner}.null)")
                yield "{" + ", ".join(parts) + "}"


def _serialization_streams(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve getTypeSerializationStreams(x): the streams of the type of x, or of the type that a
    constant text names."""
    from olapdb.functions.aggregates.registry import state_representation

    argument = arguments[0]
    data_type = argument.type
    if isinstance(data_type, String) and argument.constant is not None:
        data_type = parse_type(str(argument.constant.as_py()), state_representation)
    result = Array(STRING)
    shown = pa.scalar(list(_streams(data_type)), result.arrow)
    return ScalarCall(name, result, lambda values, rows, environment: shown)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("lowCardinalityIndices", _of_dictionary),
    scalar.custom("lowCardinalityKeys", _of_dictionary),
    scalar.custom("dumpColumnStructure", _dump_structure),
    scalar.custom("getTypeSerializationStreams", _serialization_streams),
)

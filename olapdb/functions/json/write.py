"""toJSONString: values of any type as JSON texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment
from olapdb.functions.casts import cast
from olapdb.functions.json.escapes import quote
from olapdb.functions.kernels import columns
from olapdb.functions.variants.values import gathered
from olapdb.lazy import LazyModule

if TYPE_CHECKING:
    from olapdb.functions.dynamic import render as dynamic_render
else:
    dynamic_render = LazyModule("olapdb.functions.dynamic.render")


def json_texts(array: pa.Array, data_type: types.DataType, environment: Environment) -> pa.Array:
    """Return the values of a column as JSON texts, without spaces; NULL is null.

    Numbers and Bools are JSON's, nan and inf null; arrays and tuples without names are arrays, maps
    and tuples with names objects; other values are strings. `/` is escaped, as in ClickHouse.

    Raises IllegalTypeOfArgument."""
    valid = columns.validity(array)
    if valid is not None:
        texts = json_texts(array.filter(pa.array(valid)), data_type, environment)
        return pc.fill_null(columns.scatter(texts, np.asarray(valid)), "null")
    plain = types.plain(data_type)
    match plain:
        case types.Array():
            offsets, elements = columns.elements_of(array)
            return _bracketed("[", offsets, json_texts(elements, plain.inner, environment), "]")
        case types.Map():
            return _objects(array, plain, environment)
        case types.Tuple():
            return _tuples(array, plain, environment)
        case types.Float():
            texts = cast.cast_column(array, plain, types.STRING, environment, strict=True)
            finite = pa.array(np.isfinite(columns.numpy_values(array).astype(np.float64)))
            return pc.if_else(finite, texts, "null")
        case types.Integer() | types.Decimal() | types.Boolean():
            return cast.cast_column(array, plain, types.STRING, environment, strict=True)
        case types.Variant() | types.Dynamic():
            return gathered(array, plain, lambda v, t: json_texts(v, t, environment), pa.string())
        case types.Json():
            return dynamic_render.plain_texts(array, environment.zone)
        case types.AggregateFunction():
            raise IllegalTypeOfArgument(f"toJSONString does not write a value of type {plain}.")
        case types.String() | types.FixedString():
            return pc.replace_substring(quote(columns.text(array)), "/", "\\/")
        case _:
            return quote(cast.cast_column(array, plain, types.STRING, environment, strict=True))


def _bracketed(opening: str, offsets: np.ndarray, texts: pa.Array, closing: str) -> pa.Array:
    """Return lists of texts, joined by commas, between the brackets `opening` and `closing`."""
    joined = pc.binary_join(columns.lists_from(offsets, texts), ",")
    return pc.binary_join_element_wise(opening, joined, closing, "")


def _objects(array: pa.Array, data_type: types.Map, environment: Environment) -> pa.Array:
    """Return maps as objects; keys that are no texts are quoted."""
    offsets = columns.offsets_of(array)
    entries = slice(int(offsets[0]), int(offsets[-1]))
    keys, values = array.keys[entries], array.items[entries]
    names = json_texts(keys, data_type.key, environment)
    if not isinstance(types.plain(data_type.key), types.String | types.FixedString):
        bare = pc.starts_with(names, '"')
        names = pc.if_else(bare, names, quote(names))
    shown = json_texts(values, data_type.value, environment)
    members = pc.binary_join_element_wise(names, shown, ":")
    return _bracketed("{", offsets - offsets[0], members, "}")


def _tuples(array: pa.Array, data_type: types.Tuple, environment: Environment) -> pa.Array:
    """Return tuples with names as objects, others as arrays."""
    fields = [
        json_texts(field, element, environment)
        for field, element in zip(columns.struct_fields(array), data_type.elements, strict=True)
    ]
    opening, closing = ("{", "}") if data_type.names else ("[", "]")
    if data_type.names:
        labels = quote(pa.array(data_type.names, pa.string())).to_pylist()
        fields = [
            pc.binary_join_element_wise(label, field, ":")
            for label, field in zip(labels, fields, strict=True)
        ]
    if not fields:
        return columns.as_array(pa.scalar(opening + closing), len(array))
    joined = pc.binary_join_element_wise(*fields, ",")
    return pc.binary_join_element_wise(opening, joined, closing, "")


def _rule(
    name: str, plain: tuple[types.DataType, ...], arguments: Sequence[Argument]
) -> types.DataType:
    """Return String, for a value of any type but a state; a NULL gives NULL.

    Raises IllegalTypeOfArgument."""
    if isinstance(plain[0], types.AggregateFunction):
        raise IllegalTypeOfArgument(f"{name} does not write a value of type {plain[0]}.")
    return types.STRING


def _kernel(arrays: list[Column], call: scalar.Invocation) -> pa.Array:
    """Write the values of the only column as JSON texts."""
    return json_texts(columns.as_array(arrays[0], call.rows), call.types[0], call.environment)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (scalar.define("toJSONString", _rule, _kernel),)

"""Values as JSON texts, as the settings of the JSON formats say."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.formats.base import Header
from olapdb.formats.texts import body, joined_rows, shown, style_of
from olapdb.functions.json.escapes import quote
from olapdb.functions.kernels import columns
from olapdb.functions.variants.values import gathered
from olapdb.lazy import LazyModule
from olapdb.records import dataclass

if TYPE_CHECKING:
    from olapdb.functions.dynamic import render as dynamic_render
else:
    dynamic_render = LazyModule("olapdb.functions.dynamic.render")

NULL_WORD = "ᴺᵁᴸᴸ"
"""How formats for people, and those of JSON strings, write NULL."""
_INTEGER_BITS = 64


@dataclass(frozen=True)
class JsonStyle:
    """How values are written as JSON. With `indent` maps, tuples and arrays of containers put each member on its own
    line, indented by `level` steps; steps after the first are `deep_indent` if given. `valid`: invalid UTF-8 becomes
    the replacement character, as the setting says too."""

    header: Header
    indent: str = ""
    level: int = 0
    valid: bool = False
    deep_indent: str = ""

    def deeper(self) -> JsonStyle:
        """Return the style for the members of a container: one level deeper."""
        return replace(self, level=self.level + 1) if self.indent else self

    def line(self, level: int) -> str:
        """Return the end of a line and the indentation of the next one, which is `level` levels deep."""
        if self.deep_indent and level:
            return "\n" + self.indent + self.deep_indent * (level - 1)
        return "\n" + self.indent * level

    def flag(self, name: str) -> bool:
        """Return the value of the setting output_format_json_<name>."""
        return self.header.settings.boolean(f"output_format_json_{name}")


def json_string(text: str, header: Header) -> str:
    """Return a text as a JSON string literal."""
    written: str = _strings(pa.array([text], pa.string()), JsonStyle(header))[0].as_py()
    return written


def json_texts(array: pa.Array, data_type: types.DataType, style: JsonStyle) -> pa.Array:
    """Format the values of a column as JSON texts; NULL, nan and inf become null."""
    valid = columns.validity(array)
    if valid is not None:
        texts = json_texts(array.filter(pa.array(valid)), data_type, style)
        return pc.fill_null(columns.scatter(texts, np.asarray(valid)), "null")
    plain = types.plain(data_type)
    match plain:
        case types.Array():
            return _arrays(array, plain, style)
        case types.Map():
            return _maps(array, plain, style)
        case types.Tuple():
            return _tuples(array, plain, style)
        case types.Boolean():
            return pc.if_else(array, "true", "false")
        case types.Integer() | types.Interval() | types.Decimal() | types.Float():
            return _numbers(array, plain, style)
        case types.Json():
            return _objects(array, style)
        case types.Variant() | types.Dynamic():
            return gathered(array, plain, lambda v, t: json_texts(v, t, style), pa.string())
        case types.Nothing():
            return pa.array(["null"] * len(array), pa.string())
        case _:
            return _strings(shown(array, plain, style.header), style)


def _strings(texts: pa.Array, style: JsonStyle) -> pa.Array:
    """Return texts as JSON strings."""
    written = quote(texts)
    if style.flag("escape_forward_slashes"):
        written = pc.replace_substring(written, "/", "\\/")
    return _valid(written) if style.valid or style.flag("validate_utf8") else written


def _valid(texts: pa.Array) -> pa.Array:
    """Replace each run of invalid UTF-8 bytes in JSON strings by one replacement character."""
    data = body(joined_rows([texts], "", "", "\n"))
    decoded = data.decode("utf-8", "surrogateescape")
    lines = re.sub("[\udc80-\udcff]+", "\N{REPLACEMENT CHARACTER}", decoded).split("\n")
    return pa.array(lines[:-1], pa.string())


def _numbers(array: pa.Array, data_type: types.DataType, style: JsonStyle) -> pa.Array:
    """Format numbers as JSON; some types are quoted if the settings say so; nan and inf become null."""
    texts = pc.utf8_rtrim(shown(array, data_type, style.header), ".")  # no number of JSON ends so
    quoted = False
    if isinstance(data_type, types.Interval):
        quoted = style_of(style.header).spans
    elif isinstance(data_type, types.Integer):
        quoted = data_type.bits == _INTEGER_BITS and style.flag("quote_64bit_integers")
    elif isinstance(data_type, types.WideNumber):
        quoted = style.flag("quote_64bit_integers")
    elif isinstance(data_type, types.Decimal):
        quoted = style.flag("quote_decimals")
    elif isinstance(data_type, types.Float):
        finite = pa.array(np.isfinite(columns.numpy_values(array).astype(np.float64)))
        denormal = _between('"', texts, '"') if style.flag("quote_denormals") else "null"
        quoted = data_type.bits == _INTEGER_BITS and style.flag("quote_64bit_floats")
        if quoted and not style.flag("quote_denormals"):
            texts = pc.if_else(finite, texts, "null")
        elif not quoted:
            texts = pc.if_else(finite, texts, denormal)
    return _between('"', texts, '"') if quoted else texts


def _between(opening: str, texts: pa.Array, closing: str) -> pa.Array:
    """Return each text with `opening` before and `closing` after it."""
    return pc.binary_join_element_wise(opening, texts, closing, "")


def _lines(style: JsonStyle) -> tuple[str, str, str]:
    """Return the texts before, between and after the members of a container that has each member on its line."""
    if not style.indent:
        return "", ",", ""
    member = style.line(style.level + 1)
    return member, "," + member, style.line(style.level)


def _bracketed(opening: str, offsets: np.ndarray, members: pa.Array, closing: str) -> pa.Array:
    """Join the members of each list with commas between brackets, on one line."""
    return _between(opening, pc.binary_join(columns.lists_from(offsets, members), ","), closing)


def _on_lines(brackets: str, offsets: np.ndarray, members: pa.Array, style: JsonStyle) -> pa.Array:
    """Join the members of each list between brackets, one member a line; an empty list stays on one line."""
    before, between, behind = _lines(style)
    joined = pc.binary_join(columns.lists_from(offsets, members), between)
    filled = _between(brackets[0] + before, joined, behind + brackets[1])
    return pc.if_else(pa.array(np.diff(offsets) == 0), brackets, filled)


def _arrays(array: pa.Array, data_type: types.Array, style: JsonStyle) -> pa.Array:
    """Format arrays; if the style indents, arrays of containers have one element a line."""
    offsets, elements = columns.elements_of(array)
    texts = json_texts(elements, data_type.inner, style.deeper())
    containers = types.Array | types.Map | types.Tuple | types.Json
    nested = isinstance(types.plain(data_type.inner), containers)
    if style.indent and nested:
        return _on_lines("[]", offsets, texts, style)
    return _bracketed("[", offsets, texts, "]")


def _maps(array: pa.Array, data_type: types.Map, style: JsonStyle) -> pa.Array:
    """Format maps as JSON objects; keys of any type become strings."""
    offsets = columns.offsets_of(array)
    entries = slice(int(offsets[0]), int(offsets[-1]))
    keys, values = array.keys[entries], array.items[entries]
    if style.flag("map_as_array_of_tuples"):
        pairs = pa.StructArray.from_arrays([keys, values], ["keys", "values"])
        pair = types.Tuple((data_type.key, data_type.value), ("keys", "values"))
        return _arrays(columns.lists_from(offsets - offsets[0], pairs), types.Array(pair), style)
    names = _strings(shown(keys, data_type.key, style.header), style)
    texts = json_texts(values, data_type.value, style.deeper())
    members = pc.binary_join_element_wise(names, texts, ": " if style.indent else ":")
    return _on_lines("{}", offsets - offsets[0], members, style)


def _objects(array: pa.Array, style: JsonStyle) -> pa.Array:
    """Format values of type JSON as JSON objects."""

    def write(values: pa.Array, data_type: types.DataType, level: int) -> pa.Array:
        """Write values of one type; `level` is the number of objects that they lie in, for the indentation."""
        inner = replace(style, level=style.level + level) if style.indent else style
        return json_texts(values, data_type, inner)

    layout = dynamic_render.ObjectLayout(
        lambda level: style.line(style.level + level) if style.indent else "",
        ": " if style.indent else ":",
        lambda texts: _strings(texts, style),
    )
    return dynamic_render.object_texts(array, write, layout)


def _tuples(array: pa.Array, data_type: types.Tuple, style: JsonStyle) -> pa.Array:
    """Format named tuples as objects, others as arrays."""
    parts = columns.struct_fields(array)
    fields = [
        json_texts(field, element, style.deeper())
        for field, element in zip(parts, data_type.elements, strict=True)
    ]
    named = bool(data_type.names) and style.flag("named_tuples_as_objects")
    opening, closing = ("{", "}") if named else ("[", "]")
    before, between, behind = _lines(style)
    if named:
        colon = ": " if style.indent else ":"
        labels = [json_string(name, style.header) + colon for name in data_type.names]
        fields = [
            pc.binary_join_element_wise(label, field, "")
            for label, field in zip(labels, fields, strict=True)
        ]
    if not fields:
        empty = "\n" + behind if style.indent else ""
        return columns.as_array(pa.scalar(opening + empty + closing), len(array))
    if named and style.flag("skip_null_value_in_named_tuples"):
        fields = [
            pc.if_else(part.is_valid(), field, pa.scalar(None, field.type))
            for part, field in zip(parts, fields, strict=True)
        ]
        joined = pc.binary_join_element_wise("", *fields, between, null_handling="skip")
        joined = pc.utf8_slice_codeunits(joined, len(between))
        empty = opening + ("\n" if before else "") + behind + closing
        filled = _between(opening + before, joined, behind + closing)
        return pc.if_else(pc.equal(joined, ""), empty, filled)
    joined = pc.binary_join_element_wise(*fields, between) if len(fields) > 1 else fields[0]
    return _between(opening + before, joined, behind + closing)


def string_texts(array: pa.Array, data_type: types.DataType, style: JsonStyle) -> pa.Array:
    """Format values as JSON strings that hold their text; NULL is the string `NULL_WORD`."""
    texts = shown(array, data_type, style.header)
    if texts.null_count:
        texts = pc.fill_null(texts, NULL_WORD)
    return _strings(texts, style)

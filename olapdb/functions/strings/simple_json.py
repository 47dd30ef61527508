"""simpleJSON…, also spelled visitParam…: read one field of a JSON text without parsing it.

As in ClickHouse, the value is the text after the first `"name":`, at any depth and without space
between. An absent field, or one of another kind, gives 0 or "".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.base import Argument
from olapdb.functions.casts import cast
from olapdb.functions.kernels import columns, regexes
from olapdb.functions.kernels.by_value import values_by_row
from olapdb.functions.scalar import (
    Invocation,
    Kernel,
    ScalarDefinition,
    constant_text,
    define,
    require,
)
from olapdb.functions.strings.arguments import TEXT_TYPES
from olapdb.types import FLOAT64, INT64, STRING, UINT8, UINT64, DataType, make_nullable

_INTEGER = r'"?\+?(?P<value>-?[0-9]+)'
_FLOAT = r'"?\+?(?P<value>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)'
_ESCAPE = re.compile(r'\\(["\\/bfnrtu])|\\(.)', re.DOTALL)
_QUOTED = r'(?P<value>"(?:[^"\\]|\\.)*")'


def _rule(result: DataType) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    """Return the type rule: a String and a constant field name."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result; raise unless the arguments are strings, the second a constant."""
        require(name, types, TEXT_TYPES, "a String")
        constant_text(name, arguments, 1, "the field's name")
        return result

    return rule


def _label(call: Invocation) -> str:
    """Return the text that precedes the field's value: `"name":`."""
    return f'"{call.constant(1)}":'


def _value(arrays: list[pa.Array], call: Invocation, pattern: str) -> pa.Array:
    """Return the text that the pattern's group `value` matches right after the first label.

    It is "" if the pattern does not match there, NULL if there is no label. Later labels do not
    count, as in ClickHouse.
    """
    matches = regexes.extracted(
        columns.text(arrays[0]), f"(?s){re.escape(_label(call))}(?:{pattern})?"
    )
    return pc.struct_field(matches, "value")


def _number(pattern: str, result: DataType, zero: object) -> Kernel:
    """Return the kernel that reads the field's number, matched by `pattern`, as the type `result`; `zero` if there
    is none."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Read the field's number in each text; a number beyond the result's type gives `zero`."""
        numbers = cast.cast_or_null(
            _value(arrays, call, pattern),
            make_nullable(STRING),
            make_nullable(result),
            call.environment,
        )
        return pc.fill_null(numbers, pa.scalar(zero, result.arrow))

    return kernel


def _has(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return 1 where the text contains the field's label, else 0: the kernel of simpleJSONHas."""
    return pc.match_substring(columns.text(arrays[0]), _label(call)).cast(pa.uint8())


def _is_true(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return 1 where the field's value is true, else 0: the kernel of simpleJSONExtractBool."""
    is_true = pc.equal(_value(arrays, call, "(?P<value>true)"), "true")
    return pc.fill_null(is_true, False).cast(pa.uint8())


def _string(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return the field's string, "" if its value is no string: the kernel of simpleJSONExtractString.

    Escapes are decoded once for each distinct text that has any."""
    distinct = _value(arrays, call, _QUOTED).dictionary_encode()
    quoted = distinct.dictionary
    plain = pc.utf8_slice_codeunits(quoted, 1, -1).cast(pa.string())
    escaped = pc.match_substring(quoted, "\\")
    if pc.any(escaped).as_py():
        numbered = pc.match_substring_regex(quoted, r"\\u|\x00")
        named = pc.and_not(escaped, numbered)
        plain = pc.replace_with_mask(plain, named, _decode_simple_escapes(plain.filter(named)))
        by_number = pc.and_(escaped, numbered)
        decoded = pa.array(
            [_decode_string(v) for v in quoted.filter(by_number).to_pylist()], pa.string()
        )
        plain = pc.replace_with_mask(plain, by_number, decoded)
    return pc.fill_null(plain.take(distinct.indices), "")


def _decode_simple_escapes(texts: pa.Array) -> pa.Array:
    """Decode the escapes of texts that hold no `\\u` escape and no zero byte.

    Escaped backslashes are zero bytes while the other escapes are decoded."""
    decoded = pc.replace_substring(texts, "\\\\", "\0")
    for letter, character in _LETTERS.items():
        decoded = pc.replace_substring(decoded, f"\\{letter}", character)
    decoded = regexes.replaced(decoded, r"(?s)\\(.)", r"\1")
    return pc.replace_substring(decoded, "\0", "\\")


_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def _decode_string(quoted: str) -> str:
    """Decode one JSON string, quotes included; "" if it has half of a surrogate pair.

    An escape that JSON does not define gives its letter."""
    valid_json = _ESCAPE.sub(lambda m: m[0] if m[1] else m[2], quoted)
    try:
        text = str(json.loads(valid_json, strict=False))
        text.encode()
    except ValueError:
        return ""
    return text


_RAW_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|["{}\[\],]', re.DOTALL)


def _raw(array: pa.Array, call: Invocation) -> pa.Array:
    """Return the field's value as it is written, up to the comma or bracket behind it.

    Python is called once for each distinct text.
    """
    label = _label(call).encode("utf-8", "surrogateescape")

    def read(text: bytes) -> bytes:
        """Return one text's value, '' if there is none or it does not end."""
        begin = text.find(label)
        if begin < 0:
            return b""
        begin += len(label)
        depth = 0
        for token in _RAW_TOKEN.finditer(text, begin):
            mark = token.group()
            if depth == 0 and mark in b"},":
                return text[begin : token.start()]
            if mark == b'"':  # a text that does not end
                return b""
            depth = max(depth + (mark in (b"{", b"[")) - (mark in (b"}", b"]")), 0)
        return b""

    return values_by_row([array], read, pa.string())


def _define_both_names(name: str, result: DataType, kernel: Kernel) -> ScalarDefinition:
    """Define a function as simpleJSON… and visitParam…."""
    return define(
        f"simpleJSON{name}", _rule(result), kernel, count=2, aliases=(f"visitParam{name}",)
    )


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    _define_both_names("Has", UINT8, _has),
    _define_both_names("ExtractInt", INT64, _number(_INTEGER, INT64, 0)),
    _define_both_names("ExtractUInt", UINT64, _number(_INTEGER, UINT64, 0)),
    _define_both_names("ExtractFloat", FLOAT64, _number(_FLOAT, FLOAT64, 0.0)),
    _define_both_names("ExtractBool", UINT8, _is_true),
    _define_both_names("ExtractRaw", STRING, lambda arrays, call: _raw(arrays[0], call)),
    _define_both_names("ExtractString", STRING, _string),
)

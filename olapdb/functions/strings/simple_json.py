"""simpleJSON…, also spelled visitParam…: one field of a JSON text, found by its spelling.

As in ClickHouse the JSON is not parsed: the value is what follows the first `"name":`, at any
depth, with no space between; a field that is not there, or of another kind, gives 0 or "".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.base import Argument
from olapdb.functions.casts import cast
from olapdb.functions.kernels import columns
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
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(name, types, TEXT_TYPES, "a String")
        constant_text(name, arguments, 1, "the field's name")
        return result

    return rule


def _label(call: Invocation) -> str:
    return f'"{call.constant(1)}":'


def _value(arrays: list[pa.Array], call: Invocation, pattern: str) -> pa.Array:
    """What the pattern's group finds right after the first label; "" or NULL where nothing.

    The pattern is optional, so that a first label without it hides later ones, as in ClickHouse.
    """
    found = pc.extract_regex(
        columns.text(arrays[0]), f"(?s){re.escape(_label(call))}(?:{pattern})?"
    )
    return pc.struct_field(found, "value")


def _number(pattern: str, result: DataType, zero: object) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        found = cast.cast_or_null(
            _value(arrays, call, pattern),
            make_nullable(STRING),
            make_nullable(result),
            call.environment,
        )
        return pc.fill_null(found, pa.scalar(zero, result.arrow))

    return kernel


def _has(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    return pc.match_substring(columns.text(arrays[0]), _label(call)).cast(pa.uint8())


def _is_true(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    found = pc.equal(_value(arrays, call, "(?P<value>true)"), "true")
    return pc.fill_null(found, False).cast(pa.uint8())


def _string(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Escapes are decoded once for each distinct text that has any."""
    distinct = _value(arrays, call, _QUOTED).dictionary_encode()
    quoted = distinct.dictionary
    plain = pc.utf8_slice_codeunits(quoted, 1, -1).cast(pa.string())
    escaped = pc.match_substring(quoted, "\\")
    if pc.any(escaped).as_py():
        numbered = pc.match_substring_regex(quoted, r"\\u|\x00")
        named = pc.and_not(escaped, numbered)
        plain = pc.replace_with_mask(plain, named, _without_escapes(plain.filter(named)))
        by_number = pc.and_(escaped, numbered)
        decoded = pa.array([_decoded(v) for v in quoted.filter(by_number).to_pylist()], pa.string())
        plain = pc.replace_with_mask(plain, by_number, decoded)
    return pc.fill_null(plain.take(distinct.indices), "")


def _without_escapes(texts: pa.Array) -> pa.Array:
    """Texts without `\\u` and zero bytes, which stand for a backslash meanwhile."""
    made = pc.replace_substring(texts, "\\\\", "\0")
    for letter, meant in _LETTERS.items():
        made = pc.replace_substring(made, f"\\{letter}", meant)
    made = pc.replace_substring_regex(made, r"(?s)\\(.)", r"\1")
    return pc.replace_substring(made, "\0", "\\")


_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def _decoded(quoted: str) -> str:
    """Empty for half of a surrogate pair; an escape that JSON does not have is its letter."""
    known = _ESCAPE.sub(lambda m: m[0] if m[1] else m[2], quoted)
    try:
        text = str(json.loads(known, strict=False))
        text.encode()
    except ValueError:
        return ""
    return text


def _both(name: str, result: DataType, kernel: Kernel) -> ScalarDefinition:
    return define(
        f"simpleJSON{name}", _rule(result), kernel, count=2, aliases=(f"visitParam{name}",)
    )


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    _both("Has", UINT8, _has),
    _both("ExtractInt", INT64, _number(_INTEGER, INT64, 0)),
    _both("ExtractUInt", UINT64, _number(_INTEGER, UINT64, 0)),
    _both("ExtractFloat", FLOAT64, _number(_FLOAT, FLOAT64, 0.0)),
    _both("ExtractBool", UINT8, _is_true),
    _both("ExtractString", STRING, _string),
)

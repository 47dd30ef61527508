"""Texts of Prometheus: values as it writes them, the suffixes of its metrics, tags as a map."""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence

import pyarrow as pa

from olapdb.errors import BadArguments, NumberOfArgumentsDoesntMatch
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import bytes_of_text, define_by_value, text_of, values_by_row
from olapdb.functions.strings.arguments import text_rule
from olapdb.types import STRING, Array, DataType, Float, Map, String, Tuple

_SUFFIXES = {
    b"counter": (b"", b"_total"),
    b"histogram": (b"_bucket", b"_count", b"_sum"),
    b"gaugehistogram": (b"_bucket", b"_gcount", b"_gsum"),
    b"summary": (b"", b"_count", b"_sum"),
    b"info": (b"", b"_info"),
}
_TAGS = Array(Tuple((STRING, STRING)))


def _value_text(value: float) -> bytes:
    """Return a number as Prometheus writes it: its shortest digits, without an exponent."""
    if math.isnan(value):
        return b"NaN"
    if math.isinf(value):
        return b"+Inf" if value > 0 else b"-Inf"
    text = format(decimal.Decimal(repr(value)), "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text).encode()


def _suffixes(kind: bytes) -> list[bytes]:
    """Return the suffixes, such as _count, that the series of a Prometheus metric of type `kind` may have."""
    return list(_SUFFIXES.get(kind, (b"",)))


def _tags_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return Map(String, String); raise IllegalTypeOfArgument unless tags, then names
    and values, NumberOfArgumentsDoesntMatch for a name without a value."""
    empty = isinstance(types[0], Array) and arguments[0].constant is not None
    pairs = isinstance(types[0], Array) and (
        types[0] == _TAGS or (empty and _is_empty(arguments[0]))
    )
    if not pairs and types[0] != Map(STRING, STRING):
        raise scalar.illegal(name, types[0], "an Array(Tuple(String, String)) or a map of texts")
    scalar.require(name, types[1:], String, "a String")
    if len(types) % 2 == 0:
        raise NumberOfArgumentsDoesntMatch(f"{name} takes tags, then a value for each name.")
    return Map(STRING, STRING)


def _is_empty(argument: Argument) -> bool:
    """Return whether an argument is the constant array without elements."""
    return argument.constant is not None and argument.constant.as_py() == []


def _tags(tags: Sequence[object], *more: bytes) -> list[tuple[bytes, bytes]]:
    """Return tags by name, given as pairs and as `more` names and values in turn; tags with an empty value are left
    out.

    Raises BadArguments for two values of one name."""
    pairs = [_pair(tag) for tag in tags]
    pairs += [
        (text_of(name), text_of(value)) for name, value in zip(more[::2], more[1::2], strict=True)
    ]
    whole: dict[str, str] = {}
    for name, value in pairs:
        if whole.setdefault(name, value) != value:
            raise BadArguments(f"The tag {name!r} has the values {whole[name]!r} and {value!r}.")
    return sorted((bytes_of_text(n), bytes_of_text(v)) for n, v in whole.items() if v)


def _map_of_tags(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the tags of each row as a map."""
    tags, *more = arrays
    if pa.types.is_map(tags.type):
        names = [pa.field("keys", tags.type.key_type), pa.field("values", tags.type.item_type)]
        tags = tags.cast(pa.list_(pa.struct(names)))
    return values_by_row([tags, *more], _tags, call.result.arrow)


def _pair(tag: object) -> tuple[str, str]:
    """Return the name and the value of a tag, of a tuple or of a map's entry."""
    assert isinstance(tag, dict)
    name, value = tag.values()
    return str(name), str(value)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    define_by_value(
        "timeSeriesPrometheusValueToString",
        scalar.fixed_rule(STRING, (Float,), "a Float32 or Float64"),
        _value_text,
    ),
    define_by_value("timeSeriesMetricTypeToSuffixes", text_rule(Array(STRING)), _suffixes),
    scalar.define("timeSeriesTagsToMap", _tags_rule, _map_of_tags, count=(1, None)),
)

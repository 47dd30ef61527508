"""The bytes that ClickHouse keeps for the state of an aggregate: what hex, toString and text formats show of it.

They follow `serialize` of ClickHouse's aggregate functions (src/AggregateFunctions): a number as its bytes, a count
as a varint, an optional value behind a byte that says whether there is one, a text behind its length. States of
sketches, and of sets whose order is that of a hash table, have no such bytes here."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.aggregates.name_parts import canonical_name, split_combinator
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.byte_texts import (
    fixed_bytes,
    joined,
    length_prefixed,
    number_bytes,
    scalar_bytes,
    varints,
)
from olapdb.types import (
    AggregateFunction,
    Array,
    DataType,
    Dynamic,
    Json,
    Map,
    String,
    Tuple,
    Variant,
    is_nullable,
    plain,
)

_SMALL_BITMAP = 32
"""The most values of a bitmap that ClickHouse keeps as a list."""
_NOT_FIXED = Array | Map | Tuple | Variant | Dynamic | Json | AggregateFunction
_Encoder = Callable[[pa.Array, AggregateFunction], "pa.Array | None"]


def state_bytes(states: pa.Array, state_type: AggregateFunction) -> pa.Array | None:
    """Return the bytes of each state, binary values; None if the bytes of such states are not known here, or if a state
    is NULL."""
    if not all(_is_known(argument) for argument in state_type.arguments) or states.null_count:
        return None
    return _encoded(state_type.function, states, state_type)


def _is_known(data_type: DataType) -> bool:
    """Return whether values of the type have known bytes: texts and types of fixed width."""
    return not isinstance(plain(data_type), _NOT_FIXED)


def _encoded(name: str, states: pa.Array, state_type: AggregateFunction) -> pa.Array | None:
    """Return the bytes of states of the aggregate `name`, which is what is left of the function's name once outer
    combinators are encoded."""
    base = canonical_name(name)
    nullable = any(is_nullable(argument) for argument in state_type.arguments)
    if base is None:
        split = split_combinator(name)
        if split is None or nullable:
            return None
        inner, suffix = split
        if suffix == "If":
            return _encoded(inner, states, state_type)
        if suffix not in ("OrNull", "OrDefault"):
            return None
        seen, inside = columns.struct_fields(states)
        value = _encoded(inner, inside, state_type)
        return None if value is None else joined([value, _flags(seen)])
    encoder = _ENCODERS.get(base)
    if encoder is None:
        return None
    if not nullable or base == "count":
        return encoder(states, state_type)
    return _of_nullable(base, encoder, states, state_type)


def _of_nullable(
    base: str, encoder: _Encoder, states: pa.Array, state_type: AggregateFunction
) -> pa.Array | None:
    """Return the bytes of states over Nullable arguments: a byte that says whether there was a value, then the state
    if there was one."""
    if base in ("sum", "avg"):
        seen, inside = columns.struct_fields(states)
        present = pc.not_equal(seen, pa.scalar(0, seen.type))
    elif base in _OPTIONAL:
        (inside,) = columns.struct_fields(states)
        present, inside = inside.is_valid(), states
    else:
        return None
    value = encoder(inside, state_type)
    if value is None:
        return None
    behind = pc.if_else(present, value, pa.scalar(b"", value.type))
    return joined([_flags(present), behind])


def _flags(values: pa.Array) -> pa.Array:
    """Return a byte for each value, 1 where it is true or not 0."""
    return fixed_bytes(
        number_bytes(columns.truth(values).cast(pa.uint8()).to_numpy(zero_copy_only=False))
    )


def _number(states: pa.Array, state_type: AggregateFunction) -> pa.Array:
    """Encode states that are one number, as those of sum."""
    kind = plain(state_type.state)
    if isinstance(kind, Tuple):  # below a combinator: the state is its last element
        kind = plain(kind.elements[-1])
    return fixed_bytes(scalar_bytes(states, kind))


def _count(states: pa.Array, state_type: AggregateFunction) -> pa.Array:
    """Encode the states of count."""
    return varints(columns.numpy_values(states))


def _sum_and_count(states: pa.Array, state_type: AggregateFunction) -> pa.Array:
    """Encode states of a sum and a count, as those of avg."""
    kind = state_type.state
    while isinstance(kind, Tuple) and isinstance(kind.elements[-1], Tuple):
        kind = kind.elements[-1]
    assert isinstance(kind, Tuple)
    total, count = columns.struct_fields(states)
    return joined(
        [
            fixed_bytes(scalar_bytes(total, plain(kind.elements[0]))),
            varints(columns.numpy_values(count)),
        ]
    )


def _optional(states: pa.Array, state_type: AggregateFunction) -> pa.Array:
    """Encode states of one value or none, as those of min."""
    (values,) = columns.struct_fields(states)
    return _optional_value(values, state_type.arguments[0])


def _value_and_key(states: pa.Array, state_type: AggregateFunction) -> pa.Array:
    """Encode the states of argMin and argMax."""
    values, keys = columns.struct_fields(states)[:2]
    first, second = state_type.arguments[:2]
    return joined([_optional_value(values, first), _optional_value(keys, second)])


def _optional_value(values: pa.Array, data_type: DataType) -> pa.Array:
    """Encode values, or their absence where they are NULL: a text behind its length with a zero byte at its end, -1
    for none; any other value behind a byte 1, a byte 0 for none."""
    kind = plain(data_type)
    if isinstance(kind, String):
        texts = columns.binary(columns.single(values)).fill_null(b"")
        valid = columns.as_array(values, len(values)).is_valid().to_numpy(zero_copy_only=False)
        lengths = np.where(valid, np.diff(columns.bytes_of(texts)[0]) + 1, -1).astype("<i4")
        ends = pc.if_else(values.is_valid(), pa.scalar(b"\0"), pa.scalar(b""))
        return joined([fixed_bytes(number_bytes(lengths)), texts, ends])
    valid = values.is_valid()
    present = fixed_bytes(scalar_bytes(values.drop_null(), kind))
    places = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    shown = present.take(pc.if_else(valid, places, pa.scalar(None, pa.int64()))).fill_null(b"")
    return joined([_flags(valid), shown])


def _array(states: pa.Array, state_type: AggregateFunction) -> pa.Array | None:
    """Encode the states of groupArray: the number of values, then these."""
    offsets, elements = columns.elements_of(states)
    if elements.null_count:
        return None
    kind = plain(state_type.arguments[0])
    if isinstance(kind, String):
        texts = columns.binary(elements)
        lengths = np.diff(columns.bytes_of(texts)[0])
        return length_prefixed(offsets, joined([varints(lengths), texts]))
    return length_prefixed(offsets, fixed_bytes(scalar_bytes(elements, kind)))


def _bitmap(states: pa.Array, state_type: AggregateFunction) -> pa.Array | None:
    """Encode small bitmaps: a byte 0, the number of values, then these. Return None if any bitmap is larger."""
    offsets, _ = columns.elements_of(states)
    if len(states) and int(np.diff(offsets).max()) > _SMALL_BITMAP:
        return None
    values = _array(states, state_type)
    if values is None:
        return None
    return joined([fixed_bytes(np.zeros((len(states), 1), np.uint8)), values])


_OPTIONAL = frozenset(["min", "max", "any", "anyLast"])
_ENCODERS: dict[str, _Encoder] = {
    "count": _count,
    **dict.fromkeys(("avg", "sumCount"), _sum_and_count),
    **dict.fromkeys(("sum", "sumWithOverflow"), _number),
    **dict.fromkeys(("groupBitAnd", "groupBitOr", "groupBitXor"), _number),
    **dict.fromkeys(_OPTIONAL, _optional),
    **dict.fromkeys(("argMin", "argMax"), _value_and_key),
    "groupArray": _array,
    "groupBitmap": _bitmap,
}

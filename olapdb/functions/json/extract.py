"""JSONExtract…, JSONHas, JSONLength, JSONType, JSONKey and isValidJSON.

An argument after the JSON text is a step of the path: a key, or a place from 1 or, negative, from
the end. Where the path leads nowhere, and for a text that is not valid JSON, the result is the
default of its type, or NULL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import IllegalColumn, IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.aggregates.registry import state_representation
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.json import index as tokens_of
from olapdb.functions.json import paths
from olapdb.functions.json.index import JsonIndex, build_index
from olapdb.functions.json.raw import is_wide_integer, raw_texts
from olapdb.functions.json.read import ValueReader, refuse_type
from olapdb.functions.kernels import columns
from olapdb.records import dataclass

BYTES_MAX = 4 << 20
"""Bytes of JSON that are indexed at once: an index is some 40 times as large."""


@dataclass(frozen=True)
class ValuesAtPath:
    """The tokens of the values at the path in some rows, -1 for none, with their index and the call."""

    index: JsonIndex
    tokens: np.ndarray
    call: scalar.Invocation

    def reader(self, *, bool_as_number: bool = True) -> ValueReader:
        """Return a reader of the index's values; `bool_as_number`: true and false are read as 1 and 0 where a number
        is wanted."""
        return ValueReader(self.index, self.call.environment, bool_as_number)


Extract = Callable[[ValuesAtPath], pa.Array]


def json_slices(texts: pa.Array) -> Iterator[tuple[int, int]]:
    """Yield (first row, number of rows) of consecutive slices of the texts of about BYTES_MAX bytes."""
    offsets = columns.offsets_of(texts)
    first = 0
    while first < len(texts):
        limit = int(np.searchsorted(offsets, offsets[first] + BYTES_MAX, side="right")) - 1
        rows = max(limit - first, 1)
        yield first, min(rows, len(texts) - first)
        first += rows


def _kernel(extract: Extract, *, steps_end: int | None = None, any_case: bool) -> scalar.Kernel:
    """Return the kernel of a function of (json, path…): it follows the path in slices of the rows and calls `extract`
    for the values.

    `steps_end` is where the path ends among the arguments, as in a slice: -1 leaves the last argument out.
    `any_case`: keys match in any case."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Extract from each JSON text the value at its path."""
        texts, steps = columns.text(arrays[0]), arrays[1:steps_end]
        steps = [s if pa.types.is_integer(s.type) else columns.text(s) for s in steps]
        parts = []
        for first, rows in json_slices(texts):
            index = build_index(texts.slice(first, rows))
            path = [s.slice(first, rows) for s in steps]
            values = paths.follow(index, path, any_case=any_case)
            parts.append(extract(ValuesAtPath(index, values, call)))
        return pa.concat_arrays(parts) if parts else pa.nulls(0, call.result.arrow)

    return kernel


def _check(name: str, arguments: Sequence[Argument], steps: Sequence[Argument]) -> None:
    """Check the types of the arguments and of the path's steps; NULLs without a type are allowed.

    Raises IllegalTypeOfArgument if the first is no String, or if a step is neither a key (String) nor a place
    (integer)."""
    given = arguments[0].type
    text = types.plain(given)
    has_null = isinstance(given, types.LowCardinality) and types.is_nullable(given)
    if has_null or not isinstance(text, types.String | types.Nothing):
        raise IllegalTypeOfArgument(
            f"The first argument of function {name} is a String with JSON, not {given}."
        )
    for place, step in enumerate(steps, start=2):
        kind = types.plain(step.type)
        if not isinstance(kind, types.String | types.Integer | types.Nothing):
            raise IllegalTypeOfArgument(
                f"Argument {place} of function {name} is a key (String) or a place (integer), not "
                f"{kind}."
            )


def _check_result(arguments: Sequence[Argument], result: types.DataType) -> None:
    """Raise IllegalTypeOfArgument if an argument may be NULL and the result type has no NULL."""
    if any(
        types.is_nullable(a.type) and not isinstance(types.plain(a.type), types.Nothing)
        for a in arguments
    ) and isinstance(result, types.Array | types.Map):
        raise IllegalTypeOfArgument(
            f"Nested type {result} cannot be inside Nullable type.",
            hint="Use assumeNotNull, or ifNull, for the argument.",
        )


def _define(
    name: str,
    result: types.DataType,
    extract: Extract,
    *,
    least: int = 1,
    most: int | None = None,
    any_case: bool = False,
) -> scalar.ScalarDefinition:
    """Define a function of (json, path…) with a fixed result type."""

    def rule(
        spelt: str, plain: tuple[types.DataType, ...], arguments: Sequence[Argument]
    ) -> types.DataType:
        """Return the fixed result type; raise IllegalTypeOfArgument for arguments of other types."""
        _check(spelt, arguments, arguments[1:])
        _check_result(arguments, result)
        return result

    kernel = _kernel(extract, any_case=any_case)
    return scalar.define(name, rule, kernel, count=(least, most), drops_dictionary=True)


def _typed(
    name: str, wrap: Callable[[types.DataType], types.DataType], extract: Extract, any_case: bool
) -> scalar.ScalarDefinition:
    """Define a function of (json, path…, 'Type'); `wrap` gives the result type."""

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call for the type that the constant last argument names. Raises IllegalColumn."""
        constant = arguments[-1].constant
        named = None if constant is None else constant.as_py()
        if not isinstance(named, str):
            raise IllegalColumn(
                f"The last argument of function {spelt} is a constant String, the return type."
            )
        _check(spelt, arguments, arguments[1:-1])
        target = types.parse_type(named, state_representation)
        refuse_type(spelt, target)
        kernel = _kernel(extract, steps_end=-1, any_case=any_case)
        _check_result(arguments, wrap(target))
        call = scalar.standard_call(spelt, arguments, wrap(target), kernel)
        return call if isinstance(target, types.LowCardinality) else scalar.without_dictionary(call)

    return scalar.custom(name, resolve, count=(2, None))


def _number(data_type: types.DataType) -> Extract:
    """Return the extraction of a number of type `data_type`; true and false give no number."""
    return lambda at_path: at_path.reader(bool_as_number=False).values(at_path.tokens, data_type)


def _bool(at_path: ValuesAtPath) -> pa.Array:
    """Return 1 where the value is true or a number other than 0, else 0; UInt8."""
    return at_path.reader().values(at_path.tokens, types.BOOL).cast(pa.uint8())


def _string(at_path: ValuesAtPath) -> pa.Array:
    """Return the values as text: strings decoded, other values as their JSON text, "" for null and for no value."""
    return at_path.reader().values(at_path.tokens, types.STRING)


def _raw(at_path: ValuesAtPath) -> pa.Array:
    """Return the JSON text of each value; "" for no value."""
    return raw_texts(at_path.index, at_path.tokens, at_path.call.environment)


def _value(at_path: ValuesAtPath) -> pa.Array:
    """Return each value as the call's result type; NULL or its default where it does not convert."""
    return at_path.reader().values(at_path.tokens, at_path.call.result)


def _containers(at_path: ValuesAtPath, kind: int) -> np.ndarray:
    """Return the tokens of values that are arrays or objects, as `kind` says, -1 for others."""
    return np.where(at_path.index.kind_of(at_path.tokens) == kind, at_path.tokens, -1)


def _array_raw(at_path: ValuesAtPath) -> pa.Array:
    """Return for each value the JSON texts of its elements; an empty list unless it is an array."""
    offsets, values = paths.members_of(at_path.index, _containers(at_path, tokens_of.ARRAY))
    return columns.lists_from(offsets, raw_texts(at_path.index, values, at_path.call.environment))


def _keys(at_path: ValuesAtPath) -> pa.Array:
    """Return for each value its keys in their order; an empty list unless it is an object."""
    offsets, values = paths.members_of(at_path.index, _containers(at_path, tokens_of.OBJECT))
    return columns.lists_from(offsets, paths.keys_of(at_path.index, values - 2))


def _pairs_raw(at_path: ValuesAtPath) -> pa.Array:
    """Return for each value the pairs of key and JSON text of its members; an empty list unless it is an object."""
    offsets, values = paths.members_of(at_path.index, _containers(at_path, tokens_of.OBJECT))
    texts = raw_texts(at_path.index, values, at_path.call.environment)
    return _pairs(at_path, offsets, values, texts)


def _pairs(
    at_path: ValuesAtPath, offsets: np.ndarray, values: np.ndarray, read: pa.Array
) -> pa.Array:
    """Return the lists of (key, value) pairs: `offsets` and `values` are the tokens of members of objects, `read`
    their values as read."""
    arrow = at_path.call.result.arrow
    keys = paths.keys_of(at_path.index, values - 2)
    return columns.lists_from(offsets, columns.structs_from([keys, read], arrow.value_type))


def _pairs_typed(at_path: ValuesAtPath) -> pa.Array:
    """Return for each object the pairs of key and value; members that do not convert to the type are left out."""
    offsets, values = paths.members_of(at_path.index, _containers(at_path, tokens_of.OBJECT))
    result = at_path.call.result
    assert isinstance(result, types.Array)
    assert isinstance(result.inner, types.Tuple)
    read, converted = at_path.reader().read(values, types.plain(result.inner.elements[1]))
    owners = columns.parents_of(offsets)[converted]
    kept = columns.offsets_from_counts(np.bincount(owners, minlength=len(at_path.tokens)))
    return _pairs(at_path, kept, values[converted], read.filter(pa.array(converted)))


def _has(at_path: ValuesAtPath) -> pa.Array:
    """Return 1 where the path leads to a value, else 0; UInt8."""
    return columns.from_values(at_path.tokens >= 0, pa.uint8())


def _length(at_path: ValuesAtPath) -> pa.Array:
    """Return the number of members of an array or object, 0 for other values and none; UInt64."""
    return columns.from_values(at_path.index.members(at_path.tokens), pa.uint64())


_NUMBERS = {
    "Null": 0,
    "String": ord('"'),
    "Object": ord("{"),
    "Array": ord("["),
    "Bool": ord("b"),
    "Double": ord("d"),
    "Int64": ord("i"),
    "UInt64": ord("u"),
}
"""The kinds of JSON values in the order in which `_type` counts them, and their numbers."""
JSON_KINDS = types.Enum(8, tuple(sorted(_NUMBERS.items(), key=lambda element: element[1])))


def _type(at_path: ValuesAtPath) -> pa.Array:
    """Return each value's JSON type, such as Int64, as an Enum; "Null" for null and where there is no value."""
    kind = at_path.index.kind_of(at_path.tokens)
    chosen = np.select(
        [kind == tokens_of.STRING, kind == tokens_of.OBJECT, kind == tokens_of.ARRAY], [1, 2, 3], 0
    )
    rows = np.flatnonzero(kind == tokens_of.SCALAR)
    texts = at_path.index.texts(at_path.tokens[rows])
    unsigned = columns.numpy_values(
        pc.and_(
            pc.match_substring_regex(texts, "^[0-9]+$"),
            pc.or_(
                pc.greater(pc.binary_length(texts), 19),
                pc.and_(
                    pc.equal(pc.binary_length(texts), 19), pc.greater(texts, "9223372036854775807")
                ),
            ),
        )
    ).astype(bool)
    flags = {
        name: columns.numpy_values(pc.match_substring_regex(texts, pattern)).astype(bool)
        for name, pattern in (("bool", "^[tf]"), ("null", "^n"), ("double", "^-?[0-9].*[.eE]"))
    }
    wide = is_wide_integer(texts, at_path.call.environment)
    chosen[rows] = np.select(
        [flags["bool"], flags["null"], flags["double"], wide, unsigned], [4, 0, 5, 1, 7], 6
    )
    numbers = np.array(list(_NUMBERS.values()), np.int8)
    return columns.from_values(numbers[chosen], JSON_KINDS.arrow)


def _key(at_path: ValuesAtPath) -> pa.Array:
    """Return the key of each value that is a member of an object; "" for elements of arrays and for no value."""
    is_inside = at_path.tokens > 1
    parents = np.full(len(at_path.tokens), -1)
    parents[is_inside] = at_path.index.parent[at_path.tokens[is_inside]]
    in_object = at_path.index.kind_of(parents) == tokens_of.OBJECT
    rows = np.flatnonzero(in_object)
    names = paths.keys_of(at_path.index, at_path.tokens[rows] - 2)
    empty = columns.as_array(pa.scalar(""), len(at_path.tokens))
    return columns.replaced_rows(empty, rows, names) if len(rows) else empty


def _is_valid(at_path: ValuesAtPath) -> pa.Array:
    """Return whether each text is valid JSON; UInt8."""
    return columns.from_values(at_path.index.valid, pa.uint8())


def _definitions() -> Iterator[scalar.ScalarDefinition]:
    """Yield the definitions of this module; those of JSONExtract… also in the variant that matches keys in any case."""
    texts = types.Array(types.STRING)
    pairs = types.Array(types.Tuple((types.STRING, types.STRING)))
    for suffix, any_case in (("", False), ("CaseInsensitive", True)):
        fixed: tuple[tuple[str, types.DataType, Extract], ...] = (
            ("Int", types.INT64, _number(types.INT64)),
            ("UInt", types.UINT64, _number(types.UINT64)),
            ("Float", types.FLOAT64, _number(types.FLOAT64)),
            ("Bool", types.UINT8, _bool),
            ("String", types.STRING, _string),
            ("Raw", types.STRING, _raw),
            ("ArrayRaw", texts, _array_raw),
            ("Keys", texts, _keys),
            ("KeysAndValuesRaw", pairs, _pairs_raw),
        )
        for name, result, extract in fixed:
            yield _define(f"JSONExtract{name}{suffix}", result, extract, any_case=any_case)
        yield _typed(f"JSONExtract{suffix}", lambda t: t, _value, any_case)
        yield _typed(
            f"JSONExtractKeysAndValues{suffix}",
            lambda t: types.Array(types.Tuple((types.STRING, t))),
            _pairs_typed,
            any_case,
        )
    yield _define("JSONHas", types.UINT8, _has)
    yield _define("JSONLength", types.UINT64, _length)
    yield _define("JSONType", JSON_KINDS, _type)
    yield _define("JSONKey", types.STRING, _key, least=2)
    yield _define("isValidJSON", types.UINT8, _is_valid, most=1)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = tuple(_definitions())

"""Functions of a Dynamic: each type's values are given to the function of their type. Functions of a JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import IllegalTypeOfArgument, NotSupportedError
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.dynamic.objects import entries_of
from olapdb.functions.dynamic.order import order_keys
from olapdb.functions.dynamic.paths import either_at, has_path, value_at
from olapdb.functions.dynamic.render import plain_texts
from olapdb.functions.dynamic.result_types import RESULT_TYPES
from olapdb.functions.dynamic.stored import read_texts, type_named
from olapdb.functions.dynamic.values import of_type
from olapdb.functions.kernels import columns
from olapdb.functions.scalar import illegal
from olapdb.functions.variants.calls import UNFIT, Resolve, computed_rows
from olapdb.functions.variants.values import in_rows
from olapdb.types.arrow import DYNAMIC
from olapdb.types.arrow_values import from_numpy

_WHOLE = frozenset(
    [
        *("toTypeName", "toColumnTypeName", "dynamicType", "dynamicElement", "isNull", "isNotNull"),
        *("isNullable", "isConstant", "coalesce", "ifNull", "if", "multiIf", "assumeNotNull"),
        *("tuple", "array", "map", "materialize", "identity", "ignore", "CAST", "_CAST", "nullIf"),
        *("accurateCast", "accurateCastOrNull", "accurateCastOrDefault", "toNullable"),
        *("defaultValueOfArgumentType", "and", "or", "xor", "in", "notIn", "variantType"),
        *(
            "variantElement",
            "isDynamicElementInSharedData",
            "toJSONString",
            "blockSize",
            "_orderKey",
        ),
        *("has", "indexOf", "countEqual", "arrayPushBack", "arrayPushFront", "throwIf"),
        *("JSONAllPaths", "JSONAllPathsWithTypes"),
    ]
)
"""Functions that take a Dynamic as it is, or refuse it."""
_JSON_WHOLE = frozenset(
    [
        *("toTypeName", "toColumnTypeName", "isNull", "isNotNull", "isNullable", "isConstant"),
        *("coalesce", "ifNull", "if", "multiIf", "assumeNotNull", "tuple", "array", "map"),
        *("materialize", "identity", "ignore", "CAST", "_CAST", "accurateCast", "toNullable"),
        *("accurateCastOrNull", "accurateCastOrDefault", "defaultValueOfArgumentType", "toString"),
        *("toJSONString", "JSONAllPaths", "JSONAllPathsWithTypes", "JSONAllValues", "blockSize"),
        *("JSONDynamicPaths", "JSONDynamicPathsWithTypes", "JSONSharedDataPaths", "_jsonValue"),
        *("JSONSharedDataPathsWithTypes", "_jsonObject", "_orderKey", "dynamicElement"),
        *("arrayPushBack", "arrayPushFront", "nullIf"),
    ]
)
"""Functions that take a JSON as it is, or refuse it by themselves."""
_COMPARISONS = ("equals", "notEquals", "less", "greater", "lessOrEquals", "greaterOrEquals")
_DISTINCT = ("isDistinctFrom", "isNotDistinctFrom")
_OF_TEXT = ("JSONExtract", "JSONHas", "JSONLength", "JSONType", "JSONKey")
_NO_FORM = ("byteSize", "MD5", "MD4", "SHA", "BLAKE3", "CRC", "halfMD5", "ripeMD160")


def takes_over(name: str, arguments: Sequence[Argument]) -> bool:
    """Return whether this module resolves the function, since a Dynamic or a JSON is among the arguments."""
    plains = [types.plain(a.type) for a in arguments]
    if any(isinstance(t, types.Dynamic) for t in plains):
        return name not in _WHOLE
    return name not in _JSON_WHOLE


def resolve_call(name: str, arguments: Sequence[Argument], resolve: Resolve) -> ScalarCall:
    """Return the call of a function of a Dynamic or a JSON. `resolve` takes arguments without either.

    Raises IllegalTypeOfArgument, and NotSupportedError for hashes of a Dynamic."""
    if name == "tupleElement" and len(arguments) == 2:
        return _member(name, arguments, resolve)
    if name == "arrayElement" and _is_path(arguments):
        return _member(name, arguments, resolve)
    if name in _DISTINCT:
        return _comparison(name, arguments, resolve)
    if any(isinstance(types.plain(a.type), types.Dynamic) for a in arguments):
        return _over_types(name, arguments, resolve)
    if name in _COMPARISONS:
        return _comparison(name, arguments, resolve)
    if name in ("empty", "notEmpty"):
        return _emptiness(name, arguments, resolve)
    if name.startswith(_OF_TEXT):
        return _of_text(arguments, resolve)
    if name == "has" and isinstance(arguments[0].type, types.Json):
        return _has_path(name, arguments)
    raise IllegalTypeOfArgument(
        f"Illegal type JSON of argument of function {name}.",
        hint="Take a path, j.path.:Type, or toString(j).",
    )


def _has_path(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve has(j, path): 1 where a JSON has a value at the path or below it, else 0.

    Raises IllegalTypeOfArgument for a path that is no String."""
    if not isinstance(arguments[1].type, types.String):
        raise illegal(name, arguments[1].type, "a String, the path in the JSON,")

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Compare each path, and each one above it, with the row's path."""
        constant = all(isinstance(value, pa.Scalar) for value in values)
        count = 1 if constant else rows
        objects, wanted = (columns.as_array(value, count) for value in values)
        has_paths = has_path(objects, wanted)
        return has_paths[0] if constant else has_paths

    return ScalarCall(name, types.UINT8, kernel, "pure")


_TARGETS = frozenset(
    [
        *("Int8", "Int16", "Int32", "Int64", "Int128", "Int256", "UInt8", "UInt16", "UInt32"),
        *("UInt64", "UInt128", "UInt256", "Float32", "Float64", "Decimal32", "Decimal64"),
        *("Decimal128", "Decimal256", "Date", "Date32", "DateTime", "DateTime64", "String", "UUID"),
        *("IPv4", "IPv6", "Bool", "Time", "Time64"),
    ]
)


def _over_types(name: str, arguments: Sequence[Argument], resolve: Resolve) -> ScalarCall:
    """Return the call that passes the values of each type in a Dynamic to the function of that type. A row with a NULL
    is NULL.

    The result has the function's type if that is the same for any argument, else it is a Dynamic. If a row has a
    type that the function does not take, that is an error, or NULL under dynamic_throw_on_type_mismatch = 0."""
    if name.startswith(_NO_FORM) or "Hash" in name:
        raise NotSupportedError(
            f"Function {name} of a Dynamic is not supported: it has other bytes here.",
            hint="Give it toString(d), or one type: dynamicElement(d, 'Type').",
        )
    at = [i for i, a in enumerate(arguments) if isinstance(types.plain(a.type), types.Dynamic)]
    if at == [0] and name.startswith("to") and name[2:] in _TARGETS:
        text = resolve([Argument(types.STRING), *arguments[1:]])
        return _converting(text, arguments[0].type)
    result = RESULT_TYPES.get(name, types.Dynamic())

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Call the function for the rows of each combination of types."""
        constant = all(isinstance(value, pa.Scalar) for value in values)
        count = 1 if constant else rows
        computed = _computed(values, arguments, at, count, environment, resolve, result)
        return computed[0] if constant else computed

    return ScalarCall(name, result, kernel, "pure")


def _computed(
    values: Sequence[Column],
    arguments: Sequence[Argument],
    at: list[int],
    count: int,
    environment: Environment,
    resolve: Resolve,
    result: types.DataType,
) -> pa.Array:
    """Return the results of `count` rows: rows whose values have the same types are computed together. `at` lists
    the Dynamic arguments."""
    taken = {i: columns.struct_fields(columns.as_array(values[i], count)) for i in at}
    pieces, places = [], []
    for rows, kinds in _rows_by_types({i: labels for i, (labels, _) in taken.items()}, count):
        indices = from_numpy(rows)
        given, columns_of = [*arguments], [*values]
        for i, kind in kinds.items():
            given[i] = Argument(kind)
            columns_of[i] = read_texts(taken[i][1].take(indices), kind)
        for i, value in enumerate(values):
            if i not in at and not isinstance(value, pa.Scalar):
                columns_of[i] = value.take(indices)
        try:
            call = resolve(given)
        except UNFIT:
            if "dynamic_throw_on_type_mismatch" in environment.changed:
                continue
            raise
        computed = computed_rows(call, columns_of, rows, environment)
        if isinstance(result, types.Dynamic):
            pieces.append(of_type(computed, call.type))
        else:
            cast = cast_column(computed, call.type, result, environment, strict=True)
            pieces.append(columns.single(cast))
        places.append(rows)
    joined_values = in_rows(pieces, places, count, result.arrow)
    if not types.is_nullable(result) and joined_values.null_count:
        return joined_values.fill_null(pa.scalar([], joined_values.type))
    return joined_values


def _rows_by_types(
    labels: Mapping[int, pa.Array], count: int
) -> Iterator[tuple[np.ndarray, dict[int, types.DataType]]]:
    """Yield the rows that share one combination of types, and the type of each argument. `labels` has the type names
    of each argument; rows with a NULL are left out."""
    codes = np.zeros(count, np.int64)
    valid = np.ones(count, bool)
    names: dict[int, list[str]] = {}
    for i, labels_of in labels.items():
        encoded = labels_of.dictionary_encode()
        own = columns.numpy_values(encoded.indices.fill_null(-1)).astype(np.int64)
        valid &= own >= 0
        names[i] = encoded.dictionary.to_pylist()
        codes = codes * (len(names[i]) + 1) + own + 1
    for code in np.unique(codes[valid]).tolist():
        kinds: dict[int, types.DataType] = {}
        left = code
        for i in reversed(names):
            left, place = divmod(left, len(names[i]) + 1)
            kinds[i] = type_named(names[i][place - 1])
        yield np.flatnonzero(codes == code), kinds


def _converting(call: ScalarCall, source: types.DataType) -> ScalarCall:
    """Return the call of a conversion such as toUInt64(d): a cast from `source` to the plain target, whose default
    stands for NULL."""
    target = types.plain(call.type)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Cast the values strictly."""
        return cast_column(values[0], source, target, environment, strict=True)

    return replace(call, type=target, kernel=kernel, monotonic=False)


def _member(name: str, arguments: Sequence[Argument], resolve: Resolve) -> ScalarCall:
    """Resolve the member of a JSON, or of a Dynamic that holds JSON, at a constant path, such as j.a of an expression
    j; the result is a Dynamic.

    Raises IllegalTypeOfArgument for a path that is no constant text."""
    constant = arguments[1].constant
    path = None if constant is None else constant.as_py()
    if not isinstance(path, str):
        raise IllegalTypeOfArgument(
            f"The second argument of {name} of {arguments[0].type} is a constant text, a path."
        )
    return member_call(name, arguments[0].type, path)


def member_call(name: str, whole: types.DataType, path: str) -> ScalarCall:
    """Return the call that takes the member at a path of a JSON or a Dynamic.

    The result has the type that a JSON declares for the path. For any other path it is a Dynamic: the value, else the
    object below the path, else NULL; NULL too in rows of a Dynamic that hold no object."""
    source = types.plain(whole)
    if isinstance(source, types.Json) and path in dict(source.typed):
        return resolve_value(name, source, path, types.is_nullable(whole))
    element = source.element if isinstance(source, types.Json) else source

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the members of objects, NULL for other values."""
        array = columns.single(values[0])
        if isinstance(source, types.Json):
            members = either_at(array, source, path)
        else:
            members = _member_of_dynamic(array, path)
        return members[0] if isinstance(values[0], pa.Scalar) else members

    return ScalarCall(name, element, kernel)


def _is_path(arguments: Sequence[Argument]) -> bool:
    """Return whether the call takes a member of a JSON by a text, as j['a'] does."""
    container, index = (types.plain(argument.type) for argument in arguments)
    return isinstance(container, types.Json) and isinstance(index, types.String)


def _member_of_dynamic(array: pa.Array, path: str) -> pa.Array:
    """Return the members at a path of the rows that hold objects; NULL for other rows."""
    names, texts = columns.struct_fields(array)
    pieces, places = [], []
    encoded = names.dictionary_encode()
    codes = columns.numpy_values(encoded.indices.fill_null(-1))
    for place, type_name in enumerate(encoded.dictionary.to_pylist()):
        kind = type_named(type_name)
        if isinstance(kind, types.Json):
            rows = np.flatnonzero(codes == place)
            objects = read_texts(texts.take(from_numpy(rows)), kind)
            members = either_at(objects, kind, path)
            pieces.append(of_type(members, kind.type_of(path)))
            places.append(rows)
    return in_rows(pieces, places, len(array), DYNAMIC)


def resolve_value(name: str, source: types.Json, path: str, nullable: bool) -> ScalarCall:
    """Return the call that takes the value at a path of a JSON; with `nullable` the result is Nullable."""
    kind = source.type_of(path)
    result = types.make_nullable(kind) if nullable else kind

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the values at the path."""
        members = value_at(columns.single(values[0]), source, path)
        return members[0] if isinstance(values[0], pa.Scalar) else members

    return ScalarCall(name, result, kernel)


def _comparison(name: str, arguments: Sequence[Argument], resolve: Resolve) -> ScalarCall:
    """Resolve a comparison of two JSONs, or of two Dynamics: it compares their keys of order.

    Raises IllegalTypeOfArgument for any other pair; NULL without a type is allowed."""
    kinds = [types.plain(a.type) for a in arguments]
    both = [t for t in (types.Json, types.Dynamic) if any(isinstance(kind, t) for kind in kinds)]
    if not all(isinstance(kind, (both[0], types.Nothing)) for kind in kinds):
        raise IllegalTypeOfArgument(
            f"Function {name} does not compare {kinds[0]} with {kinds[1]}.",
            hint="CAST the other side to JSON, or compare toString(j).",
        )
    differ = kinds[0] != kinds[1]
    text = types.STRING
    texts = [
        Argument(types.make_nullable(text) if types.is_nullable(a.type) else text)
        for a in arguments
    ]
    call = resolve(texts)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Compare the keys; types that differ are compared as JSON without typed paths."""
        keys = []
        for value, kind in zip(values, kinds, strict=True):
            array = columns.single(value)
            if differ and isinstance(kind, types.Json):
                array = columns.single(
                    cast_column(
                        array,
                        types.Nullable(kind),
                        types.Nullable(types.Json()),
                        environment,
                        strict=True,
                    )
                )
            key = order_keys(array, kind)
            keys.append(key[0] if isinstance(value, pa.Scalar) else key)
        return call.kernel(keys, rows, environment)

    return replace(call, kernel=kernel, monotonic=False)


def _emptiness(name: str, arguments: Sequence[Argument], resolve: Resolve) -> ScalarCall:
    """Resolve empty or notEmpty of a JSON: whether an object has no paths, or has some."""
    kind = types.Array(types.STRING)
    call = resolve([Argument(kind)])
    nullable = types.is_nullable(arguments[0].type)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Call the function for the list of each object's paths; NULL for NULL."""
        array = columns.single(values[0])
        entries = entries_of(array)
        counts = np.bincount(entries.rows, minlength=len(array))
        paths = columns.lists_from(columns.offsets_from_counts(counts), entries.paths)
        computed = columns.as_array(call.kernel([paths], len(array), environment), len(array))
        if nullable and array.null_count:
            computed = pc.if_else(array.is_valid(), computed, pa.scalar(None, computed.type))
        return computed[0] if isinstance(values[0], pa.Scalar) else computed

    result = types.make_nullable(call.type) if nullable else call.type
    return replace(call, type=result, kernel=kernel)


def _of_text(arguments: Sequence[Argument], resolve: Resolve) -> ScalarCall:
    """Resolve a function of texts, such as JSONExtract, for a JSON: it gets the JSON's text."""
    source = arguments[0].type
    text = types.make_nullable(types.STRING) if types.is_nullable(source) else types.STRING
    call = resolve([Argument(text), *arguments[1:]])

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Write the JSON as text and pass it to the function."""
        shown = plain_texts(columns.single(values[0]), environment.zone)
        first = shown[0] if isinstance(values[0], pa.Scalar) else shown
        return call.kernel([first, *values[1:]], rows, environment)

    return replace(call, kernel=kernel)

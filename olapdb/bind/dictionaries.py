"""Calls of the functions dict…, such as dictGet and dictHas."""

from __future__ import annotations

from collections.abc import Callable

from olapdb import errors, functions, types
from olapdb.bind import constants
from olapdb.bind.contracts import Binder
from olapdb.bind.dictionary_keys import accurate, key_arguments
from olapdb.bind.dictionary_rows import (
    BoundDictionary,
    bound_dictionary,
    default_of,
    find_dictionary,
)
from olapdb.bind.names import suggestion
from olapdb.model.schema import View
from olapdb.plan.expressions import Cast, Constant, DictionaryCall, Expression
from olapdb.sql import nodes as sql
from olapdb.sql.dictionary_functions import TYPED, dictionary_name

_WALKS = {
    "dictGetHierarchy": "hierarchy",
    "dictGetRoot": "root",
    "dictIsIn": "is_in",
    "dictGetChildren": "children",
    "dictGetDescendants": "descendants",
}
_WALKED: dict[str, types.DataType] = {"is_in": types.UINT8, "root": types.UINT64}


# --- calls


def bind_dictionary_call(binder: Binder, node: sql.Function) -> Expression:
    """Bind a call of a dictionary function.

    Raises BadArguments for an unknown dictionary or attribute, NumberOfArgumentsDoesntMatch,
    IllegalTypeOfArgument and TypeMismatch for arguments that do not fit the dictionary's key.
    Also raises UnsupportedMethod."""
    if node.name == "dictGetAll":
        raise errors.UnsupportedMethod(
            "dictGetAll is for dictionaries of LAYOUT(REGEXP_TREE), which are not supported.",
            hint="dictGet gives the one value of a key.",
        )
    if len(node.arguments) < (2 if node.name in ("dictHas", *_WALKS) else 3):
        raise errors.NumberOfArgumentsDoesntMatch(f"Wrong argument count for {node.name}.")
    dictionary = bound_dictionary(binder, _named(binder, node))
    if node.name == "dictHas":
        return _has(binder, node, dictionary)
    if node.name in _WALKS:
        return _walk(binder, node, dictionary)
    if node.name == "dictGetKeys":
        return _keys(binder, node, dictionary)
    return _get(binder, node, dictionary)


def _named(binder: Binder, node: sql.Function) -> View:
    """Return the dictionary that the first argument names: a text, or a name without quotes.

    Raises IllegalTypeOfArgument."""
    first = node.arguments[0]
    name = dictionary_name(node)
    if not isinstance(first, sql.Literal):
        bound = None
        if not isinstance(first, sql.Identifier):
            bound = binder.bind(first)
        elif (column := binder.lookup(first.parts, first)) is not None:
            bound = column
        if isinstance(bound, Constant) and isinstance(bound.value.as_py(), str):
            database, _, table = bound.value.as_py().rpartition(".")
            name = sql.TableName(table, database or None)
        elif bound is not None:
            name = None
    if name is None:
        raise errors.IllegalTypeOfArgument(
            f"The first argument of {node.name} is the name of a dictionary, as a constant text."
        )
    snapshot = binder.queries.scope.snapshot
    return find_dictionary(snapshot, name.database or binder.context.database, name.name)


def _has(binder: Binder, node: sql.Function, dictionary: BoundDictionary) -> Expression:
    """Bind dictHas."""
    arguments = key_arguments(binder, node, dictionary, node.arguments[1:])
    if arguments is None:
        return constants.null()
    result = _nullable_if(types.UINT8, arguments)
    return _call(dictionary, "has", result, arguments)


def _get(binder: Binder, node: sql.Function, dictionary: BoundDictionary) -> Expression:
    """Bind dictGet, dictGetOrDefault, dictGetOrNull, and those with a type in their name.

    Raises TypeMismatch."""
    name = node.name
    wanted = TYPED.get(name.removeprefix("dictGet").removesuffix("OrDefault"))
    attributes, is_tuple = _attributes(binder, node, dictionary)
    given = node.arguments[2:]
    default: Expression | None = None
    if name.endswith("OrDefault"):
        given, last = given[:-1], given[-1]
        if given:
            default = binder.bind(last)
    arguments = key_arguments(binder, node, dictionary, given)
    defaults = _defaults(binder, node, attributes, default, is_tuple)
    values = []
    for attribute, otherwise in zip(attributes, defaults, strict=True):
        if wanted is not None and not _has_type(attribute.type, wanted):
            raise errors.TypeMismatch(
                f"The attribute {attribute.name} of {dictionary.shape.name} is {attribute.type},"
                f" {name} gives {wanted}."
            )
        values.append(_value(dictionary, attribute, otherwise, arguments, wanted))
    if not is_tuple:
        return values[0]
    packed = binder.call("tuple", tuple(values))
    names = tuple(attribute.name for attribute in attributes)
    return Cast(types.Tuple(tuple(v.type for v in values), names), packed)


def _has_type(given: types.DataType, wanted: types.DataType) -> bool:
    """Return whether an attribute has the type in a function's name: numbers of the same width, and
    other types with any parameters."""
    if isinstance(given, types.Integer | types.Float):
        return given == wanted
    return type(given) is type(wanted)


def _value(
    dictionary: BoundDictionary,
    attribute: sql.DictionaryAttribute,
    default: Expression,
    arguments: tuple[Expression, ...] | None,
    wanted: types.DataType | None,
) -> Expression:
    """Return one attribute's value; `arguments` None: the key is the constant NULL."""
    value: Expression
    result = default.type
    if arguments is None:
        nullable = _make_nullable(result)
        value = Constant(nullable, functions.constant(None, nullable))
    else:
        result = _nullable_if(result, arguments)
        at = dictionary.position(attribute.name)
        value = _call(dictionary, "get", result, arguments, default=default, attribute=at)
    if wanted is None or types.plain(value.type) == wanted:
        return value
    return Cast(types.Nullable(wanted) if types.is_nullable(value.type) else wanted, value)


def _attributes(
    binder: Binder, node: sql.Function, dictionary: BoundDictionary
) -> tuple[list[sql.DictionaryAttribute], bool]:
    """Return the attributes that the second argument names, and whether it is a tuple of names.

    Raises IllegalTypeOfArgument, BadArguments and DuplicateColumn."""
    bound = binder.bind(node.arguments[1])
    names = bound.value.as_py() if isinstance(bound, Constant) else None
    is_tuple = isinstance(bound.type, types.Tuple)
    if isinstance(names, dict):
        names = list(names.values())
    elif isinstance(names, str):
        names = [names]
    if isinstance(types.plain(bound.type), types.Array):
        names = None
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
        raise errors.IllegalTypeOfArgument(
            f"The second argument of {node.name} is the name of an attribute, or a tuple of names,"
            " as constant texts."
        )
    known = {attribute.name: attribute for attribute in dictionary.definition.attributes}
    for name in names:
        if name not in known:
            raise errors.BadArguments(
                f"The dictionary {dictionary.shape.name} has no attribute {name!r}.",
                hint=suggestion(name, known),
            )
    if len(set(names)) < len(names):
        raise errors.DuplicateColumn(f"{node.name} names an attribute twice: {', '.join(names)}.")
    return [known[name] for name in names], is_tuple


def _defaults(
    binder: Binder,
    node: sql.Function,
    attributes: list[sql.DictionaryAttribute],
    default: Expression | None,
    is_tuple: bool,
) -> list[Expression]:
    """Return the value of each attribute for a missing key, in the type of the result.

    Raises IllegalTypeOfArgument."""
    if node.name == "dictGetOrNull":
        nullable = [_make_nullable(attribute.type) for attribute in attributes]
        return [Constant(t, functions.constant(None, t)) for t in nullable]
    if default is None:
        return [default_of(attribute, binder) for attribute in attributes]
    given: list[Expression] = [default]
    if is_tuple:
        inner = types.plain(default.type)
        if not isinstance(inner, types.Tuple) or len(inner.elements) != len(attributes):
            raise errors.IllegalTypeOfArgument(
                f"The default of {node.name} is a tuple with a value for each attribute."
            )
        given = [
            binder.call("tupleElement", (default, constants.unsigned_byte(at + 1)))
            for at in range(len(attributes))
        ]
    return [
        _convert(binder, value, attribute.type, constants.cast)
        for value, attribute in zip(given, attributes, strict=True)
    ]


def _convert(
    binder: Binder, value: Expression, target: types.DataType, cast: Callable[..., Expression]
) -> Expression:
    """Return a default as the attribute's type; a constant that does not convert raises now.

    Raises CannotConvertType for a constant NULL where the attribute cannot be NULL."""
    if constants.is_null(value) and not types.is_nullable(target):
        raise errors.CannotConvertType(f"NULL is no value of type {target}.")
    return cast(value, target, binder.environment, eager=True)


def _keys(binder: Binder, node: sql.Function, dictionary: BoundDictionary) -> Expression:
    """Bind dictGetKeys: the keys whose attribute has a value.

    Raises IllegalColumn for an unknown attribute, NumberOfArgumentsDoesntMatch, and
    UnsupportedMethod for a dictionary with ranges."""
    if len(node.arguments) != 3:
        raise errors.NumberOfArgumentsDoesntMatch(f"Wrong argument count for {node.name}.")
    name = binder.bind(node.arguments[1])
    if not isinstance(name, Constant) or not isinstance(name.value.as_py(), str):
        raise errors.IllegalTypeOfArgument(
            f"The second argument of {node.name} is the name of an attribute, as a constant text."
        )
    definition = dictionary.definition
    attribute = next((a for a in definition.attributes if a.name == name.value.as_py()), None)
    if attribute is None:
        raise errors.IllegalColumn(
            f"The dictionary {dictionary.shape.name} has no attribute {name.value.as_py()!r}."
        )
    if dictionary.shape.ranged:
        raise errors.UnsupportedMethod(f"{node.name} is not for dictionaries with ranges.")
    plain_type = types.plain(attribute.type)
    value = accurate(binder, binder.bind(node.arguments[2]), plain_type, nullable=False)
    columns = [data_type for _, data_type in definition.columns[: dictionary.shape.keys]]
    key = columns[0] if len(columns) == 1 else types.Tuple(tuple(columns))
    at = dictionary.position(attribute.name)
    return _call(dictionary, "keys", types.Array(key), (value,), attribute=at)


# --- hierarchies


def _walk(binder: Binder, node: sql.Function, dictionary: BoundDictionary) -> Expression:
    """Bind a function that walks up or down the hierarchy.

    Raises NoHierarchy for a dictionary without one. Also raises NumberOfArgumentsDoesntMatch."""
    if dictionary.shape.parent < 0 or not dictionary.definition.is_simple:
        raise errors.NoHierarchy(
            f"The dictionary {dictionary.shape.name} has no hierarchy.",
            hint="Write HIERARCHICAL behind the attribute that is the key of the parent.",
        )
    kind = _WALKS[node.name]
    given = node.arguments[1:]
    most = 1 + (kind in ("is_in", "descendants"))
    if not (2 if kind == "is_in" else 1) <= len(given) <= most:
        raise errors.NumberOfArgumentsDoesntMatch(f"Wrong argument count for {node.name}.")
    levels = int(kind == "children")
    if kind == "descendants" and len(given) > 1:
        levels = _levels(binder, node)
    keys = [binder.bind(item) for item in given[: 2 if kind == "is_in" else 1]]
    if any(constants.is_null(key) for key in keys):
        return constants.null()
    arguments = tuple(accurate(binder, key, types.UINT64, nullable=True) for key in keys)
    result = _WALKED.get(kind, types.Array(types.UINT64))
    return _call(dictionary, kind, _nullable_if(result, arguments), arguments, levels=levels)


def _levels(binder: Binder, node: sql.Function) -> int:
    """Return the constant number of steps of dictGetDescendants, 0 for all.

    Raises IllegalTypeOfArgument."""
    bound = binder.bind(node.arguments[2])
    value = bound.value.as_py() if isinstance(bound, Constant) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise errors.IllegalTypeOfArgument(
            f"The third argument of {node.name} is a constant whole number from 0 on."
        )
    return value


def _call(
    dictionary: BoundDictionary,
    kind: str,
    result: types.DataType,
    arguments: tuple[Expression, ...],
    *,
    default: Expression | None = None,
    attribute: int = -1,
    levels: int = 0,
) -> DictionaryCall:
    """Return a call of the function `kind` that reads the dictionary's rows."""
    return DictionaryCall(
        result,
        kind,  # type: ignore[arg-type]
        arguments,
        default,
        dictionary.plan,
        dictionary.shape,
        attribute,
        levels,
        dictionary.number,
    )


def _nullable_if(result: types.DataType, arguments: tuple[Expression, ...]) -> types.DataType:
    """Return the result's type, nullable if an argument is: a NULL key gives NULL."""
    if any(types.is_nullable(argument.type) for argument in arguments):
        return _make_nullable(result)
    return result


def _make_nullable(data_type: types.DataType) -> types.DataType:
    """Return Nullable of the type. Raise IllegalTypeOfArgument for one that cannot be NULL."""
    if isinstance(types.plain(data_type), types.Array | types.Map):
        raise errors.IllegalTypeOfArgument(
            f"Nested type {data_type} cannot be inside Nullable type.",
            hint="Use dictHas to know whether the key exists.",
        )
    return types.make_nullable(data_type)

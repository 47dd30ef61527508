"""The key in a call of a dictionary function, in the types of the dictionary's key."""

from __future__ import annotations

from olapdb import errors, types
from olapdb.bind import constants
from olapdb.bind.contracts import Binder
from olapdb.bind.dictionary_rows import BoundDictionary
from olapdb.plan.expressions import Cast, Constant, Expression
from olapdb.sql import nodes as sql


def key_arguments(
    binder: Binder,
    node: sql.Function,
    dictionary: BoundDictionary,
    given: tuple[sql.Expression, ...],
) -> tuple[Expression, ...] | None:
    """Return the columns of the key, and the value in the range, in the dictionary's types.

    None if the key of one column is the constant NULL. Raises NumberOfArgumentsDoesntMatch for
    other than a key (and a value in the range)."""
    wanted = 2 if dictionary.shape.ranged else 1
    if len(given) != wanted:
        raise errors.NumberOfArgumentsDoesntMatch(
            f"{node.name} takes {'a key and a value in its range' if wanted == 2 else 'one key'} of"
            f" {dictionary.shape.name}, not {len(given)} arguments."
        )
    columns = dictionary.definition.columns
    key = binder.bind(given[0])
    if dictionary.shape.prefixes:
        return _address(binder, key)
    if dictionary.shape.polygons:
        if constants.is_null(key):
            return None
        return _point(binder, dictionary, key)
    if dictionary.definition.is_simple:
        if constants.is_null(key):
            return None
        keys: tuple[Expression, ...] = (accurate(binder, key, columns[0][1], nullable=True),)
    else:
        keys = _complex_key(binder, node, dictionary, key)
    if wanted == 1:
        return keys
    return (*keys, _in_range(binder, node, binder.bind(given[1]), columns[len(keys)][1]))


def _address(binder: Binder, key: Expression) -> tuple[Expression, ...] | None:
    """Return the address to look up among networks, as an IPv6; None for the constant NULL.

    Raises TypeMismatch for a key that is no address."""
    packed = types.plain(key.type)
    if isinstance(packed, types.Tuple) and len(packed.elements) == 1:
        key = binder.call("tupleElement", (key, constants.unsigned_byte(1)))
    if constants.is_null(key):
        return None
    inner = types.plain(key.type)
    if isinstance(inner, types.IPv6):
        return (key,)
    if inner == types.UINT32:
        key, inner = binder.call("toIPv4", (key,)), types.IPv4()
    if isinstance(inner, types.IPv4):
        return (binder.call("IPv4ToIPv6", (key,)),)
    if inner == types.FixedString(16):
        goal = types.Nullable(types.IPv6()) if types.is_nullable(key.type) else types.IPv6()
        return (constants.cast(key, goal, binder.environment),)
    raise errors.TypeMismatch(
        f"The key of a dictionary of networks is an IPv4 (or UInt32) or IPv6 (or FixedString(16)),"
        f" not {key.type}."
    )


def _point(binder: Binder, dictionary: BoundDictionary, key: Expression) -> tuple[Expression, ...]:
    """Return the two coordinates of the point to look up among polygons, as Float64.

    Raises TypeMismatch for a key that is no tuple of two values, and what a cast of these raises."""
    inner = types.plain(key.type)
    if not isinstance(inner, types.Tuple) or len(inner.elements) != 2:
        raise errors.TypeMismatch(
            f"The key of {dictionary.shape.name} is a point, a tuple of two numbers, not {key.type}."
        )
    if any(isinstance(types.plain(t), types.Tuple | types.Array) for t in inner.elements):
        raise errors.TypeMismatch(f"The coordinates of a point are numbers, not {key.type}.")
    return tuple(
        accurate(
            binder,
            binder.call("tupleElement", (key, constants.unsigned_byte(at))),
            types.FLOAT64,
            nullable=False,
        )
        for at in (1, 2)
    )


def _complex_key(
    binder: Binder, node: sql.Function, dictionary: BoundDictionary, key: Expression
) -> tuple[Expression, ...]:
    """Return one expression a key column of the dictionary, cast to the column's type.

    `key` is a tuple, or one value for a key of one column. Raises TypeMismatch or
    IllegalTypeOfArgument if it has another number of values than the key has columns."""
    columns = dictionary.definition.columns[: dictionary.shape.keys]
    inner = types.plain(key.type)
    if not isinstance(inner, types.Tuple):
        if len(columns) > 1:
            raise errors.IllegalTypeOfArgument(
                f"The key of {dictionary.shape.name} is a tuple of {len(columns)} values, not"
                f" {key.type}."
            )
        elements: tuple[Expression, ...] = (key,)
    elif len(inner.elements) != len(columns):
        expected = ", ".join(str(data_type) for _, data_type in columns)
        raise errors.TypeMismatch(
            f"The key of {dictionary.shape.name} is a tuple ({expected}), not {key.type}."
        )
    else:
        elements = tuple(
            binder.call("tupleElement", (key, constants.unsigned_byte(at + 1)))
            for at in range(len(columns))
        )
    return tuple(
        accurate(binder, element, data_type, nullable=False)
        for element, (_, data_type) in zip(elements, columns, strict=True)
    )


def accurate(
    binder: Binder, value: Expression, target: types.DataType, *, nullable: bool
) -> Expression:
    """Return a value of the key as the key's type; a number that this type lacks raises.

    With `nullable` NULL stays NULL, else it raises.
    Raises CannotConvertType and IllegalTypeOfArgument."""
    if types.plain(value.type) == types.plain(target):
        if not types.is_nullable(value.type) or nullable or types.is_nullable(target):
            return value
        return Cast(target, value)
    if constants.is_null(value):
        raise errors.CannotConvertType("A key of several columns has no NULL.")
    if isinstance(types.plain(value.type), types.Tuple | types.Array | types.Map):
        raise errors.IllegalTypeOfArgument(f"A key of type {target} cannot be {value.type}.")
    keeps_null = types.is_nullable(value.type) and nullable
    goal = types.Nullable(target) if keeps_null else target
    if isinstance(types.plain(value.type), types.String | types.FixedString):
        return constants.cast(value, goal, binder.environment, eager=True)
    converted = binder.call("accurateCast", (value, constants.string(goal.name)))
    if isinstance(value, Constant) and not isinstance(converted, Constant):
        constants.compute(converted, binder.environment)  # raises what the cast raises
    return converted


def _in_range(
    binder: Binder, node: sql.Function, value: Expression, target: types.DataType
) -> Expression:
    """Return the value in the range as the type of its bounds. Raise IllegalColumn for a value that
    is no number, date or time."""
    inner = types.plain(value.type)
    if not isinstance(
        inner,
        types.Integer
        | types.Float
        | types.Boolean
        | types.Date
        | types.Date32
        | types.DateTime
        | types.DateTime64,
    ):
        raise errors.IllegalColumn(
            f"The value in the range of {node.name} is a number, date or time, not {value.type}."
        )
    goal = types.Nullable(target) if types.is_nullable(value.type) else target
    return constants.cast(value, goal, binder.environment)

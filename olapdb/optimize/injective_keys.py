"""Keys of GROUP BY that one value of their argument makes are made of the groups, not of the rows.

SELECT toString(x) AS k, count() … GROUP BY k
SELECT toString(x) AS k, count FROM (SELECT x, count() … GROUP BY x)

Two values of x have two texts, so the groups are the same. Each value of x has a row: an expression that fails for a
group fails for that row, too. Not so texts of floats, whose 0.0 and -0.0 compare equal, and texts of DateTime, where an hour
occurs twice a year.
"""

from __future__ import annotations

from dataclasses import replace

from olapdb.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Constant,
    Expression,
    is_pure,
    with_children,
)
from olapdb.plan.nodes import Aggregate, Node, Project, Scan
from olapdb.plan.tree import bottom_up
from olapdb.types import UUID, Date, Date32, FixedString, Integer, IPv4, IPv6, String, plain

_WITH_TEXT = (Integer, Date, Date32, UUID, IPv4, IPv6, String)
_INJECTIVE: dict[str, tuple[type, ...]] = {
    "IPv4NumToString": (Integer, IPv4),
    "IPv6NumToString": (FixedString, IPv6),
    "UUIDNumToString": (FixedString,),
    "base58Encode": (String,),
    "base64Encode": (String,),
    "base64URLEncode": (String,),
    "bin": (Integer, Date, UUID, String),
    "bitNot": (Integer,),
    "hex": (Integer, Date, UUID, String),
    "negate": (Integer,),
    "reverse": (String,),
    "toString": _WITH_TEXT,
    "tuple": (*_WITH_TEXT, FixedString),
}
"""Functions whose values differ where their arguments differ, and the types of arguments of which that is true. The value
of NULL is NULL, of a tuple with NULL a tuple with NULL."""


def group_by_arguments(root: Node) -> Node:
    """Group by the arguments of injective functions, and compute the functions above the groups."""
    return bottom_up(root, _grouped)


def _grouped(node: Node) -> Node:
    """Return an Aggregate by arguments under a Project that computes its keys; any other node unchanged."""
    if not isinstance(node, Aggregate) or node.sets or node.totals is not None:
        return node
    if isinstance(node.child, Scan) and node.child.table.projections:
        return node  # their states answer for the keys as they are
    arguments = {name: _deciding(key) for name, key in node.keys if is_pure(key)}
    if not any(arguments.values()):
        return node
    keys: dict[Expression, str] = {}
    for name, key in node.keys:
        if not arguments.get(name):
            keys.setdefault(key, name)
    taken = {field.name for field in node.schema}
    for name, parts in arguments.items():
        for part in parts:
            if part not in keys:
                keys[part] = _free_name(part.name if isinstance(part, ColumnRef) else name, taken)
                taken.add(keys[part])
    computed = {name: _over_keys(key, keys) for name, key in node.keys}
    columns = tuple(
        (field.name, computed.get(field.name, ColumnRef(field.type, field.name)))
        for field in node.schema
    )
    return Project(replace(node, keys=tuple((name, key) for key, name in keys.items())), columns)


def _deciding(key: Expression) -> tuple[Expression, ...]:
    """Return the expressions that an injective key is made of, at any depth; nothing for any other key."""
    arguments = _arguments(key)
    return tuple(part for argument in arguments for part in (_deciding(argument) or (argument,)))


def _arguments(expression: Expression) -> tuple[Expression, ...]:
    """Return the arguments that are no constants of an injective function; nothing for any other expression."""
    varying = tuple(e for e in expression.children() if not isinstance(e, Constant))
    match expression:
        case Call(name="concat", arguments=arguments):
            is_injective = len(varying) == 1 and all(
                isinstance(plain(e.type), String) and (e in varying or _is_valid(e))
                for e in arguments
            )
        case Call(name="tuple"):
            is_injective = _are_of(varying, _INJECTIVE["tuple"])
        case Call(name=name, arguments=(_,)) if name in _INJECTIVE:
            is_injective = _are_of(varying, _INJECTIVE[name])
        case Cast(type=data_type) if isinstance(plain(data_type), String):
            is_injective = _are_of(varying, _WITH_TEXT)
        case _:
            is_injective = False
    return varying if is_injective else ()


def _are_of(expressions: tuple[Expression, ...], types: tuple[type, ...]) -> bool:
    """Return whether all expressions are of these types, which may be Nullable, or injective in them."""
    return all(isinstance(plain(e.type), types) or _arguments(e) for e in expressions)


def _is_valid(expression: Expression) -> bool:
    """Return whether an expression is a constant that is not NULL."""
    return isinstance(expression, Constant) and expression.value.is_valid


def _over_keys(expression: Expression, keys: dict[Expression, str]) -> Expression:
    """Return the expression over the columns of keys."""
    if expression in keys:
        return ColumnRef(expression.type, keys[expression])
    children = tuple(
        child if isinstance(child, Constant) else _over_keys(child, keys)
        for child in expression.children()
    )
    return with_children(expression, children)


def _free_name(name: str, taken: set[str]) -> str:
    """Return the name, or with a number behind it if it is among `taken`."""
    names = (name, *(f"{name}_{number}" for number in range(len(taken) + 1)))
    return next(free for free in names if free not in taken)

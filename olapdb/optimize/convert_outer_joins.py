"""Outer joins whose added rows a condition drops, or keeps alone.

    … LEFT JOIN r ON l.k = r.k WHERE r.x > 5         INNER JOIN: a row without a partner has no r.x above 5
    … LEFT JOIN r ON l.k = r.k WHERE r.k IS NULL     LEFT ANTI JOIN: a row with a partner has an r.k

Columns of the missing side are NULL, or their types' defaults without join_use_nulls. An INNER JOIN may be
reordered, and filters its sides by each other's keys; an ANTI JOIN makes no pairs. The rows that stay, and
their order, are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import eq, ge, gt, le, lt, ne
from typing import Literal

import pyarrow as pa

from olapdb.functions import default_value
from olapdb.plan.conditions import all_of, conjuncts, disjuncts, scalar_call
from olapdb.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Constant,
    Expression,
    columns_of,
    is_repeatable,
    substitute,
)
from olapdb.plan.nodes import Field, Filter, Join, Node, Project, Schema
from olapdb.plan.tree import bottom_up, map_subqueries, with_inputs
from olapdb.types import Integer, String, is_nullable, plain

_COMPARED: dict[str, Callable[..., object]] = {
    "equals": eq,
    "notEquals": ne,
    "less": lt,
    "lessOrEquals": le,
    "greater": gt,
    "greaterOrEquals": ge,
}
_STRICT = (*_COMPARED, "like", "notLike", "ilike", "notILike", "isNotNull")
"""The functions whose value is NULL or 0 where an argument is NULL."""
_KINDS: dict[tuple[bool, bool], Literal["FULL", "LEFT", "RIGHT", "INNER"]] = {
    (True, True): "FULL",
    (True, False): "LEFT",
    (False, True): "RIGHT",
    (False, False): "INNER",
}
"""The outer join that adds left rows, and right rows, without a partner."""


def convert_outer_joins(root: Node) -> Node:
    """Return the plan with LEFT, RIGHT and FULL joins as narrower ones where conditions above allow it."""
    inner = bottom_up(root, lambda node: map_subqueries(node, convert_outer_joins))
    return _converted(inner, [])


def _converted(node: Node, conditions: list[Expression]) -> Node:
    """Return a node with its outer joins converted. Rows of which one of the conditions does not hold
    are dropped above it."""
    match node:
        case Filter() if is_repeatable(node.predicate):
            parts = conjuncts(node.predicate)
            anti = _anti_join(node, parts)
            if anti is not None:
                return _converted(anti, conditions)
            return with_inputs(node, (_converted(node.child, [*parts, *conditions]),))
        case Project():
            by_name = dict(node.expressions)
            below = [
                substitute(c, by_name)
                for c in conditions
                if all(isinstance(by_name[name], ColumnRef) for name in columns_of(c))
            ]
            return with_inputs(node, (_converted(node.child, below),))
        case Join(strictness="ALL"):
            return _join(node, conditions)
        case Join(strictness="SEMI"):
            left = _converted(node.left, [*conditions, *map(_is_known, node.left_keys)])
            return with_inputs(node, (left, _converted(node.right, [])))
        case _:
            return with_inputs(node, tuple(_converted(child, []) for child in node.children()))


def _is_known(key: Expression) -> Expression:
    """Return the condition `key IS NOT NULL`, which holds for every row of a join that has a partner."""
    return scalar_call("isNotNull", (key,))


def _join(node: Join, conditions: list[Expression]) -> Node:
    """Return a join of all pairs, as narrow as the conditions on its rows allow. Its columns keep their types."""
    split = len(node.left.schema)
    adds_left = node.kind in ("LEFT", "FULL") and not _drop(conditions, node.fields[split:])
    adds_right = node.kind in ("RIGHT", "FULL") and not _drop(conditions, node.fields[:split])
    kind = node.kind
    if kind not in ("INNER", "CROSS"):
        kind = _KINDS[adds_left, adds_right]
    narrowed = node if kind == node.kind else replace(node, kind=kind)
    return with_inputs(narrowed, _sides(narrowed, conditions))


def _drop(conditions: Sequence[Expression], absent: Schema) -> bool:
    """Return whether one of the conditions certainly drops the rows in which these columns have the values of a missing
    partner."""
    missing = {field.name: _missing(field) for field in absent}
    return any(_drops(condition, missing) for condition in conditions)


def _sides(node: Join, conditions: list[Expression]) -> tuple[Node, Node]:
    """Return the sides of a join with their own outer joins converted: by the conditions on its rows, and
    of an INNER JOIN by its own."""
    is_inner = node.kind in ("INNER", "CROSS")
    own = conjuncts(node.residual) if is_inner else []

    def side(child: Node, keys: Sequence[Expression], kind: str) -> Node:
        """Return one side with its own outer joins converted, by the conditions that hold for each of its rows in the
        result: none for a side whose rows can be missing, unless the join is INNER or of `kind`."""
        if not is_inner and node.kind != kind:
            return _converted(child, [])
        names = {field.name for field in child.schema}
        below = [c for c in (*conditions, *own) if columns_of(c) <= names]
        return _converted(child, [*below, *map(_is_known, keys if is_inner else ())])

    return side(node.left, node.left_keys, "LEFT"), side(node.right, node.right_keys, "RIGHT")


def _missing(field: Field) -> Constant:
    """Return the value of a column in rows without a partner."""
    if is_nullable(field.type):
        return Constant(field.type, pa.scalar(None, field.type.arrow))
    return Constant(field.type, default_value(field.type))


def _drops(condition: Expression, missing: dict[str, Constant]) -> bool:
    """Return whether a condition certainly does not hold where columns have these values."""
    if not isinstance(condition, Call):
        return False
    if condition.name == "and":
        return any(_drops(c, missing) for c in conjuncts(condition))
    if condition.name == "or":
        return all(_drops(c, missing) for c in disjuncts(condition))
    if condition.name not in _STRICT:
        return False
    values = [_value(argument, missing) for argument in condition.arguments]
    if any(value is not None and not value.value.is_valid for value in values):
        return True
    if condition.name not in _COMPARED:
        return False
    known = [value for value in values if value is not None and _is_simple(value)]
    if len(known) < 2:
        return False
    first, second = known
    if isinstance(plain(first.type), String) != isinstance(plain(second.type), String):
        return False
    return not _COMPARED[condition.name](first.value.as_py(), second.value.as_py())


def _value(argument: Expression, missing: dict[str, Constant]) -> Constant | None:
    """Return the value of a missing column, of a constant, or of a conversion of either if it is NULL; None for any
    other expression."""
    if isinstance(argument, Cast) and is_nullable(argument.type):
        value = _value(argument.argument, missing)
        return value if value is not None and not value.value.is_valid else None
    if isinstance(argument, ColumnRef):
        return missing.get(argument.name)
    return argument if isinstance(argument, Constant) else None


def _is_simple(value: Constant) -> bool:
    """Return whether Python compares a constant as the engine does: an integer or a String."""
    return isinstance(plain(value.type), Integer | String)


def _anti_join(node: Filter, parts: Sequence[Expression]) -> Node | None:
    """Return LEFT JOIN … WHERE r.k IS NULL as an ANTI JOIN with the missing columns above it; None for
    any other filter."""
    join = node.child
    if not isinstance(join, Join) or (join.kind, join.strictness) != ("LEFT", "ALL"):
        return None
    never_null = _never_null(join)
    says_missing = [
        part
        for part in parts
        if isinstance(part, Call)
        and part.name == "isNull"
        and isinstance(part.arguments[0], ColumnRef)
        and part.arguments[0].name in never_null
    ]
    if not says_missing:
        return None
    split = len(join.left.schema)
    anti = replace(join, strictness="ANTI", fields=join.left.schema)
    own = tuple((f.name, ColumnRef(f.type, f.name)) for f in join.left.schema)
    absent = tuple((field.name, _missing(field)) for field in join.fields[split:])
    rest = [part for part in parts if part not in says_missing]
    below: Node = Project(anti, (*own, *absent))
    return Filter(below, all_of(rest)) if rest else below


def _never_null(join: Join) -> frozenset[str]:
    """Return the Nullable columns of a LEFT JOIN's right side that are NULL only without a partner."""
    split = len(join.left.schema)
    keys = {key.name for key in join.right_keys if isinstance(key, ColumnRef)}
    pairs = zip(join.fields[split:], join.right.schema, strict=True)
    return frozenset(
        field.name
        for field, own in pairs
        if is_nullable(field.type) and (field.name in keys or not is_nullable(own.type))
    )

"""Where a query may have a Variant: common types, keys and the literals that become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from olapdb.bind.contracts import BindContext
from olapdb.errors import Error, IllegalColumn, NoCommonType, NotSupportedError
from olapdb.functions import parse_type
from olapdb.lazy import LazyModule
from olapdb.plan.expressions import Call, Expression
from olapdb.sql import nodes as sql
from olapdb.types import DataType, Dynamic, Json, Variant, any_part, has_variant, plain, variants_in

if TYPE_CHECKING:
    from olapdb.functions.dynamic import parts
    from olapdb.functions.variants import suspicious
else:
    parts = LazyModule("olapdb.functions.dynamic.parts")
    suspicious = LazyModule("olapdb.functions.variants.suspicious")

MAY_MAKE_VARIANTS = frozenset(("if", "multiIf", "coalesce", "ifNull", "array", "map"))
"""Functions whose result is a Variant where their arguments have no common type."""


def refuse_suspicious_type(data_type: DataType, context: BindContext, *, written: bool) -> None:
    """Raise for a type that gains nothing or is ambiguous, unless a setting allows it: IllegalColumn for a
    Variant of types that one could hold, and, of a `written` CAST, also for a FixedString of more than 256
    bytes; SuspiciousTypeForLowCardinality for LowCardinality of numbers and times in one."""
    if written:
        suspicious.refuse_suspicious(data_type, "CAST", context.flag)
    for variant in variants_in(data_type):
        if not context.flag("allow_suspicious_variant_types"):
            suspicious.refuse_similar(variant)


def refuse_suspicious_target(node: sql.Function, context: BindContext) -> None:
    """Raise as `refuse_suspicious_type` for the type that accurateCast and its like name; names that are no
    literal, or no type, are not looked at."""
    named = node.arguments[1] if len(node.arguments) > 1 else None
    if isinstance(named, sql.Literal) and isinstance(named.value, str):
        try:
            target = parse_type(named.value)
        except Error:
            return  # the function refuses it
        refuse_suspicious_type(target, context, written=True)


def refuse_variant_key(key: Expression, clause: str, context: BindContext) -> None:
    """Raise IllegalColumn for a key of GROUP BY or ORDER BY that holds a Variant or a Dynamic, unless a setting
    allows it."""
    if not any_part(key.type, (Variant, Dynamic)):
        return
    setting = f"allow_suspicious_types_in_{clause.lower().replace(' ', '_')}"
    if not context.flag(setting):
        raise IllegalColumn(
            f"A key of {clause} has the type {key.type}: equal values of two types differ.",
            hint=f"Take one type, v.String, or cast it; {setting} = 1 allows it.",
        )


def order_key(key: Expression) -> Expression:
    """Return the expression to order by for a key of ORDER BY: for a Dynamic or a JSON a text that has its order, any
    other key unchanged. Raises NotSupportedError for a key that holds a Dynamic or a JSON within another type."""
    if isinstance(plain(key.type), Dynamic | Json):
        call = parts.order_call(key.type)
        return Call(call.type, "_orderKey", (key,), call)
    if any_part(key.type, (Dynamic, Json)):
        raise NotSupportedError(
            f"ORDER BY of {key.type} is not supported.",
            hint="Order by its elements, or by toString.",
        )
    return key


def refuse_new_variant(bound: Expression, arguments: Sequence[Expression]) -> None:
    """Raise NoCommonType if the value is a Variant, or holds one, and no argument does."""
    if has_variant(bound.type) and not any(has_variant(a.type) for a in arguments):
        names = ", ".join(dict.fromkeys(a.type.name for a in arguments))
        raise NoCommonType(
            f"There is no supertype for types {names}.", hint="CAST one side to the other."
        )


def is_list_of_constants(node: sql.Expression) -> bool:
    """Return whether an expression is an array or a tuple of literals, nested ones included."""
    if not isinstance(node, sql.ArrayLiteral | sql.TupleLiteral):
        return False
    return all(isinstance(e, sql.Literal) or is_list_of_constants(e) for e in node.elements)

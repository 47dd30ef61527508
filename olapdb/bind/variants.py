"""Where a query may have a Variant: common types, keys and the literals that become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from olapdb.bind.contracts import BindContext
from olapdb.errors import IllegalColumn, NoCommonType
from olapdb.lazy import LazyModule
from olapdb.plan.expressions import Expression
from olapdb.sql import nodes as sql
from olapdb.types import DataType, has_variant, variants_in

if TYPE_CHECKING:
    from olapdb.functions.variants import suspicious
else:
    suspicious = LazyModule("olapdb.functions.variants.suspicious")

MAY_MAKE_VARIANTS = frozenset(("if", "multiIf", "coalesce", "ifNull", "array", "map"))
"""Functions whose result is a Variant where their arguments have no common type."""


def refuse_suspicious_variants(data_type: DataType, context: BindContext) -> None:
    """Raise IllegalColumn for a Variant of types that one could hold, unless a setting allows it."""
    for variant in variants_in(data_type):
        if not context.flag("allow_suspicious_variant_types"):
            suspicious.refuse_similar(variant)


def refuse_variant_key(key: Expression, clause: str, context: BindContext) -> None:
    """Raise IllegalColumn for a key of GROUP BY or ORDER BY that holds a Variant, unless a setting allows it."""
    if not has_variant(key.type):
        return
    setting = f"allow_suspicious_types_in_{clause.lower().replace(' ', '_')}"
    if not context.flag(setting):
        raise IllegalColumn(
            f"A key of {clause} has the type {key.type}: equal values of two types differ.",
            hint=f"Take one type, v.String, or cast it; {setting} = 1 allows it.",
        )


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

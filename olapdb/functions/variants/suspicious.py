"""Variants that ClickHouse refuses unless a setting allows them: two types that one type could hold."""

from __future__ import annotations

from itertools import combinations

from olapdb.errors import IllegalColumn, NoCommonType
from olapdb.functions.kernels.supertypes import common_type
from olapdb.types import Boolean, DataType, ExactFloat, Geometry, Variant, WideInteger, plain


def refuse_similar(variant: Variant) -> None:
    """Raise IllegalColumn for a Variant two of whose types have a common type, which could stand for both."""
    if isinstance(variant, Geometry):
        return  # its shapes tell each other by name
    for left, right in combinations(variant.alternatives, 2):
        common = _common(left, right)
        if common is not None:
            raise IllegalColumn(
                f"Cannot create a column of type {variant}: {left} and {right} are similar types, so that it"
                " may be open which one a value has.",
                hint=f"Write {common} in place of both; allow_suspicious_variant_types = 1 allows it.",
            )


def _common(left: DataType, right: DataType) -> DataType | None:
    """Return the type that holds the values of both, None if there is none; Bool is like no other type."""
    if isinstance(plain(left), Boolean) or isinstance(plain(right), Boolean):
        return None
    try:
        common = common_type([left, right])
    except NoCommonType:
        return None
    return None if isinstance(plain(common), WideInteger | ExactFloat) else common

"""Types that ClickHouse refuses unless a setting allows them: LowCardinality of numbers, long FixedStrings, and
Variants with two types that one type could hold."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from olapdb import types
from olapdb.errors import IllegalColumn, NoCommonType, SuspiciousTypeForLowCardinality
from olapdb.functions.kernels.supertypes import common_type
from olapdb.types import Boolean, DataType, ExactFloat, Geometry, Variant, WideInteger, plain

_REPEATED_TEXTS = (types.String, types.FixedString, types.UUID)
_USUAL_BYTES_MAX = 256


def refuse_suspicious(data_type: DataType, place: str, allows: Callable[[str], bool]) -> None:
    """Raise SuspiciousTypeForLowCardinality for a LowCardinality, also within the type, of anything but texts and UUID,
    and IllegalColumn for a FixedString of more than 256 bytes or a Variant of similar types.

    `allows` returns whether a setting is on and permits the type; `place` names the column or the like for the
    error."""
    match data_type:
        case types.LowCardinality() if not isinstance(plain(data_type), _REPEATED_TEXTS):
            if not allows("allow_suspicious_low_cardinality_types"):
                raise SuspiciousTypeForLowCardinality(
                    f"{place}: {data_type} gains nothing over {data_type.inner}.",
                    hint="allow_suspicious_low_cardinality_types = 1 allows it.",
                )
        case Variant() if not allows("allow_suspicious_variant_types"):
            refuse_similar(data_type)
        case types.FixedString(length) if length > _USUAL_BYTES_MAX:
            if not allows("allow_suspicious_fixed_string_types"):
                raise IllegalColumn(
                    f"{place}: {data_type} has more than {_USUAL_BYTES_MAX} bytes.",
                    hint="Write String; allow_suspicious_fixed_string_types = 1 allows it.",
                )
    for inner in inner_types(data_type):
        refuse_suspicious(inner, place, allows)


def inner_types(data_type: DataType) -> tuple[DataType, ...]:
    """Return the types directly inside the type."""
    match data_type:
        case types.Nullable(inner) | types.LowCardinality(inner) | types.Array(inner):
            return (inner,)
        case types.SimpleAggregateFunction(inner=inner):
            return (inner,)
        case types.Map(key, value):
            return (key, value)
        case types.Tuple(elements):
            return elements
        case types.Variant(alternatives):
            return alternatives
        case types.AggregateFunction(arguments=arguments):
            return arguments
        case _:
            return ()


def refuse_similar(variant: Variant) -> None:
    """Raise IllegalColumn for a Variant with two alternatives for which one common type could stand."""
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
    """Return the common type of both; None if there is none. Bool has none with other types."""
    if isinstance(plain(left), Boolean) or isinstance(plain(right), Boolean):
        return None
    try:
        common = common_type([left, right])
    except NoCommonType:
        return None
    return None if isinstance(plain(common), WideInteger | ExactFloat) else common

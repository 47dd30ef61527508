"""Functions: their names, types and vectorised kernels.

This module is the interface of the package. `base` is the contract with the binder and executor.
"""

from __future__ import annotations

from olapdb.functions.aggregates.name_parts import (
    aggregate_names,
    ignoring_nulls,
    is_aggregate,
    joins_texts,
    respecting_nulls,
)
from olapdb.functions.aggregates.registry import (
    check_combinators,
    resolve_aggregate,
    state_representation,
)
from olapdb.functions.base import (
    AceroAggregation,
    Aggregate,
    Argument,
    Column,
    Environment,
    Groups,
    ScalarCall,
)
from olapdb.functions.casts.cast import (
    cast_column,
    cast_or_null,
    store_column,
    store_default,
    store_literals,
)
from olapdb.functions.datetime.zones import with_zone_of
from olapdb.functions.kernels.constants import constant, default_value
from olapdb.functions.kernels.supertypes import (
    common_type,
    common_type_or_variant,
    comparable_type,
    literal_type,
    without_bool,
)
from olapdb.functions.registry import function_names, is_listed, is_scalar, resolve_scalar
from olapdb.functions.strings.rendering import display, display_array, readable
from olapdb.types import DataType
from olapdb.types import parse_type as _parse_type


def parse_type(text: str) -> DataType:
    """Return the type that a ClickHouse type name denotes, aggregate states included."""
    return _parse_type(text, state_representation)


__all__ = [
    "AceroAggregation",
    "Aggregate",
    "Argument",
    "Column",
    "Environment",
    "Groups",
    "ScalarCall",
    "aggregate_names",
    "cast_column",
    "cast_or_null",
    "check_combinators",
    "common_type",
    "common_type_or_variant",
    "comparable_type",
    "constant",
    "default_value",
    "display",
    "display_array",
    "function_names",
    "ignoring_nulls",
    "is_aggregate",
    "is_listed",
    "is_scalar",
    "joins_texts",
    "literal_type",
    "parse_type",
    "readable",
    "resolve_aggregate",
    "resolve_scalar",
    "respecting_nulls",
    "store_column",
    "store_default",
    "store_literals",
    "with_zone_of",
    "without_bool",
]

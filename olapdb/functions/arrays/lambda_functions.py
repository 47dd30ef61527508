"""All functions that take a lambda, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from olapdb.functions.arrays.lambda_arrays import ARRAY_LAMBDAS
from olapdb.functions.arrays.lambda_maps import MAP_LAMBDAS
from olapdb.functions.arrays.lambdas import LambdaDefinition
from olapdb.functions.arrays.partial_order import PARTIAL_LAMBDAS

LAMBDA_DEFINITIONS: Mapping[str, LambdaDefinition] = MappingProxyType(
    {definition.name: definition for definition in (*ARRAY_LAMBDAS, *MAP_LAMBDAS, *PARTIAL_LAMBDAS)}
)

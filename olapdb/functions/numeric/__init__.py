"""Functions of numbers, comparisons, logic, conditions, hashes and random values."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olapdb.functions.scalar import ScalarDefinition


def definitions() -> tuple[ScalarDefinition, ...]:
    """Return the definitions of all functions of this package."""
    # imported at the call: these modules import `olapdb.functions.registry`, which imports this one
    from olapdb.functions.numeric import (
        arithmetic,
        bits,
        byte_order,
        colors,
        comparison,
        conditional,
        consistent_hashes,
        decimal_overflow,
        exact_decimals,
        finance,
        geohash,
        great_circles,
        guarded,
        hashes,
        iceberg,
        logical,
        maths,
        polygons,
        primes,
        random,
        readable_numbers,
        readable_sizes,
        reinterpret,
        samples,
        space_curves,
        spark_hashes,
        value_hashes,
    )

    modules = (
        arithmetic,
        comparison,
        logical,
        conditional,
        bits,
        byte_order,
        colors,
        consistent_hashes,
        iceberg,
        decimal_overflow,
        hashes,
        space_curves,
        spark_hashes,
        value_hashes,
        maths,
        random,
        readable_numbers,
        readable_sizes,
        reinterpret,
        guarded,
        exact_decimals,
        finance,
        geohash,
        great_circles,
        polygons,
        primes,
        samples,
    )
    return tuple(definition for module in modules for definition in module.DEFINITIONS)

"""Functions of numbers, comparisons, logic, conditions, hashes and random values."""

from __future__ import annotations

MODULES = (
    "arithmetic",
    "comparison",
    "logical",
    "conditional",
    "bits",
    "byte_order",
    "colors",
    "consistent_hashes",
    "iceberg",
    "decimal_overflow",
    "hashes",
    "space_curves",
    "spark_hashes",
    "value_hashes",
    "maths",
    "primes",
    "random",
    "readable_numbers",
    "readable_sizes",
    "reinterpret",
    "guarded",
    "exact_decimals",
    "finance",
    "geohash",
    "great_circles",
    "h3_cells",
    "polygons",
    "geometries",
    "well_known_binary",
    "well_known_text",
    "samples",
)
"""The modules with `DEFINITIONS`, in their order."""

"""Functions of arrays and maps, and those that take lambdas."""

from __future__ import annotations

MODULES = (
    "array_reduce",
    "construction",
    "coordinates",
    "element_access",
    "search",
    "reductions",
    "ordering",
    "resizing",
    "running_sums",
    "shuffles",
    "centroids",
    "several_arrays",
    "lambda_arrays",
    "lambda_maps",
    "map_edits",
    "map_series",
    "map_sums",
    "partial_order",
    "tuple_arithmetic",
    "tuple_names",
    "ranked",
    "rearranging",
    "vectors",
    "bitmaps",
    "numeric_vectors",
    "array_edits",
    "array_statistics",
    "decomposition",
    "outliers",
)
"""The modules with `DEFINITIONS`, in their order."""

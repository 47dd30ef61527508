"""Functions of arrays and maps, and those that take lambdas."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olapdb.functions.scalar import ScalarDefinition


def definitions() -> tuple[ScalarDefinition, ...]:
    """Return the definitions of all functions of this package.

    The modules are imported at the first call: `import olapdb` and a process that only inserts do
    not need them.
    """
    from olapdb.functions.arrays import (
        array_edits,
        array_reduce,
        array_statistics,
        bitmaps,
        construction,
        coordinates,
        element_access,
        lambda_arrays,
        lambda_maps,
        map_edits,
        map_series,
        map_sums,
        numeric_vectors,
        ordering,
        outliers,
        partial_order,
        ranked,
        rearranging,
        reductions,
        resizing,
        running_sums,
        search,
        several_arrays,
        shuffles,
        tuple_arithmetic,
        tuple_names,
        vectors,
    )

    modules = (
        array_reduce,
        construction,
        coordinates,
        element_access,
        search,
        reductions,
        ordering,
        resizing,
        running_sums,
        shuffles,
        several_arrays,
        ranked,
        lambda_arrays,
        lambda_maps,
        map_edits,
        map_series,
        map_sums,
        partial_order,
        tuple_arithmetic,
        tuple_names,
        rearranging,
        vectors,
        bitmaps,
        numeric_vectors,
        array_edits,
        array_statistics,
        outliers,
    )
    return tuple(definition for module in modules for definition in module.DEFINITIONS)

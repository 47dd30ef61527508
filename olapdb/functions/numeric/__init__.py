"""Functions of numbers, comparisons, logic and conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olapdb.functions.scalar import ScalarDefinition


def definitions() -> tuple[ScalarDefinition, ...]:
    """Return the definitions of all functions of this package.

    The modules are imported at the first call: `import olapdb` and a process that only inserts do
    not need them.
    """
    from olapdb.functions.numeric import (
        arithmetic,
        bits,
        comparison,
        conditional,
        hashes,
        logical,
        maths,
        misc,
    )

    modules = (arithmetic, comparison, logical, conditional, bits, hashes, maths, misc)
    return tuple(definition for module in modules for definition in module.DEFINITIONS)

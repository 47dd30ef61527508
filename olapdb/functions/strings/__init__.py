"""Functions of strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olapdb.functions.scalar import ScalarDefinition


def definitions() -> tuple[ScalarDefinition, ...]:
    """Return the definitions of all functions of this package.

    The modules are imported at the first call: `import olapdb` and a process that only inserts do
    not need them.
    """
    from olapdb.functions.strings import (
        byte_codes,
        concat,
        letters,
        padding,
        search_replace,
        simple_json,
        split,
        substring,
        tokens,
    )

    modules = (
        substring,
        letters,
        padding,
        concat,
        search_replace,
        byte_codes,
        split,
        tokens,
        simple_json,
    )
    return tuple(definition for module in modules for definition in module.DEFINITIONS)

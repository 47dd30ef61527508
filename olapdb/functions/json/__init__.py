"""Functions of JSON texts, on an index of all the tokens of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olapdb.functions.scalar import ScalarDefinition


def definitions() -> tuple[ScalarDefinition, ...]:
    """Return the definitions of all functions of this package.

    The modules are imported at the first call: `import olapdb` and a process that only inserts do
    not need them.
    """
    from olapdb.functions.json import extract, merge, sql_json, write

    return (*extract.DEFINITIONS, *write.DEFINITIONS, *sql_json.DEFINITIONS, *merge.DEFINITIONS)

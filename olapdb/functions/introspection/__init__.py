"""Functions about a query rather than about its data: its environment, types and evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olapdb.functions.scalar import ScalarDefinition


def definitions() -> tuple[ScalarDefinition, ...]:
    """Return the definitions of all functions of this package."""
    # imported at the call: these modules import `olapdb.functions.registry`, which imports this one
    from olapdb.functions.introspection import (
        blocks,
        composed,
        environment,
        error_names,
        evaluation,
        part_names,
        running,
        server_facts,
        values,
    )

    return (
        *evaluation.DEFINITIONS,
        *environment.DEFINITIONS,
        *blocks.DEFINITIONS,
        *values.DEFINITIONS,
        *composed.DEFINITIONS,
        *error_names.DEFINITIONS,
        *part_names.DEFINITIONS,
        *running.DEFINITIONS,
        *server_facts.DEFINITIONS,
    )

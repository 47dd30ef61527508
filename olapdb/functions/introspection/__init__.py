"""Functions about a query rather than about its data: its environment, types and evaluation."""

from __future__ import annotations

MODULES = (
    "evaluation",
    "environment",
    "blocks",
    "values",
    "column_forms",
    "composed",
    "error_names",
    "part_names",
    "partition_ids",
    "predictions",
    "running",
    "schema_texts",
    "server_facts",
)
"""The modules with `DEFINITIONS`, in their order."""

"""Differences between the columns of an incremental model's table and those of its query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_common.exceptions import CompilationError

from .column import OlapdbColumn
from .relation import OlapdbRelation, quote


def compare(present: Sequence[OlapdbColumn], queried: Sequence[OlapdbColumn]) -> dict[str, Any]:
    """Return the differences as dbt's `sync_column_schemas` takes them."""
    old = {column.name: column for column in present}
    new = {column.name: column for column in queried}
    retyped = [
        {"column_name": name, "new_type": column.dtype}
        for name, column in new.items()
        if name in old and old[name].dtype != column.dtype
    ]
    added = [column for name, column in new.items() if name not in old]
    removed = [column for name, column in old.items() if name not in new]
    return {
        "schema_changed": bool(added or removed or retyped),
        "source_not_in_target": added,
        "target_not_in_source": removed,
        "source_columns": list(queried),
        "target_columns": list(present),
        "new_target_types": retyped,
    }


def alter_actions(
    on_schema_change: str, relation: OlapdbRelation, change: Mapping[str, Any]
) -> str:
    """Return the one ALTER that brings the table to the query's columns, "" if it has them.

    `change` is a result of `compare`. One statement is one commit: if a value does not convert to a
    column's new type, no column is dropped either."""
    actions = [f"ADD COLUMN {quote(c.name)} {c.data_type}" for c in change["source_not_in_target"]]
    if on_schema_change == "sync_all_columns":
        actions += [f"DROP COLUMN {quote(c.name)}" for c in change["target_not_in_source"]]
        actions += [
            f"MODIFY COLUMN {quote(c['column_name'])} {c['new_type']}"
            for c in change["new_target_types"]
        ]
    return f"ALTER TABLE {relation.render()} {', '.join(actions)}" if actions else ""


def refused(relation: OlapdbRelation, change: Mapping[str, Any]) -> str:
    """Return the text of the error for a change under on_schema_change='fail'; raise nothing.

    `change` is a result of `compare`. The text lists the columns that differ."""
    differences = [
        *(f"{c.name} {c.dtype} is new" for c in change["source_not_in_target"]),
        *(f"{c.name} is missing" for c in change["target_not_in_source"]),
        *(f"{c['column_name']} is {c['new_type']} now" for c in change["new_target_types"]),
    ]
    return (
        f"The columns of {relation.render()} and those of the model's query differ: "
        f"{'; '.join(differences)}. Set on_schema_change to append_new_columns or "
        "sync_all_columns, run with --full-refresh, or change the query."
    )


def ignored(relation: OlapdbRelation, change: Mapping[str, Any]) -> list[OlapdbColumn]:
    """Return the table's columns, which are those to insert under on_schema_change='ignore'.

    Raises CompilationError if the query lacks one of them."""
    missing = [column.name for column in change["target_not_in_source"]]
    if missing:
        raise CompilationError(
            f"The model's query has no column {', '.join(missing)}, which {relation.render()} has. "
            "Set on_schema_change to append_new_columns (the column stays, and new rows have its "
            "default) or sync_all_columns (the column is dropped), or run with --full-refresh."
        )
    return list(change["target_columns"])

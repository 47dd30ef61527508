"""Circles: tables that are made of their own rows, through views or through tables that views join.

    source -> target       an INSERT into the source writes the target
    dimension -> target    a change of the dimension makes rows of the target stale

A view on a circle cannot be compared with a recomputation: each recomputation changes its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot


def circle_of(snapshot: Snapshot, inputs: Sequence[Table], target: Table) -> tuple[str, ...]:
    """Return the table names along the circle that a view of these inputs into `target` would
    close, from an input to the same input; () if there is none. `inputs` has the source first."""
    input_names = {table.id: _name(table) for table in inputs}
    views = _views(snapshot)
    waiting: list[tuple[str, tuple[str, ...]]] = [(target.id, (_name(target),))]
    seen: set[str] = set()
    while waiting:
        table_id, path = waiting.pop()
        if table_id in input_names:
            return (input_names[table_id], *path)
        if table_id in seen:
            continue
        seen.add(table_id)
        for view in views:
            if table_id == view.source_id or table_id in view.dimension_ids:
                written = snapshot.by_id(view.target_id)
                label = _name(written) if isinstance(written, Table) else view.name
                waiting.append((view.target_id, (*path, label)))
    return ()


def downstream(snapshot: Snapshot, table_id: str) -> Iterable[str]:
    """Return the ids of the table and of all tables that views make of it, directly or over other
    tables; a view makes its target of its source and of the tables that it joins.

    A result of `circle_of` for the table stays valid while the views on these tables stay."""
    views = _views(snapshot)
    waiting, seen = [table_id], dict[str, None]()
    while waiting:
        reached_id = waiting.pop()
        if reached_id not in seen:
            seen[reached_id] = None
            waiting += [
                view.target_id
                for view in views
                if reached_id == view.source_id or reached_id in view.dimension_ids
            ]
    return seen


def _views(snapshot: Snapshot) -> list[MaterializedView]:
    """Return the materialized views of the snapshot."""
    return list(snapshot.objects_of(MaterializedView))


def _name(table: Table) -> str:
    """Return "database.name" of the table."""
    return f"{table.database}.{table.name}"

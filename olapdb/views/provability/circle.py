"""Tables that are made of their own rows, by views' INSERTs and by the tables that views join.

    source -> target       an INSERT into the one writes the other
    dimension -> target    a change of the one makes rows of the other stale

A view on a circle has no answer that a recomputation could be compared with: each recomputation
changes what it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot


def circle_of(snapshot: Snapshot, inputs: Sequence[Table], target: Table) -> tuple[str, ...]:
    """Return the names along a circle that a view of these inputs, the source first, into the target
    closes: from an input to the same input; () where there is none."""
    wanted = {table.id: _name(table) for table in inputs}
    views = _views(snapshot)
    waiting: list[tuple[str, tuple[str, ...]]] = [(target.id, (_name(target),))]
    seen: set[str] = set()
    while waiting:
        table_id, path = waiting.pop()
        if table_id in wanted:
            return (wanted[table_id], *path)
        if table_id in seen:
            continue
        seen.add(table_id)
        for view in views:
            if table_id == view.source_id or table_id in view.dimension_ids:
                reached = snapshot.by_id(view.target_id)
                label = _name(reached) if isinstance(reached, Table) else view.name
                waiting.append((view.target_id, (*path, label)))
    return ()


def downstream(snapshot: Snapshot, table_id: str) -> Iterable[str]:
    """Return the ids of the table and of all tables that views make of it; `circle_of` holds while the
    views on these stay."""
    views = _views(snapshot)
    waiting, seen = [table_id], dict[str, None]()
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen[one] = None
            waiting += [
                view.target_id
                for view in views
                if one == view.source_id or one in view.dimension_ids
            ]
    return seen


def _views(snapshot: Snapshot) -> list[MaterializedView]:
    return [item for item in snapshot.objects() if isinstance(item, MaterializedView)]


def _name(table: Table) -> str:
    return f"{table.database}.{table.name}"

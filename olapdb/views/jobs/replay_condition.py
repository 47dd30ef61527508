"""The condition of REPLAY … WHERE and FROM, and the target partitions that it selects.

A replay swaps whole partitions. So the condition selects the partitions that may hold matching
keys, by the bounds of their parts, and all of each is recomputed. It cannot select a partition that
the target does not have yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from olapdb.bind import BindScope, bind_expression, bind_query
from olapdb.config import Settings
from olapdb.engine.layout import TableLayout
from olapdb.errors import BadArguments
from olapdb.execute import ExecutionContext
from olapdb.execute.pruning.granule_selection import Selector
from olapdb.functions.base import Environment
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.optimize import optimize
from olapdb.plan.expressions import columns_of
from olapdb.plan.tree import all_scans
from olapdb.records import dataclass
from olapdb.runtime.services import Services
from olapdb.sql import nodes
from olapdb.types import Date, Date32, DateTime, DateTime64, plain

Parameters = Sequence[object] | Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """The condition of REPLAY … WHERE, over the target's key columns. With `since` it is the value
    of FROM: the earliest date of the key."""

    expression: nodes.Expression
    since: bool = False
    parameters: Parameters = None


def matching_partitions(
    condition: KeyCondition,
    target: Table,
    snapshot: Snapshot,
    services: Services,
    settings: Mapping[str, object],
    environment: Environment,
) -> frozenset[str]:
    """Return the target's partitions that may hold rows whose key fulfils the condition.

    Raises BadArguments for a condition over columns outside of ORDER BY and PARTITION BY, and for
    FROM if the key does not have one date. Also raises the binder's errors for names and types."""
    scope = BindScope(
        snapshot=snapshot,
        database=target.database,
        settings=Settings(dict(settings)),
        environment=environment,
        parameters=condition.parameters,
    )
    layout = TableLayout(target, environment)
    expression = condition.expression
    if condition.since:
        expression = nodes.Function(
            "greaterOrEquals", (nodes.Identifier((_date_column(target, layout),)), expression)
        )
    _require_keys(expression, target, layout, scope)
    query = nodes.Select(
        columns=(nodes.Star(),),
        source=nodes.TableReference(nodes.TableName(target.name, target.database)),
        where=expression,
    )
    parts = [part for part in snapshot.parts(target.id) if part.rows]
    context = ExecutionContext(
        snapshot=snapshot, store=services.store, settings=settings, environment=environment
    )
    partitions: set[str] = set()
    for scan in all_scans(optimize(bind_query(query, scope)).root):
        if scan.table.id == target.id:
            kept_parts = Selector(scan, scan.predicate, layout, context).keep_parts(parts)
            partitions.update(part.partition_id for part in kept_parts)
    return frozenset(partitions)


def _require_keys(
    condition: nodes.Expression, target: Table, layout: TableLayout, scope: BindScope
) -> None:
    """Raise BadArguments if the condition reads columns that are not in the target's key."""
    used_columns = columns_of(bind_expression(condition, target, scope))
    keys = _key_columns(target, layout)
    other_columns = sorted(set(used_columns) - set(keys))
    if other_columns:
        raise BadArguments(
            f"REPLAY … WHERE chooses by the key of {target.database}.{target.name};"
            f" {', '.join(other_columns)} is no part of it.",
            hint=f"Its key has {', '.join(keys) or 'no column'}. SYSTEM REPLAY VIEW … STALE replays"
            " what is known to be stale.",
            position=condition.position,
        )


def _key_columns(target: Table, layout: TableLayout) -> list[str]:
    """Return the columns of ORDER BY and PARTITION BY, in the table's order."""
    names = layout.sorting_columns | layout.partition_columns
    return [column.name for column in target.columns if column.name in names]


def _date_column(target: Table, layout: TableLayout) -> str:
    """Return the column to which FROM applies: the only date of PARTITION BY, else of ORDER BY.

    Raises BadArguments."""
    for names in (layout.partition_columns, layout.sorting_columns):
        dates = _date_columns(target, names)
        if len(dates) == 1:
            return dates[0]
    raise BadArguments(
        f"REPLAY … FROM needs one date in the key of {target.database}.{target.name}, which has"
        f" {', '.join(_date_columns(target, layout.sorting_columns)) or 'none'}.",
        hint="Say it with WHERE, over the columns of its ORDER BY or PARTITION BY.",
    )


def _date_columns(target: Table, names: Iterable[str]) -> list[str]:
    """Return those of the names that are Date or DateTime columns of the target, in its order."""
    chosen_names = set(names)
    return [
        column.name
        for column in target.columns
        if column.name in chosen_names
        and isinstance(plain(column.type), Date | Date32 | DateTime | DateTime64)
    ]

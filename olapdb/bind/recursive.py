"""WITH RECURSIVE: a query that reads the rows which its last step made.

    WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5)

The branches that do not read `r` are the first step; the others are repeated over the rows of the step
before, until one makes no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from olapdb import functions
from olapdb.bind.aliases import with_expressions
from olapdb.bind.contracts import (
    BindContext,
    BoundQuery,
    CommonTable,
    OutputColumn,
    QueryBinder,
    WorkingRows,
    reads_table,
)
from olapdb.bind.subqueries import with_types
from olapdb.config import Settings
from olapdb.errors import (
    ExpectedUnionMode,
    NumberOfColumnsDoesntMatch,
    UnionStructuresMismatch,
    UnknownTable,
    UnsupportedRecursion,
)
from olapdb.plan import nodes as plan
from olapdb.sql import nodes as sql
from olapdb.types import DataType

_WIDENINGS_MAX = 16
"""Types grow from step to step (UInt8, UInt16, …) until they stay; none grows so often."""


def bind_recursive(queries: QueryBinder, common: CommonTable, context: BindContext) -> BoundQuery:
    """Bind a common table that reads itself.

    Each column has the common type of all steps. Raises UnsupportedRecursion for anything but
    UNION ALL, UnknownTable where the first branch reads the table.
    Also raises NumberOfColumnsDoesntMatch."""
    query = common.item.query
    assert isinstance(query, sql.SetOperation)
    inner = replace(common.context, depth=context.depth).with_tables(query.with_items).nested()
    default_mode = Settings.of(context.settings).text("union_default_mode")
    first, repeated = _branches(common.item.name, query, default_mode)
    first = [with_expressions(branch, query) for branch in first]
    repeated = [with_expressions(branch, query) for branch in repeated]
    bases = [queries.query(branch, inner) for branch in first]
    names = common.item.column_aliases or tuple(c.name for c in bases[0].columns)
    if len(names) != len(bases[0].columns):
        raise NumberOfColumnsDoesntMatch(
            f"{len(names)} column names for a query of {len(bases[0].columns)} columns.",
            position=common.item.position,
        )
    types = _common_types(bases, query)
    key = queries.names.unique(f"recursion {common.item.name}")
    for _ in range(_WIDENINGS_MAX):
        working = replace(common, working=WorkingRows(key, names, tuple(types)))
        own = replace(inner, tables={**inner.tables, common.item.name: working})
        steps = [queries.query(branch, own) for branch in repeated]
        wider = _common_types([*bases, *steps], query)
        if wider == types:
            break
        types = wider
    fields = tuple(
        plan.Field(queries.names.unique(n), t) for n, t in zip(names, types, strict=True)
    )
    node = plan.RecursiveUnion(
        _union(queries, bases, types, fields),
        _union(queries, steps, types, fields),
        key,
        Settings.of(context.settings).integer("max_recursive_cte_evaluation_depth"),
        fields,
    )
    outputs = (OutputColumn(f.name, n, f.type) for f, n in zip(fields, names, strict=True))
    return BoundQuery(node, tuple(outputs))


def working_table(queries: QueryBinder, rows: WorkingRows) -> BoundQuery:
    """Return the rows of the last step, as the repeated branches read them."""
    pairs = zip(rows.names, rows.types, strict=True)
    fields = tuple(plan.Field(queries.names.unique(name), t) for name, t in pairs)
    outputs = (OutputColumn(f.name, n, f.type) for f, n in zip(fields, rows.names, strict=True))
    return BoundQuery(plan.WorkingTable(rows.key, fields), tuple(outputs))


def _branches(
    name: str, query: sql.SetOperation, default_mode: str
) -> tuple[list[sql.Query], list[sql.Query]]:
    """Return the branches of a UNION ALL that do not read the table, and those that do.

    `default_mode` is that of a bare UNION. Raises UnsupportedRecursion, ExpectedUnionMode and
    UnknownTable."""
    branches: list[sql.Query] = []
    left: sql.Query = replace(query, with_items=())
    while isinstance(left, sql.SetOperation) and not left.with_items and not left.settings:
        mode = left.mode or default_mode
        if left.operator == "UNION" and not mode:
            raise ExpectedUnionMode(
                f"WITH RECURSIVE {name} has a UNION without ALL.",
                hint="Write UNION ALL, and DISTINCT in the query that reads it.",
                position=left.position or query.position,
            )
        if left.operator != "UNION" or mode == "DISTINCT":
            if not branches or reads_table(left, name):
                raise UnsupportedRecursion(
                    f"WITH RECURSIVE {name} is a UNION ALL of its first step and the repeated ones,"
                    f" not {left.operator} {mode or 'without ALL'}.",
                    hint="Write UNION ALL, and DISTINCT in the query that reads it.",
                    position=left.position or query.position,
                )
            break
        branches.append(left.right)
        left = left.left
    branches.append(left)
    first = [b for b in branches[::-1] if not reads_table(b, name)]
    repeated = [b for b in branches[::-1] if reads_table(b, name)]
    if reads_table(left, name):
        raise UnknownTable(
            f"The first branch of WITH RECURSIVE {name} reads {name}, which has no rows yet.",
            hint="Begin with the branch that does not read it.",
            position=left.position,
        )
    return first, repeated


def _common_types(branches: Sequence[BoundQuery], query: sql.SetOperation) -> list[DataType]:
    """Return the common type of each column of the branches. Raises UnionStructuresMismatch."""
    counts = [len(b.columns) for b in branches]
    if len(set(counts)) > 1:
        raise UnionStructuresMismatch(
            "The queries of WITH RECURSIVE have different numbers of columns:"
            f" {', '.join(map(str, counts))}.",
            position=query.position,
        )
    types = []
    for columns in zip(*(b.columns for b in branches), strict=True):
        distinct = list(dict.fromkeys(c.type for c in columns))
        types.append(distinct[0] if len(distinct) == 1 else functions.common_type(distinct))
    return types


def _union(
    queries: QueryBinder,
    branches: Sequence[BoundQuery],
    types: Sequence[DataType],
    fields: plan.Schema,
) -> plan.Node:
    """Return the branches' rows with these types, by position."""
    nodes = tuple(with_types(b, list(types), queries.names) for b in branches)
    own = tuple(plan.Field(queries.names.unique(f.name), f.type) for f in fields)
    return plan.Union(nodes, own)

"""Turns dbt's compiled SQL into the SELECT that the trigger maintains.

Under --empty and --sample, dbt limits the rows of a ref. A trigger with that limit would drop rows
forever, so the limits are removed. An outer `select * from final` is dissolved into the SELECT of
`final`, which is the one to maintain.
"""

from __future__ import annotations

from dataclasses import replace

from olapdb.bind.syntax import is_not_query, rewrite, rewrite_children, walk
from olapdb.errors import SyntaxError
from olapdb.sql import nodes
from olapdb.sql.format import column_name
from olapdb.sql.parser import parse_query

from ..relation import SAMPLE_MARK
from .aggregates import is_call
from .errors import refuse


def read_model(sql: str) -> nodes.Select:
    """Return the model's SELECT, without dbt's limits and with outer SELECTs dissolved.

    Raises CompilationError for a UNION, EXCEPT or INTERSECT, and `olapdb.errors.SyntaxError` for SQL
    that does not parse."""
    query = without_limits(parse_query(sql.rstrip().rstrip(";")))
    if not isinstance(query, nodes.Select):
        raise refuse(
            "the model is a UNION, EXCEPT or INTERSECT,",
            "and a trigger fires for one SELECT.",
            "Make one model of each branch, and a view of them.",
        )
    return dissolve(query)


def without_limits(query: nodes.Query) -> nodes.Query:
    """Return the query with refs that dbt limited replaced by their tables.

    dbt writes t as `(select * from t where false limit 0)` under --empty, and similarly under
    --sample."""
    return rewrite(query, _unlimited)


def is_limited(sql: str) -> bool:
    """Return whether dbt limited a ref of this SQL, under --empty or --sample."""
    query = parse_query(sql.rstrip().rstrip(";"))
    return any(_limited_source(node) is not None for node in walk(query))


def limits_refs(sql: str) -> bool:
    """Return whether dbt limited a ref of any model's SQL; False if it does not parse."""
    try:
        return is_limited(sql)
    except SyntaxError:
        return False


def _unlimited(node: nodes.Node) -> nodes.Node | None:
    """Return the table of a limited ref, with its alias; None leaves the node unchanged."""
    source = _limited_source(node)
    if source is None:
        return None
    assert isinstance(node, nodes.SubqueryRelation)
    inner = rewrite_children(source, _unlimited)
    if isinstance(inner, nodes.TableReference):
        return replace(inner, alias=node.alias or inner.alias)
    return node


def _limited_source(node: nodes.Node) -> nodes.Relation | None:
    """Return the table of a ref that dbt limited, None for any other node."""
    if not isinstance(node, nodes.SubqueryRelation) or not isinstance(node.query, nodes.Select):
        return None
    select = node.query
    if len(select.columns) != 1 or select.columns[0] != nodes.Star() or select.source is None:
        return None
    empty = select.limit is not None and _is_zero(select.limit) and select.where is not None
    sampled = select.where is not None and _has_sample_mark(select.where)
    if not empty and not sampled:
        return None
    below = _limited_source(select.source)
    return below if below is not None else select.source


def _is_zero(node: nodes.Expression) -> bool:
    """Return whether a node is the number 0; False is not."""
    return isinstance(node, nodes.Literal) and node.value == 0 and node.value is not False


def _has_sample_mark(node: nodes.Expression) -> bool:
    """Return whether an expression contains the mark of `dbt run --sample`."""
    return any(isinstance(n, nodes.Literal) and n.value == SAMPLE_MARK for n in walk(node))


# --- select * from final


def dissolve(select: nodes.Select) -> nodes.Select:
    """Return the SELECT in FROM, if it aggregates and the outer one only passes its columns on.

    It gets the names and the order of the outer columns, and the CTEs of both. SELECTs that pass
    columns on may stand inside each other. Any other SELECT is returned unchanged."""
    if not _only_passes_on(select):
        return select
    inner, remaining = _inner_query(select)
    if not isinstance(inner, nodes.Select):
        return select
    inner = dissolve(replace(inner, with_items=(*remaining, *inner.with_items)))
    chosen = _chosen(select.columns, inner) if _aggregates(inner) else None
    return select if chosen is None else replace(inner, columns=chosen)


def _only_passes_on(select: nodes.Select) -> bool:
    """Return whether the SELECT has nothing but a source and columns of it."""
    bare = nodes.Select(columns=select.columns, with_items=select.with_items, source=select.source)
    return bare == select and all(_passed_column(c) is not None for c in select.columns)


def _aggregates(select: nodes.Select) -> bool:
    """Return whether the SELECT aggregates. A row-wise SELECT can stay a subquery."""
    if select.group_by is not None:
        return True
    return any(is_call(n) for c in select.columns for n in walk(c, is_not_query))


def _passed_column(column: nodes.Expression) -> str | None:
    """Return the name of a column that is passed on, "*" for all, None for any other expression."""
    if isinstance(column, nodes.Alias):
        column = column.expression
    if isinstance(column, nodes.Identifier):
        return column.parts[-1]
    if isinstance(column, nodes.Star) and not column.pattern and not column.replaced:
        return "*"
    return None


def _inner_query(select: nodes.Select) -> tuple[nodes.Query | None, tuple[nodes.WithItem, ...]]:
    """Return the query in FROM, a subquery or a CTE, and the CTEs that it may use.

    None and () if FROM is anything else."""
    match select.source:
        case nodes.SubqueryRelation(query=query, column_aliases=()):
            return query, select.with_items
        case nodes.TableReference(table=nodes.TableName(name=name, database=None), final=False):
            for index, item in enumerate(select.with_items):
                if item.name == name and item.query is not None and not item.column_aliases:
                    return item.query, select.with_items[:index]
    return None, ()


def _chosen(
    columns: tuple[nodes.Expression, ...], inner: nodes.Select
) -> tuple[nodes.Expression, ...] | None:
    """Return the inner SELECT's columns as the outer one chooses and names them.

    None if two of them have one name, or if the outer one names another column."""
    by_name = {output_name(c): c for c in inner.columns}
    if len(by_name) != len(inner.columns):
        return None
    chosen: list[nodes.Expression] = []
    for column in columns:
        if isinstance(column, nodes.Star):
            chosen += [c for n, c in by_name.items() if n not in column.excluded]
            continue
        name = _passed_column(column)
        if name not in by_name:
            return None
        chosen.append(nodes.Alias(_unnamed(by_name[name]), output_name(column)))
    return tuple(chosen)


def output_name(column: nodes.Expression) -> str:
    """Return the name of a result column."""
    if isinstance(column, nodes.Alias):
        return column.name
    if isinstance(column, nodes.Identifier):
        return column.parts[-1]
    return column_name(column)


def _unnamed(column: nodes.Expression) -> nodes.Expression:
    """Return a column without its alias."""
    return column.expression if isinstance(column, nodes.Alias) else column

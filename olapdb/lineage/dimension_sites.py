"""The places in a view's plan where rows of its source meet rows of a dimension.

    SELECT day, sum(weight) FROM events JOIN kinds USING kind GROUP BY day    the join
    SELECT day, count() FROM events WHERE kind IN (SELECT kind FROM kinds) …  the WHERE

After the dimension changed, a source row gives another result only if it meets a row there that was
added or removed.  That holds as long as the result is computed from each source row separately, up
to one GROUP BY; `join_sites` returns None if it does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import single_chunk
from olapdb.plan import expressions, nodes
from olapdb.plan.conditions import all_of, conjuncts
from olapdb.plan.tree import all_scans, expressions_of, subqueries_of, walk_nodes, with_inputs
from olapdb.records import dataclass
from olapdb.types import UINT8, Float, plain

KEY_VALUES_MAX = 10_000
"""Prune parts and row groups by at most so many key values; the join compares all of them."""

Path = tuple[int, ...]
"""The index of the child to take at each level, from a plan's root to a node."""


@dataclass(frozen=True)
class JoinSite:
    """A join with a dimension, or a node with `arguments IN (SELECT … FROM dimension)`.

    `side` is the plan of the dimension's rows that the source's rows meet; the arguments of
    `subquery` are compared with its first columns."""

    path: Path
    side: nodes.Node
    subquery: expressions.InSubquery | None = None
    join: nodes.Join | None = None

    @property
    def by_presence(self) -> bool:
        """Return whether a match counts once, however many rows of the side it has."""
        return self.join is None or self.join.strictness in ("SEMI", "ANTI")


def join_sites(
    root: nodes.Node, source_id: str, changed: frozenset[str]
) -> tuple[JoinSite, ...] | None:
    """Return the sites where rows of the source meet one of the changed tables.

    Returns None if the result is not computed from the source's rows one by one: LIMIT, HAVING,
    a second GROUP BY, a join above a GROUP BY, functions such as rand(). Also returns None if
    the rows that a source row meets are unknown: a scalar subquery over a changed table, ANY joins,
    which pick one of several matches.
    """
    if any(_is_volatile(e) for node in walk_nodes(root) for e in expressions_of(node)):
        return None
    sites: list[JoinSite] = []
    for site in _sites(root, source_id, changed, (), grouped=False):
        if site is None:
            return None
        sites.append(site)
    return tuple(sites)


def is_row_wise_side(side: nodes.Node, changed: frozenset[str]) -> bool:
    """Return whether each row of the side is computed from one row of a changed table.

    The rows of the side that differ then come from the table's rows that differ.
    """
    while isinstance(side, nodes.Filter | nodes.Project):
        if any(True for _ in subqueries_of(side)):
            return False
        side = side.child
    if not isinstance(side, nodes.Scan) or any(True for _ in subqueries_of(side)):
        return False
    combines = side.final and side.table.engine.combines
    return side.table.id in changed and not combines


def is_grouped(root: nodes.Node) -> bool:
    """Return whether the plan has a GROUP BY."""
    return any(isinstance(node, nodes.Aggregate) for node in walk_nodes(root))


# --- the form of a plan ---------------------------------------------------------------------------


def _sites(
    node: nodes.Node, source_id: str, changed: frozenset[str], path: Path, *, grouped: bool
) -> Iterator[JoinSite | None]:
    """Yield the sites at and below the node, None if the rows that meet there are unknown."""
    if not _reads(node, changed):
        return
    if not _reads(node, frozenset({source_id})):
        yield None  # this branch has rows that depend on no source row
        return
    yield from _sites_in_expressions(node, changed, path)
    match node:
        case nodes.Join(left=left, right=right):
            if not _is_plain(node) or any(
                _reads(subquery, changed) for subquery in subqueries_of(node)
            ):
                yield None
            elif _reads(right, changed):
                is_known = _is_row_wise(left) and bool(right.schema)
                is_known = is_known and not _reads(right, frozenset({source_id}))
                yield JoinSite(path, right, join=node) if is_known else None
            children: tuple[nodes.Node, ...] = (left,)
        case nodes.Aggregate(child=child):
            if grouped:
                yield None
            grouped, children = True, (child,)
        case nodes.Filter(child=child):
            if not _is_row_wise(child):
                yield None
            children = (child,)
        case (
            nodes.Project()
            | nodes.ArrayJoin()
            | nodes.Sort(limit=None)
            | nodes.Distinct(keys=())
            | nodes.Union()
        ):
            children = node.children()
        case nodes.Scan():
            children = ()
        case _:
            yield None
            return
    for at, child in enumerate(children):
        yield from _sites(child, source_id, changed, (*path, at), grouped=grouped)


def _sites_in_expressions(
    node: nodes.Node, changed: frozenset[str], path: Path
) -> Iterator[JoinSite | None]:
    """Yield the sites in the node's own expressions, None for a subquery whose matches are
    unknown."""
    for expression in expressions_of(node):
        for part in expressions.walk(expression):
            match part:
                case expressions.ScalarSubquery(plan=plan) if _reads(plan, changed):
                    yield None
                case expressions.InSubquery(plan=plan) if _reads(plan, changed):
                    is_known = isinstance(
                        node, nodes.Filter | nodes.Project | nodes.Aggregate | nodes.Scan
                    )
                    is_known = is_known and all(_is_row_wise(child) for child in node.children())
                    is_known = is_known and not any(
                        _has_subquery_over(a, changed) for a in part.arguments
                    )
                    yield JoinSite(path, plan, subquery=part) if is_known else None
                case expressions.DictionaryCall(plan=plan) if _reads(plan, changed):
                    yield _dictionary_site(node, part, changed, path)


def _dictionary_site(
    node: nodes.Node, call: expressions.DictionaryCall, changed: frozenset[str], path: Path
) -> JoinSite | None:
    """Return the site of a lookup in a dictionary: a row meets the dictionary's rows of its key.

    Returns None for a walk along a hierarchy and for a lookup in networks or polygons, which meet
    rows of other keys too."""
    is_known = (
        call.kind in ("get", "has")
        and not (call.shape.prefixes or call.shape.polygons)
        and isinstance(node, nodes.Filter | nodes.Project | nodes.Aggregate | nodes.Scan)
    )
    is_known = is_known and all(_is_row_wise(child) for child in node.children())
    if not is_known or any(_has_subquery_over(a, changed) for a in call.arguments):
        return None
    columns = call.plan.schema[: call.shape.keys]
    keys = nodes.Project(
        call.plan, tuple((c.name, expressions.ColumnRef(c.type, c.name)) for c in columns)
    )
    looked_up = call.arguments[: call.shape.keys]
    by_key = expressions.InSubquery(UINT8, looked_up, keys, False)
    return JoinSite(path, call.plan, subquery=by_key)


def _has_subquery_over(expression: expressions.Expression, changed: frozenset[str]) -> bool:
    """Return whether a subquery in the expression reads one of the `changed` tables."""
    return any(
        isinstance(
            part, expressions.ScalarSubquery | expressions.InSubquery | expressions.DictionaryCall
        )
        and _reads(part.plan, changed)
        for part in expressions.walk(expression)
    )


def _is_row_wise(node: nodes.Node) -> bool:
    """Return whether each row of the node is computed from one row of its left-most table."""
    match node:
        case nodes.Scan():
            return True
        case nodes.Join(left=left):
            return _is_plain(node) and _is_row_wise(left)
        case nodes.Filter() | nodes.Project() | nodes.ArrayJoin() | nodes.Sort(limit=None):
            return _is_row_wise(node.children()[0])
        case nodes.Union(inputs=inputs):
            return all(_is_row_wise(input_node) for input_node in inputs)
        case _:
            return False


def _is_plain(node: nodes.Join) -> bool:
    """Return whether the join is INNER, LEFT or CROSS, and ALL, SEMI or ANTI."""
    return node.kind in ("INNER", "LEFT", "CROSS") and node.strictness in ("ALL", "SEMI", "ANTI")


def _is_volatile(expression: expressions.Expression) -> bool:
    """Return whether the expression calls a function that is not pure, except throwIf."""
    return any(call.name != "throwIf" for call in expressions.impure_calls(expression))


def _reads(node: nodes.Node, table_ids: frozenset[str]) -> bool:
    """Return whether the plan below `node` scans one of the tables."""
    return any(scan.table.id in table_ids for scan in all_scans(node))


# --- restricting a plan to the matches ------------------------------------------------------------


def restrict_to_matches(
    root: nodes.Node, site: JoinSite, matched: pa.Table, keys: Mapping[int, pa.Array]
) -> nodes.Node:
    """Return the plan with the rows at the site restricted to matches of the rows `matched`.

    `matched` has the schema of the site's side.  `keys` are the values of a join's right keys in
    `matched`, by position: parts and row groups are pruned by them on both sides of the join."""

    def change(node: nodes.Node) -> nodes.Node:
        """Return the site's node restricted to the rows that match the changed rows."""
        if site.subquery is not None:
            return _with_matching_keys(node, site.subquery, matched)
        assert isinstance(node, nodes.Join)
        return _with_matching_rows(node, matched, keys)

    return _replaced(root, site.path, change)


def _with_matching_rows(
    join: nodes.Join, matched: pa.Table, keys: Mapping[int, pa.Array]
) -> nodes.Node:
    """Return the join with its left side restricted to rows that match one of `matched`."""
    left, right = join.left, join.right
    for at, values in keys.items():
        of_left = _in_values(join.left_keys[at], values)
        of_right = _in_values(join.right_keys[at], values)
        left = left if of_left is None else nodes.Filter(left, of_left)
        right = right if of_right is None else nodes.Filter(right, of_right)
    matches = nodes.Values(join.right.schema, matched)
    matching = nodes.Join(
        left,
        matches,
        "LEFT",
        "SEMI",
        join.left_keys,
        join.right_keys,
        join.residual,
        join.left.schema,
    )
    return replace(join, left=matching, right=right)


def _with_matching_keys(
    node: nodes.Node, subquery: expressions.InSubquery, matched: pa.Table
) -> nodes.Node:
    """Return the node with its input restricted to rows whose IN arguments are among `matched`."""
    matched = matched.select(list(range(len(subquery.arguments))))
    values = nodes.Values(subquery.plan.schema, matched)
    conditions: list[expressions.Expression] = [
        condition
        for argument, column in zip(subquery.arguments, matched.columns, strict=True)
        if (condition := _in_values(argument, single_chunk(column))) is not None
    ]
    conditions.append(expressions.InSubquery(UINT8, subquery.arguments, values, False))
    if isinstance(node, nodes.Scan):
        return replace(node, predicate=all_of([*conditions, *conjuncts(node.predicate)]))
    return with_inputs(node, (nodes.Filter(node.children()[0], all_of(conditions)),))


def _in_values(argument: expressions.Expression, values: pa.Array) -> expressions.Expression | None:
    """Return a condition to prune parts and row groups by, None if no such condition exists.

    It keeps every row that has a match; the exact condition stays beside it.
    """
    arrow = values.type
    if isinstance(plain(argument.type), Float) or argument.type.arrow != arrow:
        return None
    if not expressions.columns_of(argument) or pa.types.is_nested(arrow) or pa.types.is_null(arrow):
        return None
    distinct = pc.unique(values.drop_null())
    if len(distinct) > KEY_VALUES_MAX:
        return None
    return expressions.InValues(UINT8, argument, distinct, tuple(distinct), False)


def _replaced(
    root: nodes.Node, path: Path, change: Callable[[nodes.Node], nodes.Node]
) -> nodes.Node:
    """Return the plan with `change` applied to the node at the path."""
    if not path:
        return change(root)
    children = list(root.children())
    children[path[0]] = _replaced(children[path[0]], path[1:], change)
    return with_inputs(root, tuple(children))

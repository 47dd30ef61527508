"""Queries with the tables of FROM and the conditions of WHERE in another order, at random."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query
from olapdb.sql.trees import rewrite, rewrite_children


def shuffled(query: str, random: Random) -> str:
    """Return the query with the tables of its comma lists and its conditions shuffled, those of its
    subqueries too. The answer is the same, but for the order of columns of `SELECT *`."""

    def change(node: nodes.Node) -> nodes.Node | None:
        """Return a SELECT with its parts shuffled, None for any other node."""
        if not isinstance(node, nodes.Select):
            return None
        inner = rewrite_children(node, change)
        source, where = inner.source, inner.where
        if isinstance(source, nodes.Join) and source.comma:
            source = _listed(random, source)
        if where is not None:
            where = _mixed(random, where)
        return replace(inner, source=source, where=where)

    return to_sql(rewrite(parse_query(query), change))


def has_joins(query: str) -> bool:
    """Return whether some FROM of the query is a list of tables."""
    found = False

    def look(node: nodes.Node) -> nodes.Node | None:
        nonlocal found
        found = found or (isinstance(node, nodes.Join) and node.comma)
        return None

    rewrite(parse_query(query), look)
    return found


def _listed(random: Random, source: nodes.Join) -> nodes.Relation:
    """Return the tables of a comma list in another order."""
    tables: list[nodes.Relation] = []
    left: nodes.Relation = source
    while isinstance(left, nodes.Join) and left.comma:
        tables.append(left.right)
        left = left.left
    tables.append(left)
    random.shuffle(tables)
    listed = tables[0]
    for table in tables[1:]:
        listed = replace(source, left=listed, right=table)
    return listed


def _mixed(random: Random, condition: nodes.Expression) -> nodes.Expression:
    """Return AND and OR with their operands in another order, at every depth; an equality with its sides
    swapped or not."""
    if not isinstance(condition, nodes.Function):
        return condition
    if condition.name in ("and", "or"):
        operands = [_mixed(random, operand) for operand in condition.arguments]
        random.shuffle(operands)
        return replace(condition, arguments=tuple(operands))
    if condition.name == "equals":
        sides = list(condition.arguments)
        random.shuffle(sides)
        return replace(condition, arguments=tuple(sides))
    return condition

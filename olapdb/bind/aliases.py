"""The aliases of a SELECT: a name has one meaning, in whatever clause it is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from olapdb.bind.syntax import walk
from olapdb.errors import MultipleExpressionsForAlias, Position
from olapdb.sql import nodes as sql


def aliases_of(select: sql.Select) -> dict[str, sql.Expression]:
    """Return the aliases in all clauses of the SELECT, without those of subqueries and of lambdas.

    Raises MultipleExpressionsForAlias for a name with two meanings."""
    aliases: dict[str, sql.Expression] = {}
    for item in select.with_items:
        if item.expression is not None:
            _add(aliases, item.name, item.expression, item.position)
    for root in _alias_roots(select):
        _add_all(aliases, root)
    return aliases


def aliases_of_lambda(function: sql.Lambda) -> dict[str, sql.Expression]:
    """Return the aliases in a lambda's body, which it alone sees, without those of lambdas and subqueries within.

    Raises MultipleExpressionsForAlias for a name with two meanings."""
    aliases: dict[str, sql.Expression] = {}
    _add_all(aliases, function.body)
    return aliases


def _add_all(aliases: dict[str, sql.Expression], root: sql.Node) -> None:
    """Add the aliases in an expression. Raises MultipleExpressionsForAlias."""
    for node in walk(root, may_hold_aliases):
        if isinstance(node, sql.Alias):
            _add(aliases, node.name, node.expression, node.position)


def _add(
    aliases: dict[str, sql.Expression],
    name: str,
    expression: sql.Expression,
    position: Position | None,
) -> None:
    """Add an alias; raise MultipleExpressionsForAlias if it has another expression already."""
    first = aliases.setdefault(name, expression)
    if first is not expression and first != expression:
        raise MultipleExpressionsForAlias(
            f"The alias {name!r} has two meanings.", hint="Rename one of them.", position=position
        )


def _alias_roots(select: sql.Select) -> Iterator[sql.Node]:
    """Yield the expressions of a SELECT that may define aliases, in the order of the clauses."""
    yield from (i.expression for i in select.with_items if i.expression is not None)
    yield from select.columns
    yield from select.distinct_on
    yield from (
        n for n in (select.prewhere, select.where, select.having, select.qualify) if n is not None
    )
    for clause in (select.group_by, select.order_by):
        if isinstance(clause, tuple):
            yield from clause
    if select.limit_by is not None and select.limit_by.by != "ALL":
        yield from select.limit_by.by


def may_hold_aliases(node: sql.Node) -> bool:
    """Return whether `aliases_of` searches below the node: not below a query, lambda, star or name."""
    return not isinstance(node, sql.Query | sql.Lambda | sql.Star | sql.Literal | sql.Identifier)


def with_expressions(branch: sql.Query, whole: sql.SetOperation) -> sql.Query:
    """Return a branch of a set operation with the expressions that the WITH in front of the whole names, except those
    whose names the branch's own WITH has. They are computed over the branch's rows, as in ClickHouse."""
    assert isinstance(branch, sql.Select | sql.SetOperation)
    own = {item.name for item in branch.with_items}
    items = tuple(
        item for item in whole.with_items if item.expression is not None and item.name not in own
    )
    return replace(branch, with_items=(*items, *branch.with_items)) if items else branch

"""Limits of a query's text and of its syntax tree: `max_query_size`, `max_ast_depth` and their kin."""

from __future__ import annotations

from collections.abc import Mapping

from olapdb.config import Settings
from olapdb.config.limits import SYNTAX_LIMITS
from olapdb.errors import BadArguments, SyntaxError, TooBigAst, TooDeepAst, TooDeepSubqueries
from olapdb.sql import nodes
from olapdb.sql.syntax_nodes import SyntaxNode
from olapdb.sql.syntax_tree import measure, syntax_tree
from olapdb.sql.trees import children


def check_syntax(query: nodes.Query, text: str, settings: Settings) -> None:
    """Raise an error for a query past a limit that the session or the query sets; the defaults, and 0,
    limit nothing."""
    limits = {name: settings.integer(name) for name in SYNTAX_LIMITS if name in settings.changed}
    limits = {name: limit for name, limit in limits.items() if limit}
    if not limits:
        return
    size_max = limits.get("max_query_size")
    if size_max is not None and len(text.encode("utf-8", "surrogateescape")) > size_max:
        raise SyntaxError(
            f"The query has more than max_query_size = {size_max} bytes.", hint="Raise the setting."
        )
    _check_tree(query, limits)
    depth_max = limits.get("max_subquery_depth")
    if depth_max is not None and _subquery_depth(query) > depth_max:
        raise TooDeepSubqueries(f"Too deep subqueries. Maximum: {depth_max}.")


def _check_tree(query: nodes.Query, limits: Mapping[str, int]) -> None:
    """Raise TooDeepAst, TooBigAst or BadArguments for a syntax tree past a limit."""
    if not limits.keys() & {"max_ast_depth", "max_ast_elements", "max_expanded_ast_elements"}:
        return
    tree = syntax_tree(query)
    levels, elements = measure(tree)
    if levels > limits.get("max_ast_depth", levels):
        raise TooDeepAst(f"AST is too deep. Maximum: {limits['max_ast_depth']}.")
    if elements > limits.get("max_ast_elements", elements):
        raise TooBigAst(f"AST is too big. Maximum: {limits['max_ast_elements']}.")
    expanded_max = limits.get("max_expanded_ast_elements")
    if expanded_max is not None and _expanded(tree) > expanded_max:
        raise BadArguments(f"Query tree is too big. Maximum: {expanded_max}.")


def _expanded(tree: SyntaxNode) -> int:
    """Return how many nodes the tree has once each alias is replaced with its expression."""
    named: dict[str, SyntaxNode] = {}
    pending = [tree]
    while pending:
        node = pending.pop()
        label, separator, alias = node.label.rpartition(" (alias ")
        if separator and not label.startswith(("TableIdentifier", "Subquery")):
            named[f"Identifier {alias.removesuffix(')')}"] = node
        pending.extend(node.children)
    sizes: dict[str, int] = {}

    def size(node: SyntaxNode) -> int:
        """Return the number of nodes of a subtree; an alias inside its own expression is a column."""
        known = named.get(node.label)
        if known is None:
            return 1 + sum(map(size, node.children))
        if node.label not in sizes:
            sizes[node.label] = 1
            sizes[node.label] = 1 + sum(map(size, known.children))
        return sizes[node.label]

    return size(tree)


def _subquery_depth(node: nodes.Node) -> int:
    """Return how deep queries lie in each other: 0 for one without subqueries."""
    is_subquery = isinstance(node, nodes.Subquery | nodes.SubqueryRelation | nodes.Exists)
    return int(is_subquery) + max((_subquery_depth(child) for child in children(node)), default=0)

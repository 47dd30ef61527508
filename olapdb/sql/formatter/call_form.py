"""Queries as EXPLAIN SYNTAX shows them: operators as calls, and what ClickHouse's analyzer writes out.

SELECT a + 1 FROM t JOIN u ON a = b     SELECT plus(a, 1)
                                        FROM t
                                        ALL INNER JOIN u ON equals(a, b)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from olapdb.sql import nodes
from olapdb.sql.formatter.lines import show_query
from olapdb.sql.formatter.shown import bracketed
from olapdb.sql.trees import rewrite, rewrite_children

TypeOf: TypeAlias = Callable[[nodes.Expression], str]
"""Gives the name of the type of an array or a tuple of constants."""

_MARK = "\ue002"
"""Ends the names of functions, so that no operator is written for them: a private character."""
_MARKED = re.compile(f"`?(\\w+){_MARK}`?")
_BREAK = re.compile(r"\n *")
_ONE_ROW = nodes.TableReference(nodes.TableName("one", "system"))
_MODES = {"EXCEPT": "ALL", "INTERSECT": "ALL"}


def show_calls(query: nodes.Query, type_of: TypeOf, *, one_line: bool = False) -> str:
    """Return the lines of a query, or one line, with operators as calls of functions."""
    typed = rewrite(_bare(query), lambda node: _typed_literals(node, type_of))
    text = _MARKED.sub(r"\1", _show(typed))
    if one_line:
        text = _BREAK.sub(" ", text).replace("( ", "(").replace(" )", ")")
    return text


def _typed_literals(node: nodes.Node, type_of: TypeOf) -> nodes.Node | None:
    """Return the node to show in place of a literal whose text does not tell its type: `_CAST([1], 'Array(UInt8)')`, or
    the call `array(x)` for an array that is not of constants alone; None for other nodes. The set of an IN stays."""

    def change(inner: nodes.Node) -> nodes.Node | None:
        """Change a node within."""
        return _typed_literals(inner, type_of)

    match node:
        case nodes.Select(grouping="SETS", group_by=tuple() as sets):
            others = rewrite_children(replace(node, group_by=()), change)
            return replace(others, group_by=tuple(rewrite_children(keys, change) for keys in sets))
        case nodes.In(right=nodes.TupleLiteral() as right) if _is_constant(right):
            return replace(node, left=rewrite(node.left, change))
        case nodes.Literal(value=None):
            return _typed(node, "Nullable(Nothing)")
        case nodes.ArrayLiteral(elements=()):
            return _typed(node, "Array(Nothing)")
        case nodes.TupleLiteral(elements=(_, _, *_)) | nodes.ArrayLiteral() if _is_constant(node):
            type_name = type_of(node)
            return _typed(_with_floats(node) if "Float" in type_name else node, type_name)
        case nodes.ArrayLiteral(elements=elements) | nodes.TupleLiteral(elements=elements):
            name = "array" if isinstance(node, nodes.ArrayLiteral) else "tuple"
            shown = tuple(rewrite(element, change) for element in elements)
            return nodes.Function(f"{name}{_MARK}", shown)
        case _:
            return None


def _is_constant(node: nodes.Expression) -> bool:
    """Return whether an expression is a literal: a constant, an array of such, or a tuple of such."""
    match node:
        case nodes.Literal():
            return True
        case nodes.ArrayLiteral(elements=elements) | nodes.TupleLiteral(elements=elements):
            return all(
                isinstance(element, nodes.Literal)
                or (type(element) is type(node) and _is_constant(element))
                for element in elements
            )
        case _:
            return False


def _with_floats(node: nodes.Expression) -> nodes.Expression:
    """Return an array of numbers with all of them as floats, `[1., 2.5]`; a tuple unchanged."""
    if not isinstance(node, nodes.ArrayLiteral):
        return node
    elements = (
        replace(element, value=float(element.value), text="")
        if isinstance(element, nodes.Literal) and type(element.value) is int
        else _with_floats(element)
        for element in node.elements
    )
    return replace(node, elements=tuple(elements))


def _bare(query: nodes.Query) -> nodes.Query:
    """Return the query without FORMAT."""
    if isinstance(query, nodes.Select | nodes.SetOperation):
        return replace(query, format=None)
    return query


def _show(query: nodes.Query) -> str:
    """Return the lines of a query; each branch of a set operation stands in parentheses."""
    if isinstance(query, nodes.SetOperation) and not query.with_items and not query.settings:
        mode = query.mode or _MODES.get(query.operator, "")
        operator = f"{query.operator} {mode}".rstrip()
        return f"{bracketed(_show(query.left))}\n{operator}\n{bracketed(_show(query.right))}"
    return show_query(rewrite_children(_with_source(query), _change))


def _with_source(query: nodes.Query) -> nodes.Query:
    """Return the query with `FROM system.one` where it has no FROM."""
    if isinstance(query, nodes.Select) and query.source is None:
        return replace(query, source=_ONE_ROW)
    return query


def _change(node: nodes.Node) -> nodes.Node | None:
    """Return the node to show in place of a node: operators and literals as calls; None to show it itself with its
    children changed."""
    match node:
        case nodes.Select():
            return rewrite_children(_with_source(node), _change)
        case nodes.Join():
            return rewrite_children(_with_strictness(node), _change)
        case nodes.Function():
            return rewrite_children(_call(node), _change)
        case nodes.In():
            right = node.right
            if isinstance(right, nodes.TupleLiteral) and len(right.elements) == 1:
                right = right.elements[0]
            return _calls(node.function, node.left, right)
        case nodes.Exists():
            return _calls("exists", nodes.Subquery(node.query))
        case nodes.Cast():
            value = nodes.Literal(node.literal) if node.literal else node.expression
            return _calls("CAST", value, nodes.Literal(node.written or str(node.type)))
        case nodes.Lambda():
            names = tuple(nodes.Identifier((name,)) for name in node.arguments)
            return _calls("lambda", nodes.Function(f"tuple{_MARK}", names), node.body)
        case nodes.TableReference():
            return node
        case nodes.Star():
            return replace(node, replaced=tuple(rewrite(item, _change) for item in node.replaced))
        case _:
            return None


def _call(node: nodes.Function) -> nodes.Function:
    """Return the call under a name for which no operator is written, DISTINCT and FILTER in it."""
    name, arguments = node.name, node.arguments
    if name.endswith(_MARK):
        return node
    if node.star:
        arguments = (nodes.Star(), *arguments)
    if node.distinct:
        name += "Distinct"
    if node.filter is not None:
        name, arguments = f"{name}If", (*arguments, node.filter)
    return replace(node, name=name + _MARK, arguments=arguments, distinct=False, filter=None)


def _calls(name: str, *arguments: nodes.Expression) -> nodes.Function:
    """Return a call of a function, whose arguments are as they are shown."""
    shown = tuple(rewrite(argument, _change) for argument in arguments)
    return nodes.Function(f"{name}{_MARK}", shown)


def _typed(value: nodes.Expression, type_name: str) -> nodes.Function:
    """Return `CAST(value, type)` as a call, for a literal whose text does not tell its type."""
    return nodes.Function(f"_CAST{_MARK}", (value, nodes.Literal(type_name)))


def _with_strictness(node: nodes.Join) -> nodes.Join:
    """Return the join with the strictness ALL where it has none."""
    if node.comma or node.strictness or node.kind in ("CROSS", "PASTE"):
        return node
    return replace(node, strictness="ALL")

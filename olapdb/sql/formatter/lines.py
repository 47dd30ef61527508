"""Queries as SQL on several lines, as SHOW CREATE and formatQuery print them."""

from __future__ import annotations

from collections.abc import Sequence

from olapdb.errors import InternalError
from olapdb.sql import nodes
from olapdb.sql.formatter import queries, shown
from olapdb.sql.formatter.shown import INDENT, bracketed, indented
from olapdb.sql.literals import backquote, quote_name, show_name, show_names


def show_query(query: nodes.Query) -> str:
    """Return the lines of a SELECT or set operation."""
    match query:
        case nodes.Select():
            return "\n".join(_select(query))
        case nodes.SetOperation():
            return "\n".join(_set_operation(query))
        case _:
            raise InternalError(f"No SQL is known for {type(query).__name__}.")


def show(node: nodes.Expression) -> str:
    """Return the text of an expression."""
    return shown.show_expression(node, show_query)


def in_list(word: str, items: Sequence[str]) -> str:
    """Return a clause: one item behind the word, several on a line each."""
    if len(items) == 1:
        return f"{word} {items[0]}"
    return word + "\n" + ",\n".join(map(indented, items))


def _with(items: tuple[nodes.WithItem, ...], recursive: bool) -> list[str]:
    """Return the WITH clause, whose items always are on lines of their own."""
    if not items:
        return []
    word = "WITH RECURSIVE" if recursive else "WITH"
    return [word + "\n" + ",\n".join(indented(_with_item(item)) for item in items)]


def _with_item(item: nodes.WithItem) -> str:
    """Return `name AS` with its query in parentheses, or `expression AS name`."""
    name = show_name(item.name)
    if item.query is not None:
        columns = f"({', '.join(map(show_name, item.column_aliases))})"
        word = "AS MATERIALIZED" if item.materialized else "AS"
        return (
            f"{name}{columns if item.column_aliases else ''} {word}\n"
            f"{bracketed(show_query(item.query))}"
        )
    assert item.expression is not None
    return f"{shown.show_operand(item.expression, show_query)} AS {name}"


# --- set operations


def _set_operation(node: nodes.SetOperation) -> list[str]:
    """Return the branches with the operators between them, each on a line of its own."""
    branches, operators = _chain(node)
    lines = _with(node.with_items, node.recursive)
    for at, branch in enumerate(branches):
        if at:
            lines.append(operators[at - 1])
        text = show_query(branch)
        alone = isinstance(branch, nodes.Select) and node.operator != "EXCEPT"
        own = isinstance(branch, nodes.Select | nodes.SetOperation) and (
            branch.with_items or branch.settings or branch.format
        )
        unlike = isinstance(branch, nodes.SetOperation) and _binds_alike(node, branch, at)
        lines.append(text if unlike or (alone and (not own or not at)) else bracketed(text))
    return [*lines, *queries.format_output(node.settings, node.format)]


def _chain(node: nodes.SetOperation) -> tuple[list[nodes.Query], list[str]]:
    """Return the branches of nested set operations of the same kind from left to right, and the operator between each
    two."""
    operator = f"{node.operator} {node.mode}".rstrip()
    left = node.left
    if (
        isinstance(left, nodes.SetOperation)
        and left.operator == node.operator
        and not (left.with_items or left.settings or left.format)
    ):
        branches, operators = _chain(left)
        return [*branches, node.right], [*operators, operator]
    return [left, node.right], [operator]


def _binds_alike(node: nodes.SetOperation, branch: nodes.SetOperation, at: int) -> bool:
    """Return whether a branch that is a set operation needs no parentheses: it is the left side of a
    UNION, or binds tighter."""
    if branch.with_items or branch.settings or branch.format:
        return False
    return node.operator == "UNION" and (
        branch.operator != "UNION" and (not at or branch.operator == "INTERSECT")
    )


# --- SELECT


def _select(node: nodes.Select) -> list[str]:
    """Return the clauses of a SELECT, each as text of one or more lines."""
    lines = _with(node.with_items, node.recursive)
    word = "SELECT DISTINCT" if node.distinct and not node.distinct_on else "SELECT"
    lines.append(in_list(word, [show(column) for column in node.columns]))
    if node.source is not None:
        lines += _relation("FROM", node.source)
    for word, condition in (("PREWHERE", node.prewhere), ("WHERE", node.where)):
        if condition is not None:
            lines.append(f"{word} {show(condition)}")
    lines += _grouping(node)
    if node.having is not None:
        lines.append(f"HAVING {show(node.having)}")
    if node.windows:
        windows = [
            f"{show_name(name)} AS ({shown.show_window(spec, show_query)})"
            for name, spec in node.windows
        ]
        lines.append(in_list("WINDOW", windows))
    if node.qualify is not None:
        lines.append(f"QUALIFY {show(node.qualify)}")
    lines += _ordering(node)
    lines += _limits(node)
    return [*lines, *queries.format_output(node.settings, node.format)]


def _grouping(node: nodes.Select) -> list[str]:
    """Return GROUP BY with its modifiers, which stand below the keys."""
    lines: list[str] = []
    keys = node.group_by
    if isinstance(keys, str):
        lines.append("GROUP BY ALL")
    elif keys is not None and node.grouping == "SETS":
        sets = (
            f"({shown.show_expressions(k.elements, show_query)})"
            if isinstance(k, nodes.TupleLiteral)
            else f"({show(k)})"
            for k in keys
        )
        inner = ",\n".join(indented(indented(text)) for text in sets)
        lines.append(f"GROUP BY\n{INDENT}GROUPING SETS (\n{inner})")
    elif keys is not None:
        lines.append(in_list("GROUP BY", [show(key) for key in keys]) if keys else "GROUP BY ()")
    if node.grouping in ("ROLLUP", "CUBE"):
        lines.append(f"{INDENT}WITH {node.grouping}")
    if node.with_totals:
        lines.append(f"{INDENT}WITH TOTALS")
    return lines


def _ordering(node: nodes.Select) -> list[str]:
    """Return ORDER BY and INTERPOLATE as lines, each only if there is one."""
    lines: list[str] = []
    if isinstance(node.order_by, nodes.OrderByAll):
        text = f"ORDER BY ALL {'DESC' if node.order_by.descending else 'ASC'}"
        if node.order_by.nulls_first is not None:
            text += f" NULLS {'FIRST' if node.order_by.nulls_first else 'LAST'}"
        lines.append(text)
    elif node.order_by:
        items = [shown.show_order_item(item, show_query) for item in node.order_by]
        lines.append(in_list("ORDER BY", items))
    if node.interpolate is not None:
        columns = ", ".join(
            backquote(name) + ("" if value is None else f" AS {show(value)}")
            for name, value in node.interpolate
        )
        lines.append(f"INTERPOLATE ({columns})" if columns else "INTERPOLATE")
    return lines


def _limits(node: nodes.Select) -> list[str]:
    """Return DISTINCT ON as LIMIT BY, LIMIT BY, LIMIT and OFFSET; an offset comes first."""
    lines: list[str] = []
    if node.distinct_on:
        lines.append(in_list("LIMIT 1 BY", [show(item) for item in node.distinct_on]))
    if node.limit_by is not None:
        word = f"LIMIT {_limit(node.limit_by.count, node.limit_by.offset)} BY"
        by = node.limit_by.by
        lines.append(f"{word} ALL" if by == "ALL" else in_list(word, [show(item) for item in by]))
    if node.limit is not None:
        lines.append(f"LIMIT {_limit(node.limit, node.offset)}")
        if node.with_ties:
            lines.append(" WITH TIES")
    elif node.offset is not None:
        lines.append(f"OFFSET {shown.show_operand(node.offset, show_query)}")
    return lines


def _limit(count: nodes.Expression, offset: nodes.Expression | None) -> str:
    """Return `count`, or `offset, count`."""
    text = shown.show_operand(count, show_query)
    return text if offset is None else f"{shown.show_operand(offset, show_query)}, {text}"


# --- FROM


def _relation(word: str, node: nodes.Relation) -> list[str]:
    """Return the lines of a source behind `word`, such as FROM or INNER JOIN."""
    match node:
        case nodes.Join():
            return _join(word, node)
        case nodes.ArrayJoin():
            array_join = "LEFT ARRAY JOIN" if node.left else "ARRAY JOIN"
            arrays = in_list(array_join, [show(array) for array in node.arrays])
            return [*_relation(word, node.source), arrays]
        case nodes.SubqueryRelation():
            columns = f"({', '.join(map(show_name, node.column_aliases))})"
            alias = _alias(node.alias) + (columns if node.column_aliases else "")
            if node.otherwise is not None:
                return [f"{word} {queries.format_relation(node)}"]
            return [word, bracketed(show_query(node.query)) + alias]
        case nodes.TableFunction():
            arguments = shown.show_expressions(node.arguments, show_query)
            bare = queries.format_relation(nodes.TableFunction(node.name, ()))
            return [f"{word} {bare[:-1]}{arguments}){_alias(node.alias)}"]
        case nodes.TableReference():
            lines = [f"{word} {_table(node.table)}{_alias(node.alias)}"]
            if node.final:
                lines.append("FINAL")
            if node.sample is not None:
                share = shown.show_ratio(node.sample, show_query)
                if node.sample_offset is not None:
                    share += f" OFFSET {shown.show_ratio(node.sample_offset, show_query)}"
                lines.append(f"SAMPLE {share}")
            return lines
        case nodes.ExplainRelation():
            return [f"{word} {queries.format_relation(node)}"]
        case _:
            raise InternalError(f"No SQL is known for {type(node).__name__}.")


def _table(table: nodes.TableName) -> str:
    """Return the name of a table, behind its database where it is named."""
    name = show_name(table.name)
    return name if table.database is None else f"{show_name(table.database)}.{name}"


def _alias(alias: str | None) -> str:
    """Return ` AS alias`, "" without one."""
    return "" if alias is None else show_names(f" AS {quote_name(alias)}")


def _join(word: str, node: nodes.Join) -> list[str]:
    """Return the left side, and the right one behind the words of the join or a comma."""
    left = _relation(word, node.left)
    if node.comma:
        first, *rest = _relation("", node.right)
        return [*left[:-1], f"{left[-1]},{first or ' '}", *rest]
    natural = "NATURAL" if node.natural else ""
    kind = "FULL OUTER" if node.kind == "FULL" else node.kind
    words = " ".join(w for w in (natural, node.strictness, kind, "JOIN") if w)
    if isinstance(node.right, nodes.Join | nodes.ArrayJoin):
        right = [f"{words}\n{bracketed(chr(10).join(_relation('', node.right)).strip())}"]
    else:
        right = _relation(words, node.right)
    if node.on is not None:
        right[-1] += f" ON {show(node.on)}"
    elif node.using:
        right[-1] += f" USING ({', '.join(map(show_name, node.using))})"
    return [*left, *right]

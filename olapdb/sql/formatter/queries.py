"""Queries as SQL, on one line."""

from __future__ import annotations

from collections.abc import Iterable

from olapdb.errors import InternalError, NotSupportedError
from olapdb.sql import nodes
from olapdb.sql.formatter import expressions
from olapdb.sql.literals import literal_text, quote_dotted_name, quote_name


def format_query(query: nodes.Query) -> str:
    """Return the SQL of a SELECT or set operation."""
    match query:
        case nodes.Select():
            return _format_select(query)
        case nodes.SetOperation():
            return _format_set_operation(query)
        case _:
            raise InternalError(f"No SQL is known for {type(query).__name__}.")


def format_table(table: nodes.TableName) -> str:
    """Return `table` or `database.table`, quoted where needed."""
    name = quote_name(table.name)
    return name if table.database is None else f"{quote_name(table.database)}.{name}"


def format_settings(settings: Iterable[nodes.Setting]) -> str:
    """Return `a = 1, b = 'x'`; a value of None is DEFAULT."""
    return ", ".join(
        f"{quote_dotted_name(setting.name)} = "
        f"{'DEFAULT' if setting.value is None else literal_text(setting.value)}"
        for setting in settings
    )


def format_output(settings: tuple[nodes.Setting, ...], output: str | None) -> list[str]:
    """Return the clauses SETTINGS and FORMAT, each only if there is one."""
    parts = [f"SETTINGS {format_settings(settings)}"] if settings else []
    if output is not None:
        parts.append(f"FORMAT {quote_name(output)}")
    return parts


def _format_with(items: tuple[nodes.WithItem, ...], recursive: bool) -> str:
    """Return the WITH clause of these items."""
    word = "WITH RECURSIVE" if recursive else "WITH"
    return f"{word} {', '.join(_format_with_item(item) for item in items)}"


def _format_with_item(item: nodes.WithItem) -> str:
    """Return `name AS (query)` for a query, `expression AS name` for an expression."""
    name = quote_name(item.name)
    if item.query is not None:
        columns = (
            f"({expressions.format_names(item.column_aliases)})" if item.column_aliases else ""
        )
        return f"{name}{columns} AS ({format_query(item.query)})"
    if item.expression is None:
        raise InternalError(f"WITH {item.name} has neither a query nor an expression.")
    return f"{expressions.format_operand(item.expression)} AS {name}"


# --- set operations


def _format_set_operation(node: nodes.SetOperation) -> str:
    """Return UNION, EXCEPT or INTERSECT, with the parentheses that its order needs."""
    operator = f"{node.operator} {node.mode}".rstrip()
    tight = node.operator == "INTERSECT"
    left = _format_branch(
        node.left,
        isinstance(node.left, nodes.SetOperation) and (tight and node.left.operator != "INTERSECT"),
    )
    right = _format_branch(
        node.right,
        isinstance(node.right, nodes.SetOperation)
        and (tight or node.right.operator != "INTERSECT"),
    )
    parts = [_format_with(node.with_items, node.recursive)] if node.with_items else []
    parts += [left, operator, right, *format_output(node.settings, node.format)]
    return " ".join(parts)


def _format_branch(query: nodes.Query, loose: bool) -> str:
    """Return an operand of a set operation, in parentheses if `loose`.

    `loose` says that its operator binds less. It has parentheses too if its own WITH, SETTINGS or
    FORMAT would otherwise belong to the whole."""
    text = format_query(query)
    own = isinstance(query, nodes.Select | nodes.SetOperation) and (
        query.with_items or query.settings or query.format
    )
    return f"({text})" if loose or own else text


# --- SELECT


def _format_select(node: nodes.Select) -> str:
    """Return a SELECT with all its clauses."""
    parts: list[str] = []
    if node.with_items:
        parts.append(_format_with(node.with_items, node.recursive))
    parts.append(_format_head(node))
    if node.source is not None:
        parts.append(f"FROM {format_relation(node.source)}")
    if node.prewhere is not None:
        parts.append(f"PREWHERE {expressions.format_expression(node.prewhere)}")
    if node.where is not None:
        parts.append(f"WHERE {expressions.format_expression(node.where)}")
    parts += _format_grouping(node)
    if node.having is not None:
        parts.append(f"HAVING {expressions.format_expression(node.having)}")
    if node.windows:
        windows = ", ".join(
            f"{quote_name(name)} AS ({expressions.format_window(spec)})"
            for name, spec in node.windows
        )
        parts.append(f"WINDOW {windows}")
    if node.qualify is not None:
        parts.append(f"QUALIFY {expressions.format_expression(node.qualify)}")
    if node.order_by:
        parts.append(f"ORDER BY {_format_order_by(node.order_by)}")
    if node.interpolate is not None:
        parts.append(_format_interpolate(node.interpolate))
    parts += _format_limits(node)
    parts += format_output(node.settings, node.format)
    return " ".join(parts)


def _format_head(node: nodes.Select) -> str:
    """Return SELECT with DISTINCT or DISTINCT ON and the columns."""
    text = "SELECT "
    if node.distinct_on:
        text += f"DISTINCT ON ({expressions.format_expressions(node.distinct_on)}) "
    elif node.distinct:
        text += "DISTINCT "
    return text + expressions.format_expressions(node.columns)


def _format_order_by(order_by: tuple[nodes.OrderItem, ...] | nodes.OrderByAll) -> str:
    """Return the items of ORDER BY, or ALL with its direction."""
    if not isinstance(order_by, nodes.OrderByAll):
        return expressions.format_order_items(order_by)
    text = "ALL DESC" if order_by.descending else "ALL"
    if order_by.nulls_first is None:
        return text
    return f"{text} NULLS {'FIRST' if order_by.nulls_first else 'LAST'}"


def _format_interpolate(items: tuple[tuple[str, nodes.Expression | None], ...]) -> str:
    """Return INTERPOLATE with its columns."""
    columns = ", ".join(
        quote_name(name)
        if expression is None
        else f"{quote_name(name)} AS {expressions.format_unaliased(expression)}"
        for name, expression in items
    )
    return f"INTERPOLATE ({columns})" if items else "INTERPOLATE"


def _format_grouping(node: nodes.Select) -> list[str]:
    """Return GROUP BY, its WITH ROLLUP or CUBE and WITH TOTALS, each only if there is one."""
    parts: list[str] = []
    keys = node.group_by
    if isinstance(keys, str):
        parts.append("GROUP BY ALL")
    elif keys is not None:
        parts.append(_format_group_by(node.grouping, keys))
    if isinstance(keys, str) and node.grouping in ("ROLLUP", "CUBE"):
        parts.append(f"WITH {node.grouping}")
    if node.with_totals:
        parts.append("WITH TOTALS")
    return parts


def _format_group_by(grouping: str, keys: tuple[nodes.Expression, ...]) -> str:
    """Return GROUP BY over keys; `grouping` is SETS, ROLLUP, CUBE or ""."""
    match grouping:
        case "SETS":
            sets = ", ".join(
                f"({expressions.format_expressions(k.elements)})"
                if isinstance(k, nodes.TupleLiteral)
                else f"({expressions.format_expression(k)})"
                for k in keys
            )
            return f"GROUP BY GROUPING SETS ({sets})"
        case "ROLLUP" | "CUBE":
            return f"GROUP BY {grouping}({expressions.format_expressions(keys)})"
        case _:
            return f"GROUP BY {expressions.format_expressions(keys) if keys else '()'}"


def _format_limits(node: nodes.Select) -> list[str]:
    """Return LIMIT BY, LIMIT and OFFSET, each only if there is one."""
    parts: list[str] = []
    if node.limit_by is not None:
        text = f"LIMIT {expressions.format_operand(node.limit_by.count)}"
        if node.limit_by.offset is not None:
            text += f" OFFSET {expressions.format_operand(node.limit_by.offset)}"
        by = node.limit_by.by
        parts.append(f"{text} BY {by if by == 'ALL' else expressions.format_expressions(by)}")
    if node.limit is not None:
        text = f"LIMIT {expressions.format_operand(node.limit)}"
        if node.offset is not None:
            text += f" OFFSET {expressions.format_operand(node.offset)}"
        parts.append(f"{text} WITH TIES" if node.with_ties else text)
    elif node.offset is not None:
        parts.append(f"OFFSET {expressions.format_operand(node.offset)}")
    return parts


# --- FROM


def format_relation(node: nodes.Relation) -> str:
    """Return the SQL of a source in FROM: table, function, subquery or join."""
    match node:
        case nodes.TableReference():
            return _format_table_reference(node)
        case nodes.TableFunction():
            name = ".".join(map(expressions.format_function_name, node.name.split(".")))
            return f"{name}({expressions.format_expressions(node.arguments)}){_format_alias_clause(node.alias)}"
        case nodes.SubqueryRelation():
            columns = (
                f"({expressions.format_names(node.column_aliases)})" if node.column_aliases else ""
            )
            inner = format_query(node.query)
            if node.otherwise is not None:
                inner = f"{inner} ELSE {format_relation(node.otherwise)}"
            called = "viewIfPermitted" if node.otherwise is not None else ""
            return f"{called}({inner}){_format_alias_clause(node.alias)}{columns}"
        case nodes.ExplainRelation():
            raise NotSupportedError(
                "A query that reads an EXPLAIN is not kept as a text.", position=node.position
            )
        case nodes.Join():
            return _format_join(node)
        case nodes.ArrayJoin():
            word = "LEFT ARRAY JOIN" if node.left else "ARRAY JOIN"
            return f"{format_relation(node.source)} {word} {expressions.format_expressions(node.arrays)}"
        case _:
            raise InternalError(f"No SQL is known for {type(node).__name__}.")


def _format_alias_clause(alias: str | None) -> str:
    """Return ` AS alias` with a space before it, "" if there is no alias."""
    return "" if alias is None else f" AS {quote_name(alias)}"


def _format_table_reference(node: nodes.TableReference) -> str:
    """Return a table in FROM with its alias, FINAL and SAMPLE."""
    text = format_table(node.table) + _format_alias_clause(node.alias)
    if node.final:
        text += " FINAL"
    if node.sample is not None:
        text += f" SAMPLE {expressions.format_operand(node.sample)}"
        if node.sample_offset is not None:
            text += f" OFFSET {expressions.format_operand(node.sample_offset)}"
    return text


def _format_join(node: nodes.Join) -> str:
    """Return a JOIN; a right side that is a join itself gets parentheses."""
    right = format_relation(node.right)
    if isinstance(node.right, nodes.Join | nodes.ArrayJoin):
        right = f"({right})"
    natural = "NATURAL" if node.natural else ""
    words = " ".join(word for word in (natural, node.strictness, node.kind, "JOIN") if word)
    text = f"{format_relation(node.left)} {words} {right}"
    if node.on is not None:
        text += f" ON {expressions.format_unaliased(node.on)}"
    elif node.using:
        text += f" USING ({expressions.format_names(node.using)})"
    return text

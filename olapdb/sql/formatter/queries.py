"""Queries as SQL, on one line."""

from __future__ import annotations

from collections.abc import Iterable

from olapdb.errors import InternalError
from olapdb.sql import nodes
from olapdb.sql.formatter.expressions import ExpressionFormatter
from olapdb.sql.literals import literal_text, quote_name


class QueryFormatter(ExpressionFormatter):
    """Writes SELECT and set operations."""

    def query(self, query: nodes.Query) -> str:
        match query:
            case nodes.Select():
                return self._select(query)
            case nodes.SetOperation():
                return self._set_operation(query)
            case _:
                raise InternalError(f"No SQL is known for {type(query).__name__}.")

    def table(self, table: nodes.TableName) -> str:
        name = quote_name(table.name)
        return name if table.database is None else f"{quote_name(table.database)}.{name}"

    def settings(self, settings: Iterable[nodes.Setting]) -> str:
        return ", ".join(
            f"{'.'.join(map(quote_name, s.name.split('.')))} = "
            f"{'DEFAULT' if s.value is None else literal_text(s.value)}"
            for s in settings
        )

    def _output(self, settings: tuple[nodes.Setting, ...], output: str | None) -> list[str]:
        parts = [f"SETTINGS {self.settings(settings)}"] if settings else []
        if output is not None:
            parts.append(f"FORMAT {quote_name(output)}")
        return parts

    def _with(self, items: tuple[nodes.WithItem, ...], recursive: bool) -> str:
        word = "WITH RECURSIVE" if recursive else "WITH"
        return f"{word} {', '.join(self._with_item(item) for item in items)}"

    def _with_item(self, item: nodes.WithItem) -> str:
        name = quote_name(item.name)
        if item.query is not None:
            columns = f"({self.names(item.column_aliases)})" if item.column_aliases else ""
            return f"{name}{columns} AS ({self.query(item.query)})"
        if item.expression is None:
            raise InternalError(f"WITH {item.name} has neither a query nor an expression.")
        return f"{self.operand(item.expression)} AS {name}"

    # --- set operations

    def _set_operation(self, node: nodes.SetOperation) -> str:
        operator = f"{node.operator} {node.mode}".rstrip()
        tight = node.operator == "INTERSECT"
        left = self._branch(
            node.left,
            isinstance(node.left, nodes.SetOperation)
            and (tight and node.left.operator != "INTERSECT"),
        )
        right = self._branch(
            node.right,
            isinstance(node.right, nodes.SetOperation)
            and (tight or node.right.operator != "INTERSECT"),
        )
        parts = [self._with(node.with_items, node.recursive)] if node.with_items else []
        parts += [left, operator, right, *self._output(node.settings, node.format)]
        return " ".join(parts)

    def _branch(self, query: nodes.Query, loose: bool) -> str:
        """In parentheses where its own WITH, SETTINGS or weaker operator would go astray."""
        text = self.query(query)
        own = isinstance(query, nodes.Select | nodes.SetOperation) and (
            query.with_items or query.settings or query.format
        )
        return f"({text})" if loose or own else text

    # --- SELECT

    def _select(self, node: nodes.Select) -> str:
        parts: list[str] = []
        if node.with_items:
            parts.append(self._with(node.with_items, node.recursive))
        parts.append(self._head(node))
        if node.source is not None:
            parts.append(f"FROM {self.relation(node.source)}")
        if node.prewhere is not None:
            parts.append(f"PREWHERE {self.expression(node.prewhere)}")
        if node.where is not None:
            parts.append(f"WHERE {self.expression(node.where)}")
        parts += self._grouping(node)
        if node.having is not None:
            parts.append(f"HAVING {self.expression(node.having)}")
        if node.windows:
            windows = ", ".join(
                f"{quote_name(name)} AS ({self.window(spec)})" for name, spec in node.windows
            )
            parts.append(f"WINDOW {windows}")
        if node.qualify is not None:
            parts.append(f"QUALIFY {self.expression(node.qualify)}")
        if node.order_by:
            parts.append(f"ORDER BY {self._order_by(node.order_by)}")
        parts += self._limits(node)
        parts += self._output(node.settings, node.format)
        return " ".join(parts)

    def _head(self, node: nodes.Select) -> str:
        text = "SELECT "
        if node.distinct_on:
            text += f"DISTINCT ON ({self.expressions(node.distinct_on)}) "
        elif node.distinct:
            text += "DISTINCT "
        return text + self.expressions(node.columns)

    def _order_by(self, order_by: tuple[nodes.OrderItem, ...] | str) -> str:
        return order_by if isinstance(order_by, str) else self.order_items(order_by)

    def _grouping(self, node: nodes.Select) -> list[str]:
        parts: list[str] = []
        keys = node.group_by
        if isinstance(keys, str):
            parts.append("GROUP BY ALL")
        elif keys is not None:
            parts.append(self._group_by(node.grouping, keys))
        if isinstance(keys, str) and node.grouping in ("ROLLUP", "CUBE"):
            parts.append(f"WITH {node.grouping}")
        if node.with_totals:
            parts.append("WITH TOTALS")
        return parts

    def _group_by(self, grouping: str, keys: tuple[nodes.Expression, ...]) -> str:
        match grouping:
            case "SETS":
                sets = ", ".join(
                    f"({self.expressions(k.elements)})"
                    if isinstance(k, nodes.TupleLiteral)
                    else f"({self.expression(k)})"
                    for k in keys
                )
                return f"GROUP BY GROUPING SETS ({sets})"
            case "ROLLUP" | "CUBE":
                return f"GROUP BY {grouping}({self.expressions(keys)})"
            case _:
                return f"GROUP BY {self.expressions(keys) if keys else '()'}"

    def _limits(self, node: nodes.Select) -> list[str]:
        parts: list[str] = []
        if node.limit_by is not None:
            text = f"LIMIT {self.operand(node.limit_by.count)}"
            if node.limit_by.offset is not None:
                text += f" OFFSET {self.operand(node.limit_by.offset)}"
            parts.append(f"{text} BY {self.expressions(node.limit_by.by)}")
        if node.limit is not None:
            text = f"LIMIT {self.operand(node.limit)}"
            if node.offset is not None:
                text += f" OFFSET {self.operand(node.offset)}"
            parts.append(f"{text} WITH TIES" if node.with_ties else text)
        elif node.offset is not None:
            parts.append(f"OFFSET {self.operand(node.offset)}")
        return parts

    # --- FROM

    def relation(self, node: nodes.Relation) -> str:
        match node:
            case nodes.TableReference():
                return self._table_reference(node)
            case nodes.TableFunction():
                name = ".".join(map(self.function_name, node.name.split(".")))
                return f"{name}({self.expressions(node.arguments)}){self._as(node.alias)}"
            case nodes.SubqueryRelation():
                columns = f"({self.names(node.column_aliases)})" if node.column_aliases else ""
                return f"({self.query(node.query)}){self._as(node.alias)}{columns}"
            case nodes.Join():
                return self._join(node)
            case nodes.ArrayJoin():
                word = "LEFT ARRAY JOIN" if node.left else "ARRAY JOIN"
                return f"{self.relation(node.source)} {word} {self.expressions(node.arrays)}"
            case _:
                raise InternalError(f"No SQL is known for {type(node).__name__}.")

    def _as(self, alias: str | None) -> str:
        return "" if alias is None else f" AS {quote_name(alias)}"

    def _table_reference(self, node: nodes.TableReference) -> str:
        text = self.table(node.table) + self._as(node.alias)
        if node.final:
            text += " FINAL"
        if node.sample is not None:
            text += f" SAMPLE {self.operand(node.sample)}"
            if node.sample_offset is not None:
                text += f" OFFSET {self.operand(node.sample_offset)}"
        return text

    def _join(self, node: nodes.Join) -> str:
        right = self.relation(node.right)
        if isinstance(node.right, nodes.Join | nodes.ArrayJoin):
            right = f"({right})"
        words = " ".join(word for word in (node.strictness, node.kind, "JOIN") if word)
        text = f"{self.relation(node.left)} {words} {right}"
        if node.on is not None:
            text += f" ON {self.unaliased(node.on)}"
        elif node.using:
            text += f" USING ({self.names(node.using)})"
        return text

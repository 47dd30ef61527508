"""RENAME COLUMN: the table with a column renamed, wherever its definition names it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from olapdb.bind.syntax import rewrite
from olapdb.engine.expiry import ttl_rules
from olapdb.ingest.deduplication_key import renamed_key
from olapdb.model.schema import SkipIndex, Table
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_expression

TreeT = TypeVar("TreeT", bound=nodes.Node)


def with_column_renamed(table: Table, old: str, new: str) -> Table:
    """Return the table with column `old` called `new`, also in defaults, constraints, indexes,
    settings and the TTL. Keys are not renamed: RENAME of a key column is refused."""

    def text(expression: str) -> str:
        """Return the expression with the column renamed."""
        return _renamed_in(expression, table, old, new)

    columns = tuple(
        replace(
            column,
            name=new if column.name == old else column.name,
            default=text(column.default) if column.default else "",
            ttl=text(column.ttl) if column.ttl else "",
        )
        for column in table.columns
    )
    return replace(
        table,
        columns=columns,
        constraints=tuple((name, text(condition)) for name, condition in table.constraints),
        indexes=tuple(_renamed_index(index, old, new, text) for index in table.indexes),
        settings=renamed_key(table.settings, old, new),
        ttl=", ".join(to_sql(_renamed_rule(rule, table, old, new)) for rule in ttl_rules(table)),
    )


def _renamed_in(text: str, table: Table, old: str, new: str) -> str:
    """Return the text of an expression with column `old` called `new`; the text itself if it does
    not read the column."""
    parsed = parse_expression(text)
    renamed = _with_column_renamed(parsed, table, old, new)
    return text if renamed == parsed else to_sql(renamed)


def _renamed_rule(rule: nodes.TtlItem, table: Table, old: str, new: str) -> nodes.TtlItem:
    """Return the rule with column `old` called `new`."""
    rule = _with_column_renamed(rule, table, old, new)
    values = tuple((new if name == old else name, value) for name, value in rule.assignments)
    return replace(rule, assignments=values)


def _with_column_renamed(tree: TreeT, table: Table, old: str, new: str) -> TreeT:
    """Return the tree with column `old` called `new`, also where the table's name qualifies it.
    Lambda arguments of the same name stay."""
    qualifiers = ((), (table.name,), (table.database, table.name))

    def change(hidden: frozenset[str]) -> Callable[[nodes.Node], nodes.Node | None]:
        """Return the function that rewrites a node below lambdas with the arguments `hidden`."""

        def renamed(node: nodes.Node) -> nodes.Node | None:
            """Return the node renamed, itself to keep it, None to rewrite its children."""
            match node:
                case nodes.Identifier(parts=(*qualifier, name)) if (
                    name == old and tuple(qualifier) in qualifiers
                ):
                    if not qualifier and name in hidden:
                        return node
                    return replace(node, parts=(*qualifier, new))
                case nodes.Lambda(arguments=arguments, body=body):
                    rewrite_node = change(hidden | set(arguments))
                    return replace(node, body=rewrite(body, rewrite_node))
                case _:
                    return None

        return renamed

    return rewrite(tree, change(frozenset()))


def _renamed_index(index: SkipIndex, old: str, new: str, text: Callable[[str], str]) -> SkipIndex:
    """Return the skip index with column `old` called `new`; `text` renames it in an expression."""
    names = (new if name == old else name for name in index.columns)
    renamed = replace(index, expression=text(index.expression), columns=tuple(sorted(names)))
    if not index.preprocessor:
        return renamed
    preprocessor = text(index.preprocessor)
    definition = index.definition.replace(
        f"preprocessor = {index.preprocessor}", f"preprocessor = {preprocessor}"
    )
    return replace(renamed, preprocessor=preprocessor, definition=definition)

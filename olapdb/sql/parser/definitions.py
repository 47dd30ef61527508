"""Columns, indexes, constraints, TTL and engines: what CREATE and ALTER share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from olapdb.errors import Position, SyntaxError
from olapdb.sql import nodes
from olapdb.sql.parser.keywords import words
from olapdb.sql.parser.queries import QueryParser
from olapdb.types import DataType, make_nullable

_DEFAULT_KINDS: dict[str, Literal["DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL"]] = {
    "DEFAULT": "DEFAULT",
    "MATERIALIZED": "MATERIALIZED",
    "ALIAS": "ALIAS",
    "EPHEMERAL": "EPHEMERAL",
}
_AFTER_NAME = words(
    "DEFAULT MATERIALIZED ALIAS EPHEMERAL COMMENT CODEC TTL NULL NOT PRIMARY FIRST AFTER REMOVE "
    "MODIFY RESET SETTINGS STATISTICS"
)
"""What may follow a column's name where its type is left out."""


@dataclass
class TableElements:
    """What stands in the parentheses of CREATE TABLE."""

    columns: list[nodes.ColumnDefinition] = field(default_factory=list)
    indexes: list[nodes.IndexDefinition] = field(default_factory=list)
    constraints: list[nodes.ConstraintDefinition] = field(default_factory=list)
    projections: list[nodes.ProjectionDefinition] = field(default_factory=list)
    primary_key: tuple[nodes.Expression, ...] | None = None


class DefinitionParser(QueryParser):
    """Definitions inside CREATE and ALTER."""

    # --- columns

    def column_definition(self) -> tuple[nodes.ColumnDefinition, bool]:
        """A column, and whether it said PRIMARY KEY."""
        position = self.position()
        name = self.dotted_name("a column")
        data_type: DataType | None = None
        nested: tuple[tuple[str, DataType], ...] = ()
        if self.token.text == "Nested" and self.key_after(1) == "(":
            nested = self._nested_elements()
        elif self.token.kind in ("word", "name") and self.keys[self.at] not in _AFTER_NAME:
            data_type = self.data_type()
        nullable = self.take("NULL")
        if not nullable and self.take("NOT"):
            self.expect("NULL")
        kind: Literal["", "DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL"] = ""
        default = None
        comment = ""
        codec: tuple[nodes.Expression, ...] = ()
        ttl = None
        primary = False
        while True:
            key = self.keys[self.at]
            if key in _DEFAULT_KINDS and not kind:
                self.advance()
                kind = _DEFAULT_KINDS[key]
                if kind != "EPHEMERAL" or not self._column_ends():
                    default = self.expression()
            elif key == "NULL":
                nullable = self.take("NULL")
            elif self.take("NOT", "NULL"):
                nullable = False
            elif key == "COMMENT":
                comment = self.comment_clause()
            elif key == "CODEC" and self.key_after(1) == "(":
                self.at += 2
                codec = self.aliased_list(")")
            elif key == "TTL":
                self.advance()
                ttl = self.expression()
            elif self.take("PRIMARY", "KEY"):
                primary = True
            else:
                self._refuse_column_clause(key)
                break
        if nested and (nullable or default is not None):
            raise self.refused(
                "NULL or a default of a whole Nested",
                f"Name each column: `{name}.{nested[0][0]}` …",
            )
        if nullable:
            data_type = None if data_type is None else make_nullable(data_type)
        column = nodes.ColumnDefinition(
            name, data_type, kind, default, codec, ttl, comment, nested, position=position
        )
        return column, primary

    def _nested_elements(self) -> tuple[tuple[str, DataType], ...]:
        """`Nested(a T, b U)`, at that word."""
        self.advance()
        self.expect("(")
        elements: list[tuple[str, DataType]] = []
        while True:
            name = self.identifier("a column of the Nested")
            if self.token.text == "Nested":
                raise self.refused("A Nested inside of a Nested", "Use Array(Tuple(…)) there.")
            elements.append((name, self.data_type()))
            if not self.take(","):
                break
        self.expect(")")
        return tuple(elements)

    def _column_ends(self) -> bool:
        key = self.keys[self.at]
        return self.ended or key in (",", ")", "COMMENT", "CODEC", "TTL", "FIRST", "AFTER")

    def _refuse_column_clause(self, key: str) -> None:
        if key in ("STATISTICS", "AUTO_INCREMENT", "COLLATE"):
            raise self.refused(f"{key} of a column", "Leave it out.")
        if key == "SETTINGS" and self.key_after(1) == "(":
            raise self.refused("SETTINGS of a column", "Leave them out.")

    # --- the list in parentheses

    def table_elements(self) -> TableElements:
        """From the opening parenthesis to behind the closing one."""
        self.expect("(")
        found = TableElements()
        primary: list[nodes.Expression] = []
        while True:
            if self.sees(")") and (found.columns or found.indexes):
                break  # a comma may trail
            self._table_element(found, primary)
            if not self.take(","):
                break
        self.expect(")")
        if primary:
            found.primary_key = tuple(primary)
        return found

    def _table_element(self, found: TableElements, primary: list[nodes.Expression]) -> None:
        key = self.keys[self.at]
        if key == "INDEX" and self._comes_before_comma("TYPE"):
            self.advance()
            found.indexes.append(self.index_definition())
        elif key == "CONSTRAINT" and self.key_after(2) in ("CHECK", "ASSUME"):
            self.advance()
            found.constraints.append(self.constraint_definition())
        elif key == "PROJECTION" and self.key_after(2) == "(":
            self.advance()
            found.projections.append(self._projection())
        elif key == "PRIMARY" and self.key_after(1) == "KEY":
            self.at += 2
            found.primary_key = self.key_expressions()
        elif key == "FOREIGN" and self.key_after(1) == "KEY":
            raise self.refused("FOREIGN KEY", "Leave it out; check with a join.")
        else:
            column, is_primary = self.column_definition()
            found.columns.extend(column.flattened())
            if is_primary:
                primary.append(nodes.Identifier((column.name,), position=column.position))

    def _comes_before_comma(self, word: str) -> bool:
        depth = 0
        for key in self.keys[self.at + 1 :]:
            if key in ("(", "["):
                depth += 1
            elif key in (")", "]"):
                depth -= 1
            if depth < 0 or (depth == 0 and key == ","):
                return False
            if depth == 0 and key == word:
                return True
        return False

    def index_definition(self) -> nodes.IndexDefinition:
        """`name expression TYPE type(…) [GRANULARITY n]`, after INDEX."""
        position = self.position()
        name = self.identifier("the name of an index")
        return self.index_body(name, self.expression(), position)

    def index_body(
        self, name: str, expression: nodes.Expression, position: Position
    ) -> nodes.IndexDefinition:
        self.expect("TYPE")
        start = self.position()
        type_name = self.identifier("a type of index")
        arguments: tuple[nodes.Expression, ...] = ()
        if self.take("("):
            arguments = self.aliased_list(")")
        granularity = self.integer() if self.take("GRANULARITY") else 1
        index_type = nodes.Function(type_name, arguments, position=start)
        return nodes.IndexDefinition(name, expression, index_type, granularity, position=position)

    def constraint_definition(self) -> nodes.ConstraintDefinition:
        """`name CHECK | ASSUME expression`, after CONSTRAINT."""
        position = self.position()
        name = self.identifier("the name of a constraint")
        kind = self.take_one_of("CHECK", "ASSUME")
        if not kind:
            raise self.expected("CHECK or ASSUME")
        return nodes.ConstraintDefinition(
            name, "CHECK" if kind == "CHECK" else "ASSUME", self.expression(), position=position
        )

    def _projection(self) -> nodes.ProjectionDefinition:
        position = self.position()
        name = self.identifier("the name of a projection")
        self.expect("(")
        query = self.query()
        if not isinstance(query, nodes.Select):
            raise SyntaxError("A projection is one SELECT.", position=position)
        self.expect(")")
        return nodes.ProjectionDefinition(name, query, position=position)

    # --- keys, TTL

    def key_expressions(self) -> tuple[nodes.Expression, ...]:
        """`a`, `(a, b)`, `tuple()`: the elements of a key."""
        return _elements(self.expression())

    def sorting_key(self) -> tuple[nodes.OrderItem, ...]:
        """`a`, `(a, b DESC)`, `tuple()`, after ORDER BY of a table."""
        start = self.at
        if self.take("("):
            items: list[nodes.OrderItem] = []
            while not self.take(")"):
                if items:
                    self.expect(",")
                items.append(self._sorting_item())
            if self.ended or self.token.kind == "word" or self.keys[self.at] in (")", ",", ";"):
                return tuple(items)
            self.at = start  # (a + b) * 2
        item = self._sorting_item()
        elements = _elements(item.expression)
        if elements != (item.expression,):
            return tuple(nodes.OrderItem(e, item.descending, position=e.position) for e in elements)
        return (item,)

    def _sorting_item(self) -> nodes.OrderItem:
        position = self.position()
        expression = self.expression()
        return nodes.OrderItem(expression, self._direction(), position=position)

    def ttl_items(self) -> tuple[nodes.TtlItem, ...]:
        """`d + INTERVAL 1 MONTH [DELETE] [WHERE …], …`, after TTL."""
        items = [self._ttl_item()]
        while self.take(","):
            items.append(self._ttl_item())
        return tuple(items)

    def _ttl_item(self) -> nodes.TtlItem:
        position = self.position()
        expression = self.expression()
        action: Literal["DELETE", "GROUP BY", "RECOMPRESS", "MOVE"] = "DELETE"
        detail = ""
        if self.take("DELETE"):
            pass
        elif self.sees("TO", "DISK") or self.sees("TO", "VOLUME"):
            action = "MOVE"
            self.advance()
            start = self.at
            self.advance()
            self.string("the name, quoted")
            detail = self.text_since(start)
        elif self.take("RECOMPRESS"):
            action = "RECOMPRESS"
            start = self.at
            self.expect("CODEC")
            self.skip_parentheses()
            detail = self.text_since(start)
        elif self.take("GROUP", "BY"):
            action = "GROUP BY"
            start = self.at
            self.expressions_without_set()
            detail = self.text_since(start)
        where = self.expression() if self.take("WHERE") else None
        return nodes.TtlItem(expression, action, where, detail, position=position)

    def expressions_without_set(self) -> None:
        """`k, d SET v = sum(v), w = max(w)` of TTL … GROUP BY."""
        self.expressions()
        if not self.take("SET"):
            return
        while True:
            self.dotted_name("a column")
            self.expect("=")
            self.expression()
            if not (self.sees(",") and self.key_after(2) == "="):
                return
            self.advance()

    # --- engine and what follows

    def engine_clause(self) -> nodes.EngineClause:
        """`[=] name[(…)]`, after ENGINE."""
        self.take("=")
        position = self.position()
        name = self.identifier("an engine")
        if self.take("("):
            return nodes.EngineClause(name, self.aliased_list(")"), True, position=position)
        return nodes.EngineClause(name, position=position)

    def storage_clause(
        self, primary_key: tuple[nodes.Expression, ...] | None = None, *, with_settings: bool = True
    ) -> tuple[nodes.StorageClause, str]:
        """The clauses in any order, and a COMMENT that stood among them."""
        engine: nodes.EngineClause | None = None
        order_by: tuple[nodes.OrderItem, ...] | None = None
        partition_by: nodes.Expression | None = None
        sample_by: nodes.Expression | None = None
        ttl: tuple[nodes.TtlItem, ...] = ()
        settings: tuple[nodes.Setting, ...] = ()
        comment = ""
        seen: set[str] = set()
        position = self.position()
        while True:
            clause = self.keys[self.at]
            if clause in ("PARTITION", "PRIMARY", "ORDER", "SAMPLE"):
                follows = "KEY" if clause == "PRIMARY" else "BY"
                if self.key_after(1) != follows:
                    raise self.expected(f"{clause} {follows}")
            elif clause not in ("ENGINE", "TTL", "COMMENT") and not (
                clause == "SETTINGS" and with_settings
            ):
                break
            if clause in seen:
                raise SyntaxError(f"{clause} stands twice.", position=self.position())
            seen.add(clause)
            self.at += 2 if clause in ("PARTITION", "PRIMARY", "ORDER", "SAMPLE") else 1
            match clause:
                case "ENGINE":
                    engine = self.engine_clause()
                case "PARTITION":
                    partition_by = self.expression()
                case "PRIMARY":
                    primary_key = self.key_expressions()
                case "ORDER":
                    order_by = self.sorting_key()
                case "SAMPLE":
                    sample_by = self.expression()
                case "TTL":
                    ttl = self.ttl_items()
                case "SETTINGS":
                    settings = self.settings()
                case _:
                    comment = self.string("the comment, quoted")
        return (
            nodes.StorageClause(
                engine,
                order_by,
                partition_by,
                primary_key,
                sample_by,
                ttl,
                settings,
                position=position,
            ),
            comment,
        )

    # --- partitions

    def partition_reference(self) -> nodes.PartitionReference:
        """`PARTITION expr`, `PARTITION ID 'x'`, `PARTITION ALL`, `PART 'name'`, at that word."""
        position = self.position()
        if self.take("PART"):
            return nodes.PartitionReference(
                "PART", None, self.string("a part's name, quoted"), position=position
            )
        self.expect("PARTITION")
        if self.keys[self.at] == "ID" and self.kind_after(1) == "string":
            self.advance()
            return nodes.PartitionReference("ID", None, self.string(), position=position)
        if self.keys[self.at] == "ALL":
            self.advance()
            return nodes.PartitionReference("ALL", position=position)
        return nodes.PartitionReference("VALUE", self.expression(), position=position)


def _elements(expression: nodes.Expression) -> tuple[nodes.Expression, ...]:
    if isinstance(expression, nodes.TupleLiteral):
        return expression.elements
    if isinstance(expression, nodes.Function) and expression.name == "tuple":
        return expression.arguments
    return (expression,)

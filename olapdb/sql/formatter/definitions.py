"""CREATE, INSERT … SELECT and EXPLAIN as SQL, on one line, as `SHOW CREATE` has it."""

from __future__ import annotations

from collections.abc import Iterable

from olapdb.sql import nodes
from olapdb.sql.formatter.queries import QueryFormatter
from olapdb.sql.literals import backquote, quote_name, quote_string


class DefinitionFormatter(QueryFormatter):
    """Writes CREATE statements."""

    def create_database(self, node: nodes.CreateDatabase) -> str:
        parts = ["CREATE DATABASE", *_if_not_exists(node.if_not_exists), quote_name(node.name)]
        if node.engine is not None:
            parts.append(f"ENGINE = {self.engine(node.engine)}")
        return " ".join([*parts, *_comment(node.comment)])

    def create_table(self, node: nodes.CreateTable) -> str:
        parts = ["CREATE OR REPLACE" if node.or_replace else "CREATE"]
        if node.temporary:
            parts.append("TEMPORARY")
        parts += ["TABLE", *_if_not_exists(node.if_not_exists), self.table(node.table)]
        if node.columns or node.indexes or node.constraints or node.projections:
            parts.append(self._elements(node))
        if node.like is not None:
            # storage after AS and before it mean the same; before it stands in both forms
            parts += self.storage(node.storage) + _comment(node.comment)
            parts.append(f"{'CLONE AS' if node.clone else 'AS'} {self.table(node.like)}")
            return " ".join(parts)
        parts += self.storage(node.storage) + _comment(node.comment)
        if node.query is not None:
            parts.append(f"{'EMPTY AS' if node.empty else 'AS'} {self.query(node.query)}")
        return " ".join(parts)

    def create_view(self, node: nodes.CreateView) -> str:
        parts = ["CREATE OR REPLACE VIEW" if node.or_replace else "CREATE VIEW"]
        parts += [*_if_not_exists(node.if_not_exists), self.table(node.name)]
        if node.columns:
            parts.append(f"({self.columns(node.columns)})")
        parts += [*_comment(node.comment), f"AS {self.query(node.query)}"]
        return " ".join(parts)

    def create_materialized_view(self, node: nodes.CreateMaterializedView) -> str:
        parts = ["CREATE OR REPLACE" if node.or_replace else "CREATE", "MATERIALIZED VIEW"]
        parts += [*_if_not_exists(node.if_not_exists), self.table(node.name)]
        if node.refresh is not None:
            parts.append(node.refresh)
        if node.target is not None:
            parts.append(f"TO {self.table(node.target)}")
        if node.columns:
            parts.append(f"({self.columns(node.columns)})")
        if node.storage is not None:
            parts += self.storage(node.storage)
        if node.settings:
            parts.append(f"SETTINGS {self.settings(node.settings)}")
        parts += _comment(node.comment)
        if node.populate:
            parts.append("POPULATE")
        return " ".join([*parts, f"AS {self.query(node.query)}"])

    def insert(self, node: nodes.Insert) -> str:
        parts = [f"INSERT INTO {self.table(node.table)}"]
        if node.columns is not None:
            parts.append(f"({self._dotted(node.columns)})")
        elif node.excluded:
            parts.append(f"(* EXCEPT ({self._dotted(node.excluded)}))")
        if node.settings:
            parts.append(f"SETTINGS {self.settings(node.settings)}")
        if node.query is not None:
            parts.append(self.query(node.query))
        elif node.values is not None:
            parts.append(f"VALUES{node.values.text}")
        elif node.format is not None:
            parts.append(f"FORMAT {node.format}")
            if node.data is not None:
                parts[-1] += f"\n{node.data}"
        return " ".join(parts)

    # --- parts of them

    def _dotted(self, names: Iterable[str]) -> str:
        return ", ".join(".".join(map(quote_name, name.split("."))) for name in names)

    def _elements(self, node: nodes.CreateTable) -> str:
        parts = [self.column(column) for column in node.columns]
        parts += [self._index(index) for index in node.indexes]
        parts += [self._projection(projection) for projection in node.projections]
        parts += [self._constraint(constraint) for constraint in node.constraints]
        return f"({', '.join(parts)})"

    def columns(self, columns: Iterable[nodes.ColumnDefinition]) -> str:
        return ", ".join(self.column(column) for column in columns)

    def column(self, column: nodes.ColumnDefinition) -> str:
        """Names of columns always stand in backquotes, as in ClickHouse."""
        parts = [".".join(map(backquote, column.name.split(".")))]
        if column.type is not None:
            parts.append(str(column.type))
        if column.default_kind:
            parts.append(column.default_kind)
            if column.default is not None:
                parts.append(self.expression(column.default))
        parts += _comment(column.comment)
        if column.codec:
            parts.append(f"CODEC({self.expressions(column.codec)})")
        if column.ttl is not None:
            parts.append(f"TTL {self.expression(column.ttl)}")
        return " ".join(parts)

    def _index(self, index: nodes.IndexDefinition) -> str:
        return (
            f"INDEX {quote_name(index.name)} {self.expression(index.expression)} "
            f"TYPE {self._index_type(index)} GRANULARITY {index.granularity}"
        )

    def _index_type(self, index: nodes.IndexDefinition) -> str:
        arguments = index.type.arguments
        return index.type.name + (f"({self.expressions(arguments)})" if arguments else "")

    def _projection(self, projection: nodes.ProjectionDefinition) -> str:
        return f"PROJECTION {quote_name(projection.name)} ({self.query(projection.query)})"

    def _constraint(self, constraint: nodes.ConstraintDefinition) -> str:
        condition = self.expression(constraint.expression)
        return f"CONSTRAINT {quote_name(constraint.name)} {constraint.kind} {condition}"

    def engine(self, engine: nodes.EngineClause) -> str:
        if not engine.has_arguments:
            return engine.name
        return f"{engine.name}({self.expressions(engine.arguments)})"

    def storage(self, storage: nodes.StorageClause) -> list[str]:
        """The clauses, in the order of SHOW CREATE."""
        parts: list[str] = []
        if storage.engine is not None:
            parts.append(f"ENGINE = {self.engine(storage.engine)}")
        if storage.partition_by is not None:
            parts.append(f"PARTITION BY {self.expression(storage.partition_by)}")
        if storage.primary_key is not None:
            parts.append(f"PRIMARY KEY {self._key(storage.primary_key)}")
        if storage.order_by is not None:
            parts.append(f"ORDER BY {self.sorting_key(storage.order_by)}")
        if storage.sample_by is not None:
            parts.append(f"SAMPLE BY {self.expression(storage.sample_by)}")
        if storage.ttl:
            parts.append(f"TTL {', '.join(self._ttl(item) for item in storage.ttl)}")
        if storage.settings:
            parts.append(f"SETTINGS {self.settings(storage.settings)}")
        return parts

    def _key(self, key: tuple[nodes.Expression, ...]) -> str:
        if not key:
            return "tuple()"
        return self.expression(key[0]) if len(key) == 1 else f"({self.expressions(key)})"

    def sorting_key(self, items: tuple[nodes.OrderItem, ...]) -> str:
        """`tuple()`, `a` or `(a, b DESC)`."""
        if not items:
            return "tuple()"
        texts = [self._sorting_item(item) for item in items]
        plain = len(items) == 1 and not items[0].descending
        return texts[0] if plain else f"({', '.join(texts)})"

    def _sorting_item(self, item: nodes.OrderItem) -> str:
        return self.expression(item.expression) + (" DESC" if item.descending else "")

    def _ttl(self, item: nodes.TtlItem) -> str:
        text = self.expression(item.expression)
        match item.action:
            case "MOVE":
                text += f" TO {item.detail}"
            case "DELETE":
                pass
            case _:
                text += f" {item.action} {item.detail}"
        return text if item.where is None else f"{text} WHERE {self.expression(item.where)}"


def _if_not_exists(wanted: bool) -> list[str]:
    return ["IF NOT EXISTS"] if wanted else []


def _comment(comment: str) -> list[str]:
    return [f"COMMENT {quote_string(comment)}"] if comment else []

"""The syntax tree of statements that define and change tables, as ClickHouse shows it in EXPLAIN AST.

Types have ClickHouse's own names: a synonym that was written, `INT`, is shown as `Int32`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from olapdb.sql import nodes
from olapdb.sql.syntax_literals import literal_label
from olapdb.sql.syntax_nodes import (
    SyntaxNode,
    identifiers,
    list_of,
    name_parts,
    table_names,
    titled,
)
from olapdb.sql.syntax_tree import called, expression_tree, expressions, query_tree, select_tree
from olapdb.types import DataType

_TOKEN = re.compile(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|.", re.DOTALL)
_CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
_NAMED = re.compile(r"(?:`[^`]*`|\w+) (.+)", re.DOTALL)


def create_table_tree(statement: nodes.CreateTable) -> SyntaxNode:
    """Return the tree of CREATE TABLE: its name, columns, storage, query and comment."""
    below = [*table_names(statement.table)]
    parts = [
        list_of([_column(column) for column in statement.columns]) if statement.columns else None,
        list_of([_index(index) for index in statement.indexes]) if statement.indexes else None,
        list_of([_constraint(c) for c in statement.constraints]) if statement.constraints else None,
        list_of([_projection(p) for p in statement.projections]) if statement.projections else None,
    ]
    if any(part is not None for part in parts):
        below.append(SyntaxNode("Columns definition", tuple(p for p in parts if p is not None)))
    storage = _storage(statement.storage)
    if storage:
        below.append(SyntaxNode("Storage definition", tuple(storage)))
    if statement.query is not None:
        below.append(query_tree(statement.query))
    if statement.function is not None:
        below.append(
            expression_tree(nodes.Function(statement.function.name, statement.function.arguments))
        )
    if statement.comment:
        below.append(_text(statement.comment))
    return SyntaxNode(f"CreateQuery {' '.join(name_parts(statement.table))}", tuple(below))


def create_materialized_view_tree(statement: nodes.CreateMaterializedView) -> SyntaxNode:
    """Return the tree of CREATE MATERIALIZED VIEW without columns: its query, and its inner table's
    storage."""
    storage = [] if statement.storage is None else _storage(statement.storage)
    inner = [SyntaxNode("Storage definition", tuple(storage))] if storage else []
    below = [*table_names(statement.name), query_tree(statement.query)]
    below.append(SyntaxNode("ViewTargets", tuple(inner)))
    if statement.comment:
        below.append(_text(statement.comment))
    return SyntaxNode(f"CreateQuery {' '.join(name_parts(statement.name))}", tuple(below))


def create_database_tree(statement: nodes.CreateDatabase) -> SyntaxNode:
    """Return the tree of CREATE DATABASE."""
    below = list(identifiers((statement.name,)))
    if statement.engine is not None:
        below.append(SyntaxNode("Storage definition", (_engine(statement.engine),)))
    if statement.comment:
        below.append(_text(statement.comment))
    return SyntaxNode(f"CreateQuery {statement.name} ", tuple(below))


def alter_tree(statement: nodes.Alter) -> SyntaxNode | None:
    """Return the tree of ALTER TABLE; None if one of its actions has no known tree."""
    commands = [_action(action) for action in statement.actions]
    known = [SyntaxNode(f"AlterCommand {c[0]}", tuple(c[1])) for c in commands if c is not None]
    if len(known) < len(commands):
        return None
    below = (list_of(known), *table_names(statement.table))
    return SyntaxNode(titled("AlterQuery", statement.table), below)


def update_tree(statement: nodes.Update) -> SyntaxNode | None:
    """Return the tree of UPDATE t SET …; None without a WHERE."""
    if statement.where is None:
        return None
    below = (
        *table_names(statement.table),
        expression_tree(statement.where),
        list_of(_assignments(statement.assignments)),
    )
    return SyntaxNode(titled("UpdateQuery", statement.table), below)


def optimize_tree(statement: nodes.Optimize) -> SyntaxNode | None:
    """Return the tree of OPTIMIZE TABLE; None for DEDUPLICATE, CLEANUP and DRY RUN."""
    if statement.deduplicate or statement.cleanup or statement.rehearsed:
        return None
    partition = [] if statement.partition is None else _partition(statement.partition)
    label = titled("OptimizeQuery", statement.table) + ("_final" if statement.final else "")
    return SyntaxNode(label, (*partition, *table_names(statement.table)))


# --- the actions of ALTER

_Command = tuple[str, Sequence[SyntaxNode]]


def _action(action: nodes.AlterAction) -> _Command | None:
    """Return (its kind, the nodes below it) of an action; None if its tree is not known."""
    match action:
        case nodes.AddColumn(column=column, after=after):
            return "ADD_COLUMN", [_column(column), *identifiers((after,) if after else ())]
        case nodes.DropColumn(name=name):
            return "DROP_COLUMN", identifiers((name,))
        case nodes.ClearColumn(name=name, partition=partition):
            where = _partition(partition) if partition is not None else []
            return "DROP_COLUMN", [*identifiers((name,)), *where]
        case nodes.RenameColumn(name=name, new_name=new):
            return "RENAME_COLUMN", identifiers((name, new))
        case nodes.ModifyColumn(column=column, after=after, elements=(), settings=()):
            return "MODIFY_COLUMN", [_column(column), *identifiers((after,) if after else ())]
        case nodes.CommentColumn(name=name, comment=comment):
            return "COMMENT_COLUMN", [*identifiers((name,)), _text(comment)]
        case nodes.ModifyComment(comment=comment):
            return "MODIFY_COMMENT", [_text(comment)]
        case nodes.ModifyQuery(query=query):
            return "MODIFY_QUERY", [query_tree(query)]
        case nodes.DeleteWhere(where=where, partition=partition):
            return "DELETE", [*_maybe_partition(partition), expression_tree(where)]
        case nodes.UpdateWhere(partition=partition):
            changed = list_of(_assignments(action.assignments))
            return "UPDATE", [*_maybe_partition(partition), expression_tree(action.where), changed]
        case _:
            return _table_action(action)


def _table_action(action: nodes.AlterAction) -> _Command | None:
    """Return (its kind, the nodes below it) of an action on partitions, keys, indexes and the like."""
    match action:
        case nodes.PartitionAction(action=("DROP" | "DETACH"), partition=partition):
            return "DROP_PARTITION", _partition(partition)
        case nodes.PartitionAction(action="ATTACH", table=None, partition=partition):
            return "ATTACH_PARTITION", _partition(partition)
        case nodes.PartitionAction(action=("ATTACH" | "REPLACE"), partition=partition):
            return "REPLACE_PARTITION", _partition(partition)
        case nodes.PartitionAction(action=("MOVE" | "MOVE TO DISK" | "MOVE TO VOLUME")):
            return "MOVE_PARTITION", _partition(action.partition)
        case nodes.ModifyOrderBy(order_by=keys):
            return "MODIFY_ORDER_BY", [_key([key.expression for key in keys])]
        case nodes.ModifySampleBy(expression=None):
            return "REMOVE_SAMPLE_BY", []
        case nodes.ModifySampleBy(expression=nodes.Expression() as expression):
            return "MODIFY_SAMPLE_BY", [expression_tree(expression)]
        case nodes.ModifyTtl(ttl=()):
            return "REMOVE_TTL", []
        case nodes.ModifyTtl(ttl=rules):
            return "MODIFY_TTL", [list_of([_ttl(rule) for rule in rules])]
        case nodes.MaterializeTtl(partition=partition):
            return "MATERIALIZE_TTL", _maybe_partition(partition)
        case nodes.ModifySetting(reset=()):
            return "MODIFY_SETTING", [SyntaxNode("Set")]
        case nodes.ModifySetting(reset=names):
            return "RESET_SETTING", [list_of(identifiers(names))]
        case nodes.IndexAction(index=nodes.IndexDefinition() as index, after=after):
            return "ADD_INDEX", [_index(index), *identifiers((after,) if after else ())]
        case nodes.ConstraintAction(constraint=nodes.ConstraintDefinition() as constraint):
            return "ADD_CONSTRAINT", [_constraint(constraint)]
        case nodes.ProjectionAction(projection=nodes.ProjectionDefinition() as projection):
            return "ADD_PROJECTION", [_projection(projection)]
        case nodes.IndexAction() | nodes.ProjectionAction():
            kind = "INDEX" if isinstance(action, nodes.IndexAction) else "PROJECTION"
            verb = "DROP" if action.action == "CLEAR" else action.action
            below = [*identifiers((action.name,)), *_maybe_partition(action.partition)]
            return f"{verb}_{kind}", below
        case nodes.ConstraintAction(name=name):
            return "DROP_CONSTRAINT", identifiers((name,))
        case nodes.MaterializeColumn(name=name, partition=partition):
            return "MATERIALIZE_COLUMN", [*identifiers((name,)), *_maybe_partition(partition)]
        case _:
            return None


def _assignments(pairs: Sequence[tuple[str, nodes.Expression]]) -> list[SyntaxNode]:
    """Return the nodes of `a = x, …`."""
    return [SyntaxNode(f"Assignment {name}", (expression_tree(value),)) for name, value in pairs]


def _maybe_partition(partition: nodes.PartitionReference | None) -> list[SyntaxNode]:
    """Return the node of IN PARTITION, if there is one."""
    return [] if partition is None else _partition(partition)


def _partition(partition: nodes.PartitionReference) -> list[SyntaxNode]:
    """Return the node of a partition, or of the name of a part; none for ALL."""
    if partition.value is not None:
        return [SyntaxNode("Partition", (expression_tree(partition.value),))]
    if partition.id is None:
        return [SyntaxNode("Partition")]
    name = _text(partition.id)
    if partition.kind == "PART":
        return [name]
    return [SyntaxNode(f"Partition_ID {name.label.replace(' ', '_')}", (name,))]


# --- the parts of a definition


def _column(column: nodes.ColumnDefinition) -> SyntaxNode:
    """Return the node of a column: its type, default, comment, codec and TTL."""
    below: list[SyntaxNode] = []
    if column.type is not None:
        below.append(type_tree(column.type))
    if column.default is not None:
        below.append(expression_tree(column.default))
    if column.comment:
        below.append(_text(column.comment))
    if column.codec:
        below.append(called("CODEC", [_codec(codec) for codec in column.codec]))
    if column.ttl is not None:
        below.append(expression_tree(column.ttl))
    return SyntaxNode(f"ColumnDeclaration {column.name}", tuple(below))


def _codec(codec: nodes.Expression) -> SyntaxNode:
    """Return the node of one codec: a function, with arguments or without."""
    if isinstance(codec, nodes.Identifier):
        return SyntaxNode(f"Function {codec.parts[-1]}")
    return expression_tree(codec)


def _index(index: nodes.IndexDefinition) -> SyntaxNode:
    """Return the node of an index: its expression and its type."""
    kind = index.type
    described = expression_tree(kind) if kind.arguments else SyntaxNode(f"Function {kind.name}")
    return SyntaxNode("Index", (expression_tree(index.expression), described))


def _constraint(constraint: nodes.ConstraintDefinition) -> SyntaxNode:
    """Return the node of a constraint."""
    return SyntaxNode("Constraint", (expression_tree(constraint.expression),))


def _projection(projection: nodes.ProjectionDefinition) -> SyntaxNode:
    """Return the node of a projection: the SELECT, whose one key of ORDER BY is no list."""
    query = projection.query
    selected = select_tree(query)
    below = list(selected.children)
    if isinstance(query.order_by, tuple) and query.order_by:
        below[-1] = _key([item.expression for item in query.order_by])
    return SyntaxNode("Projection", (SyntaxNode("ProjectionSelectQuery", tuple(below)),))


def _storage(storage: nodes.StorageClause) -> list[SyntaxNode]:
    """Return the nodes of the clauses behind the columns."""
    below: list[SyntaxNode] = []
    if storage.engine is not None:
        below.append(_engine(storage.engine))
    if storage.partition_by is not None:
        below.append(expression_tree(storage.partition_by))
    if storage.primary_key is not None:
        below.append(_key(storage.primary_key, storage.primary_form == "tuple("))
    if storage.order_by is not None:
        keys = [item.expression for item in storage.order_by]
        below.append(_key(keys, storage.order_form == "tuple("))
    if storage.sample_by is not None:
        below.append(expression_tree(storage.sample_by))
    if storage.ttl:
        below.append(list_of([_ttl(rule) for rule in storage.ttl]))
    if storage.settings:
        below.append(SyntaxNode("Set"))
    return below


def _engine(engine: nodes.EngineClause) -> SyntaxNode:
    """Return the node of an engine; one without parentheses has no list of arguments."""
    if not engine.has_arguments:
        return SyntaxNode(f"Function {engine.name}")
    return called(engine.name, [expression_tree(argument) for argument in engine.arguments])


def _key(keys: Sequence[nodes.Expression], is_call: bool = False) -> SyntaxNode:
    """Return the node of a key: of several expressions, of none, or of a call, a tuple."""
    if len(keys) == 1 and not is_call:
        return expression_tree(keys[0])
    return SyntaxNode("Function tuple", (expressions(keys),))


def _ttl(rule: nodes.TtlItem) -> SyntaxNode:
    """Return the node of a rule of TTL."""
    below = [expression_tree(rule.expression)]
    if rule.where is not None:
        below.append(expression_tree(rule.where))
    return SyntaxNode("TTLElement", tuple(below))


def _text(text: str) -> SyntaxNode:
    """Return the node of a text."""
    return SyntaxNode(f"Literal {literal_label(text, '')}")


def type_tree(data_type: DataType) -> SyntaxNode:
    """Return the node of a type and of the types in it."""
    return _type_of(str(data_type))


def _type_of(text: str) -> SyntaxNode:
    """Return the node of the type that a text names."""
    call = _CALL.fullmatch(text)
    if call is None:
        return SyntaxNode(f"DataType {text}")
    name, inside = call[1], _split(call[2])
    if name.startswith("Enum"):
        return SyntaxNode(f"EnumDataType {name}")
    if name in ("Tuple", "Nested"):
        elements = [_type_of(m[1] if (m := _NAMED.fullmatch(e)) else e) for e in inside]
        return SyntaxNode(
            f"{'TupleDataType' if name == 'Tuple' else 'DataType'} {name}", (list_of(elements),)
        )
    below = [_type_argument(argument) for argument in inside]
    if name.endswith("AggregateFunction"):
        below[0] = SyntaxNode(f"Identifier {inside[0]}")
    return SyntaxNode(f"DataType {name}", (list_of(below),))


def _type_argument(text: str) -> SyntaxNode:
    """Return the node of an argument of a type: a number, a text or a type."""
    if text.isdigit():
        return SyntaxNode(f"Literal UInt64_{text}")
    return SyntaxNode(f"Literal {text}") if text.startswith("'") else _type_of(text)


def _split(text: str) -> list[str]:
    """Return the parts between the commas that are in no parentheses."""
    parts, depth, start = [], 0, 0
    for token in _TOKEN.finditer(text + ","):
        depth += (token[0] == "(") - (token[0] == ")")
        if token[0] == "," and depth == 0:
            parts.append(text[start : token.start()].strip())
            start = token.end()
    return parts

"""CREATE and INSERT as SQL, on one line, in the form of `SHOW CREATE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from olapdb.sql import nodes
from olapdb.sql.formatter import expressions, queries
from olapdb.sql.literals import backquote, quote_dotted_name, quote_name, quote_string


def format_create_database(node: nodes.CreateDatabase) -> str:
    """Return `CREATE DATABASE …`."""
    parts = ["CREATE DATABASE", *_if_not_exists(node.if_not_exists), quote_name(node.name)]
    if node.engine is not None:
        parts.append(f"ENGINE = {format_engine(node.engine)}")
    return " ".join([*parts, *_comment(node.comment)])


def format_create_table(node: nodes.CreateTable) -> str:
    """Return `CREATE TABLE …`, with its query if it has one."""
    parts = ["CREATE OR REPLACE" if node.or_replace else "CREATE"]
    if node.must_exist:
        parts = ["REPLACE"]
    if node.temporary:
        parts.append("TEMPORARY")
    parts += ["TABLE", *_if_not_exists(node.if_not_exists), queries.format_table(node.table)]
    if node.columns or node.indexes or node.constraints or node.projections:
        parts.append(_format_elements(node))
    # storage before AS and behind it mean the same; every form takes it before
    parts += format_storage(node.storage) + _comment(node.comment)
    if node.like is not None:
        parts.append(f"{'CLONE AS' if node.clone else 'AS'} {queries.format_table(node.like)}")
    elif node.function is not None:
        parts.append(f"AS {queries.format_relation(node.function)}")
    elif node.query is not None:
        parts.append(f"{'EMPTY AS' if node.empty else 'AS'} {queries.format_query(node.query)}")
    return " ".join(parts)


def format_create_view(node: nodes.CreateView) -> str:
    """Return `CREATE VIEW …`."""
    parts = ["CREATE OR REPLACE" if node.or_replace else "CREATE"]
    parts += ["TEMPORARY VIEW" if node.temporary else "VIEW"]
    parts += [*_if_not_exists(node.if_not_exists), queries.format_table(node.name)]
    if node.columns:
        parts.append(f"({format_columns(node.columns)})")
    parts += [*_comment(node.comment), f"AS {queries.format_query(node.query)}"]
    return " ".join(parts)


def format_create_materialized_view(node: nodes.CreateMaterializedView) -> str:
    """Return `CREATE MATERIALIZED VIEW …`."""
    parts = ["CREATE OR REPLACE" if node.or_replace else "CREATE", "MATERIALIZED VIEW"]
    parts += [*_if_not_exists(node.if_not_exists), queries.format_table(node.name)]
    if node.refresh is not None:
        parts.append(format_refresh(node.refresh))
    if node.target is not None:
        parts.append(f"TO {queries.format_table(node.target)}")
    if node.columns:
        elements = [format_columns(node.columns), *map(format_constraint, node.constraints)]
        parts.append(f"({', '.join(elements)})")
    if node.storage is not None:
        parts += format_storage(node.storage)
    if node.settings:
        parts.append(f"SETTINGS {queries.format_settings(node.settings)}")
    parts += _comment(node.comment)
    parts += format_read_view(node)
    if node.populate:
        parts.append("POPULATE")
    if node.empty:
        parts.append("EMPTY")
    return " ".join([*parts, f"AS {queries.format_query(node.query)}"])


def format_read_view(node: nodes.CreateMaterializedView) -> list[str]:
    """Return `READ VIEW …` of a statement that creates a plain view, too; else nothing."""
    if node.read_view is None or node.read_query is None:
        return []
    query = queries.format_query(node.read_query)
    return [f"READ VIEW {queries.format_table(node.read_view)} AS ({query})"]


def format_refresh(node: nodes.RefreshClause) -> str:
    """Return `REFRESH EVERY …`."""
    parts = ["REFRESH", node.kind, _format_periods(node.period)]
    if node.offset:
        parts += ["OFFSET", _format_periods(node.offset)]
    if node.randomize:
        parts += ["RANDOMIZE FOR", _format_periods(node.randomize)]
    if node.depends_on:
        parts += ["DEPENDS ON", ", ".join(map(queries.format_table, node.depends_on))]
    if node.settings:
        parts += ["SETTINGS", queries.format_settings(node.settings)]
    if node.append:
        parts.append("APPEND")
    return " ".join(parts)


def _format_periods(periods: nodes.Periods) -> str:
    """Return `1 DAY 2 HOUR`."""
    return " ".join(f"{count} {unit}" for count, unit in periods)


def format_insert(node: nodes.Insert) -> str:
    """Return an INSERT with its query, its rows of VALUES, or the data of its FORMAT."""
    if node.function is not None:
        parts = [f"INSERT INTO FUNCTION {queries.format_relation(node.function)}"]
    else:
        parts = [f"INSERT INTO {queries.format_table(node.table)}"]
    if node.columns is not None:
        parts.append(f"({_format_dotted_names(node.columns)})")
    elif node.excluded:
        parts.append(f"(* EXCEPT ({_format_dotted_names(node.excluded)}))")
    if node.settings:
        parts.append(f"SETTINGS {queries.format_settings(node.settings)}")
    if node.replacing is not None:
        parts.append(_format_replacing(node.replacing))
    if node.query is not None:
        parts.append(queries.format_query(node.query))
    elif node.values is not None:
        parts.append(f"VALUES{node.values.text}")
    elif node.infile is not None:
        parts.append(f"FROM INFILE {quote_string(node.infile.path)}")
        if node.infile.compression:
            parts.append(f"COMPRESSION {quote_string(node.infile.compression)}")
        if node.format is not None:
            parts.append(f"FORMAT {node.format}")
    elif node.format is not None:
        parts.append(f"FORMAT {node.format}")
        if node.data is not None:
            parts[-1] += f"\n{node.data}"
    return " ".join(parts)


def format_outfile(node: nodes.OutFile) -> str:
    """Return `query INTO OUTFILE 'path' …`; SETTINGS and FORMAT stand behind it."""
    query, output = node.query, None
    settings: tuple[nodes.Setting, ...] = ()
    if isinstance(query, nodes.Select | nodes.SetOperation):
        settings, output = query.settings, query.format
        query = replace(query, settings=(), format=None)
    parts = [queries.format_query(query), f"INTO OUTFILE {quote_string(node.path)}"]
    if node.and_stdout:
        parts.append("AND STDOUT")
    if node.mode:
        parts.append(node.mode)
    if node.compression:
        parts.append(f"COMPRESSION {quote_string(node.compression)}")
    if node.level is not None:
        parts.append(f"LEVEL {node.level}")
    return " ".join([*parts, *queries.format_output(settings, output)])


# --- parts of them


def _format_replacing(node: nodes.Replacing) -> str:
    """Return the REPLACE clause of an INSERT."""
    parts = ["REPLACE"]
    if node.keys:
        parts.append(f"USING ({expressions.format_expressions(node.keys)})")
    if node.where is not None:
        parts.append(f"WHERE {expressions.format_expression(node.where)}")
    return " ".join(parts)


def _format_dotted_names(names: Iterable[str]) -> str:
    """Return names joined by commas; each keeps its dots, its parts are quoted."""
    return ", ".join(map(quote_dotted_name, names))


def _format_elements(node: nodes.CreateTable) -> str:
    """Return the columns, indexes, projections and constraints of a table in parentheses."""
    parts = [format_column(column) for column in node.columns]
    parts += [format_index(index) for index in node.indexes]
    parts += [_format_projection(projection) for projection in node.projections]
    parts += [format_constraint(constraint) for constraint in node.constraints]
    return f"({', '.join(parts)})"


def format_columns(columns: Iterable[nodes.ColumnDefinition]) -> str:
    """Return column definitions, separated by commas."""
    return ", ".join(format_column(column) for column in columns)


def format_column(column: nodes.ColumnDefinition) -> str:
    """Return a column definition; its name is always in backquotes, as in ClickHouse."""
    parts = [".".join(map(backquote, column.name.split(".")))]
    if column.type is not None:
        parts.append(str(column.type))
    if column.modifier:
        parts.append(column.modifier)
    if column.default_kind:
        parts.append(column.default_kind)
        if column.default is not None:
            parts.append(expressions.format_expression(column.default))
    parts += _comment(column.comment)
    if column.codec:
        parts.append(f"CODEC({expressions.format_expressions(column.codec)})")
    if column.statistics:
        parts.append(f"STATISTICS({', '.join(column.statistics)})")
    if column.ttl is not None:
        parts.append(f"TTL {expressions.format_expression(column.ttl)}")
    if column.settings:
        parts.append(f"SETTINGS ({queries.format_settings(column.settings)})")
    return " ".join(parts)


def format_index(index: nodes.IndexDefinition) -> str:
    """Return a skip index: `INDEX name expression TYPE type GRANULARITY n`."""
    return (
        f"INDEX {quote_name(index.name)} {expressions.format_expression(index.expression)} "
        f"TYPE {_format_index_type(index)} GRANULARITY {index.granularity}"
    )


def _format_index_type(index: nodes.IndexDefinition) -> str:
    """Return the type of a skip index with its arguments, if any."""
    arguments = index.type.arguments
    return index.type.name + (f"({expressions.format_expressions(arguments)})" if arguments else "")


def _format_projection(projection: nodes.ProjectionDefinition) -> str:
    """Return `PROJECTION name (query)`."""
    return f"PROJECTION {quote_name(projection.name)} ({queries.format_query(projection.query)})"


def format_constraint(constraint: nodes.ConstraintDefinition) -> str:
    """Return `CONSTRAINT name CHECK | ASSUME condition`."""
    condition = expressions.format_expression(constraint.expression)
    return f"CONSTRAINT {quote_name(constraint.name)} {constraint.kind} {condition}"


def format_engine(engine: nodes.EngineClause) -> str:
    """Return `MergeTree` or `MergeTree()`, as it was written."""
    if not engine.has_arguments:
        return engine.name
    words = 2 if engine.name == "Join" else 0
    texts = [
        ".".join(argument.parts)  # ANY, LEFT
        if at < words and isinstance(argument, nodes.Identifier)
        else expressions.format_expression(argument)
        for at, argument in enumerate(engine.arguments)
    ]
    return f"{engine.name}({', '.join(texts)})"


def format_storage(storage: nodes.StorageClause) -> list[str]:
    """Return the clauses of a storage, each as one text, in the order of SHOW CREATE."""
    parts: list[str] = []
    if storage.engine is not None:
        parts.append(f"ENGINE = {format_engine(storage.engine)}")
    if storage.partition_by is not None:
        parts.append(f"PARTITION BY {expressions.format_expression(storage.partition_by)}")
    if storage.primary_key is not None:
        parts.append(f"PRIMARY KEY {_format_key(storage.primary_key, storage.primary_form)}")
    if storage.order_by is not None:
        parts.append(f"ORDER BY {_format_sorting_key(storage.order_by, storage.order_form)}")
    if storage.sample_by is not None:
        parts.append(f"SAMPLE BY {expressions.format_expression(storage.sample_by)}")
    if storage.ttl:
        parts.append(f"TTL {', '.join(format_ttl(item) for item in storage.ttl)}")
    if storage.settings:
        parts.append(f"SETTINGS {queries.format_settings(storage.settings)}")
    return parts


def _format_key(key: tuple[nodes.Expression, ...], form: nodes.KeyForm) -> str:
    """Return a key in its form: `tuple()` if empty, one expression bare, several in parentheses."""
    if not key:
        return "tuple()"
    listed = expressions.format_expressions(key)
    if len(key) == 1 and not form:
        return listed
    return f"{form or '('}{listed})"


def _format_sorting_key(items: tuple[nodes.OrderItem, ...], form: nodes.KeyForm) -> str:
    """Return `tuple()`, `a` or `(a, b DESC)`, or the key in its form."""
    if not items:
        return "tuple()"
    listed = ", ".join(_format_sorting_item(item) for item in items)
    if len(items) == 1 and not items[0].descending and not form:
        return listed
    return f"{form or '('}{listed})"


def declared_key(storage: nodes.StorageClause) -> tuple[str, str]:
    """Return the texts of PRIMARY KEY and of ORDER BY as they were written, "" for one left out."""
    primary, order = storage.primary_key, storage.order_by
    return (
        "" if primary is None else _format_key(primary, storage.primary_form),
        "" if order is None else _format_sorting_key(order, storage.order_form),
    )


def _format_sorting_item(item: nodes.OrderItem) -> str:
    """Return an item of a sorting key: its expression, and DESC if it descends; ASC and NULLS are never written."""
    return expressions.format_expression(item.expression) + (" DESC" if item.descending else "")


def format_ttl(item: nodes.TtlItem) -> str:
    """Return an item of TTL with its action and WHERE; DELETE is not written out."""
    text = expressions.format_expression(item.expression)
    match item.action:
        case "MOVE":
            text += f" TO {item.detail}"
        case "GROUP BY":
            text += " GROUP BY " + ", ".join(map(expressions.format_expression, item.group_by))
            values = [
                f"{quote_dotted_name(name)} = {expressions.format_expression(value)}"
                for name, value in item.assignments
            ]
            text += f" SET {', '.join(values)}" if values else ""
        case "RECOMPRESS":
            text += f" RECOMPRESS {item.detail}"
    return (
        text if item.where is None else f"{text} WHERE {expressions.format_expression(item.where)}"
    )


def _if_not_exists(if_not_exists: bool) -> list[str]:
    """Return ["IF NOT EXISTS"] if the flag is set, else []."""
    return ["IF NOT EXISTS"] if if_not_exists else []


def _comment(comment: str) -> list[str]:
    """Return the COMMENT clause as a list of one, [] for an empty comment."""
    return [f"COMMENT {quote_string(comment)}"] if comment else []

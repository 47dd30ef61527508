"""system.dictionaries."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.bind import BindScope, bind_query
from olapdb.bind.dictionary_definition import LAYOUTS, definition_of, text_of
from olapdb.errors import Error
from olapdb.functions.base import Environment
from olapdb.model.schema import View
from olapdb.sql import nodes
from olapdb.sql.parser import parse_query
from olapdb.system.registry import Row, SystemContext, SystemTable, moment

_STATUSES = (
    "'NOT_LOADED' = 0, 'LOADED' = 1, 'FAILED' = 2, 'LOADING' = 3, 'FAILED_AND_RELOADING' = 4,"
    " 'LOADED_AND_RELOADING' = 5, 'NOT_EXIST' = 6"
)
_LOADED, _FAILED = 1, 2


def _dictionaries(context: SystemContext) -> Iterator[Row]:
    """List the dictionaries; one whose source does not bind has failed."""
    for item in context.objects():
        if not isinstance(item, View) or not item.dictionary:
            continue
        definition = definition_of(item)
        columns = definition.columns
        count = len(definition.keys)
        attributes = columns[count + len(definition.bounds) :]
        error = _error(item, context) if context.needs("status", "last_exception") else ""
        lifetime = definition.statement.lifetime or (0, 0)
        yield {
            "database": item.database,
            "name": item.name,
            "uuid": item.id,
            "status": _FAILED if error else _LOADED,
            "origin": item.id,
            "type": _type(definition.statement.layout),
            "key.names": [column.name for column, _ in columns[:count]],
            "key.types": [data_type.name for _, data_type in columns[:count]],
            "attribute.names": [column.name for column, _ in attributes],
            "attribute.types": [data_type.name for _, data_type in attributes],
            "hit_rate": 1.0,
            "source": _source(item),
            "lifetime_min": lifetime[0],
            "lifetime_max": lifetime[1],
            "loading_start_time": moment(item.created_ms),
            "last_successful_update_time": moment(item.created_ms),
            "error_count": int(bool(error)),
            "last_exception": error,
            "comment": item.comment,
        }


def _error(view: View, context: SystemContext) -> str:
    """Return the error that reading the dictionary raises before it reads rows, "" if none."""
    scope = BindScope(
        snapshot=context.snapshot,
        database=view.database,
        settings=context.settings,  # user_files_path, where a source is a file
        environment=Environment(database=view.database),
    )
    table = nodes.TableName(view.name, view.database)
    try:
        bind_query(nodes.Select((nodes.Star(),), source=nodes.TableReference(table)), scope)
    except Error as error:
        return str(error)
    return ""


def _type(layout: nodes.DictionaryClause | None) -> str:
    """Return the layout as system.dictionaries names it, such as "ComplexKeyHashed"; "" without a layout."""
    kind = layout.kind if layout is not None else ""
    plain = kind.removeprefix("COMPLEX_KEY_")
    return ("ComplexKey" if plain != kind else "") + LAYOUTS.get(plain, plain)


def _source(view: View) -> str:
    """Return the text of a dictionary's source: `ClickHouse: db.table`, `ClickHouse: query`, `File: path, format`, or
    "Null"."""
    query = parse_query(view.query)
    assert isinstance(query, nodes.Select)
    if isinstance(query.source, nodes.TableReference):
        return f"ClickHouse: {query.source.table}"
    source = definition_of(view).statement.source
    if source is not None and source.kind == "FILE":
        return f"File: {text_of(source.parameter('PATH'))}, {text_of(source.parameter('FORMAT'))}"
    text = text_of(source.parameter("QUERY")) if source is not None else ""
    return f"ClickHouse: {text}" if text else "Null"


TABLES = (
    SystemTable(
        "dictionaries",
        f"""database String, name String, uuid String, status Enum8({_STATUSES}), origin String,
        type String, key.names Array(String), key.types Array(String),
        attribute.names Array(String), attribute.types Array(String), bytes_allocated UInt64,
        hierarchical_index_bytes_allocated UInt64, query_count UInt64, hit_rate Float64,
        found_rate Float64, element_count UInt64, load_factor Float64, source String,
        lifetime_min UInt64, lifetime_max UInt64, loading_start_time DateTime,
        last_successful_update_time DateTime, error_count UInt64, loading_duration Float32,
        last_exception String, comment String""",
        _dictionaries,
        "The dictionaries; each has the rows of its source at the snapshot of the query",
    ),
)

"""CREATE DICTIONARY: a view over its source, whose rows functions find by their key."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from olapdb import errors, types
from olapdb.bind.dictionary_definition import (
    LAYOUTS,
    DictionaryDefinition,
    define_dictionary,
    open_end,
    text_of,
)
from olapdb.bind.dictionary_rows import find_dictionary
from olapdb.bind.qualify import qualify
from olapdb.bind.syntax import rewrite
from olapdb.execute.operators.dictionaries import KEPT
from olapdb.model.changes import PutObject
from olapdb.model.requirements import RevisionIs
from olapdb.model.schema import Column, SchemaObject, View
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_expression, parse_query
from olapdb.statements.context import StatementContext, refuse_dependents, unknown_table
from olapdb.statements.databases import require_own_database
from olapdb.statements.ddl.attempts import commit_schema_change, retry_on_conflict
from olapdb.statements.ddl.create import commit_object
from olapdb.statements.query import select

_OTHER_LAYOUTS = ("REGEXP_TREE",)
_POINTS = types.Array(types.Tuple((types.FLOAT64, types.FLOAT64)))
_POLYGONS = (_POINTS, types.Array(types.Array(_POINTS)))
"""The keys of LAYOUT(POLYGON): a ring, or several polygons."""
_COMPLEX = "COMPLEX_KEY_"
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_SOURCE_PARAMETERS = frozenset(
    [
        "TABLE",
        "DB",
        "DATABASE",
        "WHERE",
        "QUERY",
        "HOST",
        "PORT",
        "USER",
        "PASSWORD",
        "SECURE",
        "INVALIDATE_QUERY",
        "UPDATE_FIELD",
        "UPDATE_LAG",
    ]
)
_ATTRIBUTES = (
    types.Integer
    | types.Float
    | types.Decimal
    | types.Date
    | types.Date32
    | types.DateTime
    | types.DateTime64
    | types.UUID
    | types.IPv4
    | types.IPv6
    | types.String
    | types.Array
    | types.Map
)
_BOUNDS = (
    types.Integer | types.Float | types.Date | types.Date32 | types.DateTime | types.DateTime64
)


def create_dictionary(statement: nodes.CreateDictionary, context: StatementContext) -> Result:
    """Run CREATE DICTIONARY. The source need not exist yet, as in ClickHouse: what is wrong with it
    is raised where the dictionary is read."""
    return retry_on_conflict(context, partial(_create, statement, context))


def _create(
    statement: nodes.CreateDictionary, context: StatementContext, snapshot: Snapshot
) -> Result:
    """Make one attempt of `create_dictionary` at the snapshot."""
    database, name = context.locate(statement.name)
    require_own_database(database, snapshot, statement.name.position)
    existing = context.find(snapshot, statement.name)
    if existing is not None and statement.if_not_exists:
        return Result()
    if existing is None and statement.must_exist:
        raise unknown_table(snapshot, database, name).at(statement.name.position)
    _refuse_other(existing, statement)
    definition = _checked(statement)
    scope = replace(context, database=database).scope(snapshot)
    stored_scope = replace(scope, temporary=frozenset())  # no dictionary reads a session's tables
    query = qualify(_query_of(definition, database), stored_scope)
    named = nodes.TableName(name, database)
    stored = replace(
        statement, name=named, if_not_exists=False, or_replace=False, must_exist=False, comment=""
    )
    view = View(
        id=str(uuid.uuid4()),
        database=database,
        name=name,
        columns=tuple(
            Column(number, column.name, data_type)
            for number, (column, data_type) in enumerate(definition.columns, 1)
        ),
        query=to_sql(query),
        comment=statement.comment,
        created_ms=context.services.clock_ms(),
        dictionary=to_sql(stored),
    )
    if isinstance(existing, View) and _same(existing, view):
        changes = [PutObject(replace(existing, comment=view.comment))]
        requirements = [RevisionIs(existing.id, existing.revision)]
        commit_schema_change(context, "CREATE DICTIONARY", requirements, changes)
        return Result()
    if existing is not None:
        refuse_dependents(snapshot, existing, "replace")
    commit_object(view, existing, context, snapshot)
    return Result()


def _same(existing: View, view: View) -> bool:
    """Return whether two dictionaries have the same definition, but for the comment."""
    return (existing.query, existing.columns, existing.dictionary) == (
        view.query,
        view.columns,
        view.dictionary,
    )


def _refuse_other(existing: SchemaObject | None, statement: nodes.CreateDictionary) -> None:
    """Raise DictionaryAlreadyExists or TableAlreadyExists for a name that is taken and not to be
    replaced; OR REPLACE replaces dictionaries only."""
    if existing is None:
        return
    full_name = f"{existing.database}.{existing.name}"
    position = statement.name.position
    if isinstance(existing, View) and existing.dictionary:
        if not statement.or_replace:
            raise errors.DictionaryAlreadyExists(
                f"Dictionary {full_name} exists.",
                hint="Say IF NOT EXISTS or CREATE OR REPLACE, or DROP it first.",
                position=position,
            )
        return
    raise errors.TableAlreadyExists(
        f"{full_name} exists, and is no dictionary.",
        hint="Choose another name, or DROP it first.",
        position=position,
    )


# --- what may be defined


def _checked(statement: nodes.CreateDictionary) -> DictionaryDefinition:
    """Return the definition. Raise IncorrectDictionaryDefinition for a missing clause or unknown
    column, and the errors of the clauses."""
    for clause, value in (
        ("SOURCE", statement.source),
        ("PRIMARY KEY", statement.primary_key),
        ("LAYOUT", statement.layout),
    ):
        if not value:
            raise _incorrect(statement, f"A dictionary needs the clause {clause}.")
    names = [attribute.name for attribute in statement.attributes]
    for name in (*statement.primary_key, *(statement.range or ())):
        if name not in names:
            raise _incorrect(statement, f"The dictionary has no column {name}.")
    for name in names:
        if names.count(name) > 1:
            raise errors.DuplicateColumn(
                f"The dictionary has two columns {name}.", position=statement.position
            )
    definition = define_dictionary(statement)
    _check_layout(statement)
    _check_types(definition)
    _check_source(statement)
    return definition


def _incorrect(
    statement: nodes.CreateDictionary, message: str
) -> errors.IncorrectDictionaryDefinition:
    """Return the error for a definition that lacks something."""
    return errors.IncorrectDictionaryDefinition(message, position=statement.position)


def _check_layout(statement: nodes.CreateDictionary) -> None:
    """Raise UnknownElementInConfig for an unknown layout, NotSupportedError for one that means
    something else than rows by key, and BadArguments where LIFETIME or RANGE do not fit it."""
    assert statement.layout is not None
    written = statement.layout.kind
    kind = written.removeprefix(_COMPLEX)
    if kind in _OTHER_LAYOUTS:
        raise errors.NotSupportedError(
            f"LAYOUT({written}) is not supported.",
            hint=f"There are {', '.join(LAYOUTS)}, and these with COMPLEX_KEY_.",
            position=statement.layout.position,
        )
    if kind not in LAYOUTS or (written != kind and kind.startswith(("FLAT", "IP_TRIE", "POLYGON"))):
        raise errors.UnknownElementInConfig(
            f"Unknown layout of dictionaries: {written}.",
            hint=f"There are {', '.join(LAYOUTS)}, and these with COMPLEX_KEY_.",
            position=statement.layout.position,
        )
    if statement.layout.parameter("ACCESS_TO_KEY_FROM_ATTRIBUTES") is not None:
        raise errors.NotSupportedError(
            "ACCESS_TO_KEY_FROM_ATTRIBUTES is not supported.",
            hint="Give the dictionary a further attribute that is a copy of the key.",
            position=statement.layout.position,
        )
    opens = statement.layout.parameter("CONVERT_NULL_RANGE_BOUND_TO_OPEN")
    if isinstance(opens, nodes.Literal) and str(opens.value) == "0":
        raise errors.NotSupportedError(
            "convert_null_range_bound_to_open = 0 is not supported: a NULL bound leaves its range open.",
            hint="Leave these rows out: SOURCE(CLICKHOUSE(QUERY 'SELECT … WHERE a IS NOT NULL')).",
            position=statement.layout.position,
        )
    if kind == "DIRECT" and statement.lifetime is not None:
        raise errors.BadArguments(
            "LIFETIME has no meaning for LAYOUT(DIRECT).", position=statement.position
        )
    if statement.lifetime is not None and statement.lifetime[0] > statement.lifetime[1]:
        least, most = statement.lifetime
        raise errors.BadArguments(
            f"The MIN of LIFETIME, {least}, is above its MAX, {most}.", position=statement.position
        )
    if kind != "DIRECT" and statement.lifetime is None:
        raise _incorrect(statement, "A dictionary needs the clause LIFETIME.")
    if (kind == "RANGE_HASHED") != (statement.range is not None):
        raise errors.BadArguments(
            "RANGE(MIN … MAX …) and LAYOUT(RANGE_HASHED) need each other.",
            position=statement.position,
        )


def _check_types(definition: DictionaryDefinition) -> None:
    """Raise UnknownType for a column of a type that no dictionary can have. Raise BadArguments for
    a Nullable key, a key of LAYOUT(IP_TRIE) that is not one String, bounds of RANGE that are not of
    one numeric, date or time type, and a HIERARCHICAL attribute that is not UInt64."""
    if definition.has_polygons:
        _check_polygons(definition)
    keys = () if definition.has_polygons else definition.keys
    for attribute in (*keys, *definition.attributes):
        inner = attribute.type.inner if types.is_nullable(attribute.type) else attribute.type  # type: ignore[attr-defined]
        if not isinstance(inner, _ATTRIBUTES):
            raise errors.UnknownType(
                f"Unknown type {attribute.type} for dictionary attribute {attribute.name}.",
                hint="Use its plain form, such as String.",
                position=attribute.position,
            )
    for key in definition.keys:
        if types.is_nullable(key.type):
            raise errors.BadArguments(
                f"The key column {key.name} cannot be Nullable.", position=key.position
            )
    if definition.has_prefixes and [key.type for key in definition.keys] != [types.STRING]:
        raise errors.BadArguments(
            "The key of LAYOUT(IP_TRIE) is one column of type String: the text of a network.",
            position=definition.keys[0].position,
        )
    bounds = {types.plain(bound.type) for bound in definition.bounds}
    if len(bounds) > 1 or not all(isinstance(bound, _BOUNDS) for bound in bounds):
        raise errors.BadArguments(
            "The bounds of RANGE are of one type: an integer, a float, a date or a time.",
            position=definition.bounds[0].position,
        )
    parent = definition.parent
    if parent is not None and types.plain(parent.type) != types.UINT64:
        raise errors.BadArguments(
            f"The HIERARCHICAL attribute {parent.name} must be UInt64, as the key.",
            position=parent.position,
        )


def _check_polygons(definition: DictionaryDefinition) -> None:
    """Raise BadArguments unless the key of LAYOUT(POLYGON) is one column of rings or polygons."""
    first = definition.keys[0]
    count = len(definition.keys)
    if count > 1 or first.type not in _POLYGONS:
        raise errors.BadArguments(
            f"The key of LAYOUT(POLYGON) is one column of type {' or '.join(map(str, _POLYGONS))}, not "
            + (f"{count} columns." if count > 1 else f"{first.type}."),
            hint="Its points are tuples (x, y).",
            position=first.position,
        )


def _check_source(statement: nodes.CreateDictionary) -> None:
    """Raise NotSupportedError for another server, IncorrectDictionaryDefinition for a source
    without TABLE and QUERY, BadArguments for an unknown parameter."""
    source = statement.source
    assert source is not None
    if source.kind == "NULL":
        return
    if source.kind == "FILE":
        _check_file(statement, source)
        return
    for name, value in source.parameters:
        if name not in _SOURCE_PARAMETERS:
            raise errors.BadArguments(
                f"SOURCE(CLICKHOUSE) has no parameter {name}.", position=source.position
            )
        if name == "HOST" and text_of(value) not in _LOCAL_HOSTS:
            raise errors.NotSupportedError(
                f"A dictionary of another server ({text_of(value)}) is not supported.",
                hint="The tables of this warehouse are at HOST 'localhost', or leave it out.",
                position=source.position,
            )
    if (source.parameter("TABLE") is None) == (source.parameter("QUERY") is None):
        raise _incorrect(statement, "SOURCE(CLICKHOUSE) has either TABLE or QUERY.")


_FILE_PARAMETERS = ("PATH", "FORMAT")


def _check_file(statement: nodes.CreateDictionary, source: nodes.DictionaryClause) -> None:
    """Raise IncorrectDictionaryDefinition for SOURCE(FILE) without a path or a format, BadArguments for
    another parameter."""
    for name, _ in source.parameters:
        if name not in _FILE_PARAMETERS:
            raise errors.BadArguments(
                f"SOURCE(FILE) has no parameter {name}.", position=source.position
            )
    for name in _FILE_PARAMETERS:
        if source.parameter(name) is None:
            raise _incorrect(statement, f"SOURCE(FILE) needs the parameter {name}.")


# --- the query


def _query_of(definition: DictionaryDefinition, database: str) -> nodes.Query:
    """Return the query that gives the dictionary's columns in their order."""
    source = definition.statement.source
    assert source is not None
    where: nodes.Expression | None = None
    names = tuple(column.name for column, _ in definition.columns)
    if source.kind == "NULL":
        relation: nodes.Relation = nodes.TableFunction("numbers", (nodes.Literal(0, "0"),))
    elif source.kind == "FILE":
        relation = _file_relation(definition, source)
    elif source.parameter("QUERY") is not None:
        inner = parse_query(text_of(source.parameter("QUERY")))
        relation = nodes.SubqueryRelation(inner, "source", names)
    else:
        database = text_of(source.parameter("DB") or source.parameter("DATABASE")) or database
        table = nodes.TableName(text_of(source.parameter("TABLE")), database)
        relation = nodes.TableReference(table)
        if source.parameter("WHERE") is not None:
            where = parse_expression(text_of(source.parameter("WHERE")))
    columns = tuple(_columns(definition, by_name=source.kind != "NULL"))
    if source.parameter("QUERY") is not None:
        _refuse_expressions(definition)
    return nodes.Select(columns=columns, source=relation, where=where)


def _file_relation(
    definition: DictionaryDefinition, source: nodes.DictionaryClause
) -> nodes.TableFunction:
    """Return the call of file() that reads the dictionary's columns, which data without names have in this
    order: key, range, attributes."""
    structure = ", ".join(
        f"{types.quote_identifier(column.name)} {data_type}"
        for column, data_type in definition.columns
    )
    texts = (text_of(source.parameter("PATH")), text_of(source.parameter("FORMAT")), structure)
    return nodes.TableFunction("file", tuple(map(nodes.Literal, texts)))


def _refuse_expressions(definition: DictionaryDefinition) -> None:
    """Raise BadArguments for EXPRESSION beside QUERY, which computes all columns itself."""
    for column, _ in definition.columns:
        if column.expression is not None:
            raise errors.BadArguments(
                f"EXPRESSION of {column.name} has no effect beside QUERY.",
                hint="Write it into the QUERY.",
                position=column.position,
            )


_ADDRESS = "arrayElement(splitByChar('/', p), 1)"
_LENGTH = (
    f"if(isIPv4String({_ADDRESS}), 96, 0) + if(position(p, '/') = 0,"
    f" if(isIPv4String({_ADDRESS}), 32, 128), toUInt8(arrayElement(splitByChar('/', p), 2)))"
)
_NETWORK = (
    f"concat(toString(tupleElement(IPv6CIDRToRange(toIPv6({_ADDRESS}), toUInt8({_LENGTH})), 1)),"
    f" '/', toString({_LENGTH}))"
)


def network_text(prefix: nodes.Expression) -> nodes.Expression:
    """Return the expression of the text under which LAYOUT(IP_TRIE) keeps the network `prefix`:
    `::ffff:10.0.0.0/104` for `10.1.2.3/8`. Texts of equal networks are equal. The expression fails
    for a text that is no network."""
    column = nodes.Identifier(("p",))

    def replaced(node: nodes.Node) -> nodes.Node | None:
        """Return the prefix in place of `p`; None for other nodes."""
        return prefix if node == column else None

    network = rewrite(parse_expression(_NETWORK), replaced)
    assert isinstance(network, nodes.Expression)
    return network


def _columns(definition: DictionaryDefinition, *, by_name: bool) -> Iterator[nodes.Expression]:
    """Yield the expressions of the dictionary's columns, in order: over the source's columns, or,
    unless `by_name`, the default value of each type. A NULL bound of a range becomes the lowest or
    highest value of its type, so that the range is open."""
    open_ends = dict(zip([b.name for b in definition.bounds], ("lowest", "highest"), strict=False))
    for column, data_type in definition.columns:
        value: nodes.Expression = nodes.Identifier((column.name,))
        if not by_name:
            no_values = nodes.Cast(nodes.ArrayLiteral(()), types.Array(data_type))
            value = nodes.Function("arrayElement", (no_values, nodes.Literal(1, "1")))
        elif column.expression is not None:
            value = column.expression
        if definition.has_prefixes and column is definition.keys[0]:
            value = network_text(value)
        if column.name in open_ends:
            end = open_end(data_type, highest=open_ends[column.name] == "highest")
            value = nodes.Function("ifNull", (value, end))
        named = isinstance(value, nodes.Identifier) and value.parts == (column.name,)
        yield value if named else nodes.Alias(value, column.name)


# --- SYSTEM RELOAD


def reload(statement: nodes.System, context: StatementContext) -> Result:
    """Run SYSTEM RELOAD DICTIONARY d or DICTIONARIES: read their sources anew.

    It changes no result, since each query has the source's rows of its snapshot. Raises
    BadArguments for an unknown dictionary, and what reading the source raises."""
    KEPT.clear()
    if statement.table is None:
        return Result()
    database, name = context.locate(statement.table)
    find_dictionary(context.snapshot(), database, name)
    rows = nodes.TableReference(nodes.TableName(name, database))
    count = nodes.Select((nodes.Function("count"),), source=rows)
    select.run_query(count, context).close()
    return Result()

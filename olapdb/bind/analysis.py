"""Questions that views and caches ask about the syntax tree of a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from olapdb.bind.contracts import in_reading_order
from olapdb.bind.names import bare_function, name_of_set, with_set
from olapdb.bind.qualify import qualify
from olapdb.bind.syntax import children, rewrite, rewrite_children, walk
from olapdb.functions import registry
from olapdb.sql import nodes as sql
from olapdb.sql.dictionary_functions import dictionary_name, dictionary_table, with_dictionary
from olapdb.sql.view_parameters import called_name

__all__ = [
    "is_deterministic",
    "nondeterministic_functions",
    "qualify",
    "referenced_tables",
    "rename_tables",
    "source_of",
]

Name: TypeAlias = tuple[str, str]
"""(database, table)."""

_NONDETERMINISTIC = frozenset(
    name.lower()
    for name in (
        "now",
        "now64",
        "nowInBlock",
        "current_timestamp",
        "localtime",
        "localtimestamp",
        "today",
        "curdate",
        "current_date",
        "yesterday",
        "UTCTimestamp",
        "UTC_timestamp",
        "rand",
        "rand32",
        "rand64",
        "randConstant",
        "randCanonical",
        "randUniform",
        "randNormal",
        "randBernoulli",
        "randExponential",
        "randLogNormal",
        "randChiSquared",
        "randStudentT",
        "randFisherF",
        "randBinomial",
        "randNegativeBinomial",
        "randPoisson",
        "randomString",
        "randomFixedString",
        "randomPrintableASCII",
        "randomStringUTF8",
        "generateUUIDv4",
        "generateUUIDv7",
        "generateSnowflakeID",
        "generateULID",
        "fuzzBits",
        "nowInBlock64",
        "UTCTimestamp",
        "rowNumberInAllBlocks",
        "rowNumberInBlock",
        "blockNumber",
        "queryID",
        "initialQueryID",
        "uptime",
        "currentUser",
        "hostName",
        "arrayShuffle",
        "arrayPartialShuffle",
        "arrayRandomSample",
        "currentQueryID",
        "initialQueryStartTime",
        "tid",
    )
)


def nondeterministic_functions(query: sql.Query) -> tuple[str, ...]:
    """Return the functions of the query that depend on more than the rows: now(), rand(), …

    The names are as written, each once, in the order of the text."""
    names = (n.name for n in walk(query) if isinstance(n, sql.Function))
    return tuple(dict.fromkeys(n for n in names if _canonical_name(n) in _NONDETERMINISTIC))


def _canonical_name(name: str) -> str:
    """Return the main name of a function, for which it may be an alias, in lower case; return an
    unknown name itself in lower case."""
    function = registry.find(name)
    return (name if function is None else function.name).lower()


def is_deterministic(query: sql.Query) -> bool:
    """Return whether the query gives the same rows for the same data.

    A name that may mean the function without its parentheses, CURRENT_DATE, counts as a call."""
    if nondeterministic_functions(query):
        return False
    names = (n.parts[0] for n in walk(query) if isinstance(n, sql.Identifier) and not n.parts[1:])
    return not any(bare_function(name) in ("now", "today") for name in names)


# --- tables


def referenced_tables(query: sql.Query) -> tuple[sql.TableName, ...]:
    """Return the tables and views that the query names, each once, in the order of the text.

    A name of WITH is not listed, but the tables that its query names are."""
    tables: dict[tuple[str | None, str], sql.TableName] = {}
    for name in _tables(query, frozenset()):
        tables.setdefault((name.database, name.name), name)
    return tuple(tables.values())


def _tables(node: sql.Node, common: frozenset[str]) -> Iterator[sql.TableName]:
    """Yield the tables that a node reads, repeats included; `common` are WITH names, not tables.

    A name right of IN is a table only if it is written with its database."""
    match node:
        case sql.TableReference(table=table):
            if table.database is not None or table.name not in common:
                yield table
        case sql.In() | sql.Function() if (table_of_set := _table_of_set(node)) is not None:
            yield from _tables(node.left if isinstance(node, sql.In) else node.arguments[0], common)
            yield table_of_set
        case sql.TableFunction() if (reference := dictionary_table(node)) is not None:
            yield reference.table
        case sql.TableFunction() if (view := called_name(node)) is not None:
            yield view
            for argument in node.arguments:
                yield from _tables(argument, common)
        case sql.Function() if (dictionary := dictionary_name(node)) is not None:
            yield dictionary
            for argument in node.arguments[1:]:
                yield from _tables(argument, common)
        case sql.Select() | sql.SetOperation():
            for item in in_reading_order(node.with_items):
                itself = {item.name} if node.recursive and item.query is not None else frozenset()
                yield from _tables(item, common | itself)
                if item.query is not None:
                    common |= {item.name}
            for child in children(node):
                if not isinstance(child, sql.WithItem):
                    yield from _tables(child, common)
        case _:
            for child in children(node):
                yield from _tables(child, common)


def _table_of_set(node: sql.In | sql.Function) -> sql.TableName | None:
    """Return the table whose rows are the set of IN or in(x, set), which is written with its database; None for other
    sets."""
    name = name_of_set(node, bare=True)
    if name is None or len(name.parts) != 2:
        return None
    return sql.TableName(name.parts[1], name.parts[0], position=name.position)


def source_of(query: sql.Query) -> sql.TableName | None:
    """Return the table whose INSERTs fire a view of this query, None where it reads no table.

    It is the leftmost table of the first FROM, through subqueries and WITH."""
    return _source_of_query(query, {})


def _source_of_query(query: sql.Query, common: Mapping[str, sql.Query]) -> sql.TableName | None:
    """Return the leftmost table of a query, None if its leftmost source is no table.

    `common` maps the names of enclosing WITH clauses to their queries."""
    assert isinstance(query, sql.Select | sql.SetOperation)
    for item in in_reading_order(query.with_items):
        if item.query is not None:
            outer = {name: q for name, q in common.items() if name != item.name}
            common = {**outer, item.name: _with_outer(item.query, outer)}
    if isinstance(query, sql.SetOperation):
        return _source_of_query(query.left, common)
    return None if query.source is None else _leftmost(query.source, common)


def _with_outer(query: sql.Query, common: Mapping[str, sql.Query]) -> sql.Query:
    """Return the query with these WITH names in front of its own."""
    assert isinstance(query, sql.Select | sql.SetOperation)
    items = tuple(sql.WithItem(name, q) for name, q in common.items())
    return replace(query, with_items=(*items, *query.with_items)) if items else query


def _leftmost(source: sql.Relation, common: Mapping[str, sql.Query]) -> sql.TableName | None:
    """Return the leftmost table of a FROM, through subqueries, WITH names and joins.

    None if the leftmost source is something else, such as a table function."""
    match source:
        case sql.TableReference(table=table):
            if table.database is None and table.name in common:
                inner = common[table.name]
                return _source_of_query(inner, {})
            return table
        case sql.SubqueryRelation(query=query):
            return _source_of_query(query, common)
        case sql.Join(left=left):
            return _leftmost(left, common)
        case sql.ArrayJoin(source=inner_source):
            return _leftmost(inner_source, common)
        case _:
            return None


def rename_tables(query: sql.Query, renamed: Mapping[Name, Name]) -> sql.Query:
    """Return the query with tables renamed. Names without a database stay (`qualify` first).

    Columns written as `t.x` keep their meaning: the old name stays as an alias.
    """
    qualifiers = _qualifiers_used(query)

    def change(node: sql.Node) -> sql.Node | None:
        """Return a node that names a renamed table or dictionary with the new name; None for all other nodes."""
        match node:
            case sql.TableReference(table=table) if (new := _new_name(table, renamed)) is not None:
                moved = replace(table, database=new[0], name=new[1])
                needs_alias = node.alias is None and new[1] != table.name
                alias = table.name if needs_alias and table.name in qualifiers else node.alias
                return rewrite_children(replace(node, table=moved, alias=alias), change)
            case sql.In() | sql.Function() if (named := _table_of_set(node)) is not None and (
                new := _new_name(named, renamed)
            ) is not None:
                return with_set(node, sql.Identifier(new, position=named.position), change)
            case sql.TableFunction() if (view := called_name(node)) is not None and (
                new := _new_name(view, renamed)
            ) is not None:
                return rewrite_children(replace(node, name=".".join(new)), change)
            case sql.Function() if (new := _new_dictionary(node, renamed)) is not None:
                return rewrite_children(with_dictionary(node, *new), change)
            case sql.Identifier(parts=(database, name, *rest)) if rest and (
                (database, name) in renamed
            ):
                return replace(node, parts=(name, *rest))
            case sql.Star(qualifier=(database, name)) if (database, name) in renamed:
                return rewrite_children(replace(node, qualifier=(name,)), change)
            case _:
                return None

    return rewrite(query, change)


def _new_name(table: sql.TableName, renamed: Mapping[Name, Name]) -> Name | None:
    """Return the new (database, name) of a table, None if it is not renamed or has no database."""
    return None if table.database is None else renamed.get((table.database, table.name))


def _new_dictionary(node: sql.Function, renamed: Mapping[Name, Name]) -> Name | None:
    """Return the new (database, name) of the dictionary that a call reads, None for another call
    and a dictionary that is not renamed."""
    name = dictionary_name(node)
    return None if name is None else _new_name(name, renamed)


def _qualifiers_used(query: sql.Query) -> frozenset[str]:
    """Return the table names that the query writes before a dot."""
    used: set[str] = set()
    for node in walk(query):
        if isinstance(node, sql.Identifier):
            used |= set(node.parts[:-1])
        elif isinstance(node, sql.Star):
            used |= set(node.qualifier)
    return frozenset(used)

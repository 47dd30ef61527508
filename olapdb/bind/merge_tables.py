"""`FROM merge('regexp')` and tables of the engine Merge: a UNION ALL of what has such a name."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, functions
from olapdb.bind.contracts import BindContext, BoundQuery, QueryBinder
from olapdb.model.schema import Column, MaterializedView, SchemaObject, Table, View
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.sql import nodes as sql
from olapdb.sql.merge_tables import MergedTables
from olapdb.types import STRING, LowCardinality

_SOURCE = "_merged"
"""The alias of each table in its branch."""
NAMES = ("_database", "_table")
"""The columns that say where a row is from."""
MOMENTARY = "tables by a regular expression, which another table may match tomorrow"


def bind_merged(
    queries: QueryBinder,
    merged: MergedTables,
    source: sql.TableReference | None,
    context: BindContext,
    view: View | None = None,
) -> BoundQuery:
    """Return the rows of all tables that match; the last two columns are `NAMES`.

    `view` is the Merge table that declares the columns, and is no table of its own; without one the
    columns are those of all tables, of their common types. FINAL and SAMPLE of `source` are each
    table's. Raises CannotExtractTableStructure where nothing matches and nothing is declared."""
    queries.momentary = MOMENTARY
    snapshot = queries.scope.snapshot
    items = [o for o in _matching(snapshot, merged) if view is None or o.id != view.id]
    declared = merged_columns(snapshot, merged) if view is None else view.columns
    branches = [_branch(item, snapshot, declared, source) for item in items]
    query: sql.Query = branches[0] if branches else _no_rows(declared)
    for branch in branches[1:]:
        query = sql.SetOperation(query, branch, "UNION", "ALL")
    own = BindContext(context.database, queries.scope.settings, depth=context.depth)
    return queries.subquery(query, own)


def merged_columns(snapshot: Snapshot, merged: MergedTables) -> tuple[Column, ...]:
    """Return the columns of all tables that match, in the order in which they are first met.

    Raises CannotExtractTableStructure if there are none, NoCommonType for types that differ."""
    by_name: dict[str, list[Column]] = {}
    for item in _matching(snapshot, merged):
        for column in _columns_of(item, snapshot):
            if column.default_kind in ("", "DEFAULT"):
                by_name.setdefault(column.name, []).append(column)
    if not by_name:
        raise errors.CannotExtractTableStructure(
            f"No table of {merged.database} matches {merged.tables!r}.",
            hint="Give the regular expression of existing tables, or the columns of the Merge table.",
        )
    return tuple(
        Column(number, name, functions.common_type([c.type for c in columns]))
        for number, (name, columns) in enumerate(by_name.items(), 1)
    )


def _matching(snapshot: Snapshot, merged: MergedTables) -> list[SchemaObject]:
    """Return the tables and views that match, by database and name.

    Raises UnknownDatabase, CannotCompileRegexp."""
    databases = sorted(snapshot.databases)
    if merged.matches:
        databases = _matches(databases, merged.database)
    elif merged.database in databases:
        databases = [merged.database]
    else:
        raise errors.UnknownDatabase(f"There is no database {merged.database!r}.")
    items: list[SchemaObject] = []
    for database in databases:
        named = {o.name: o for o in snapshot.objects(database) if _can_be_read(o)}
        items += [named[name] for name in _matches(sorted(named), merged.tables)]
    return items


def _can_be_read(item: SchemaObject) -> bool:
    """Return whether the object can be read by its name: not if it needs values of parameters."""
    return not (isinstance(item, View) and item.has_parameters)


def _matches(names: Sequence[str], pattern: str) -> list[str]:
    """Return the names in which the regular expression is found. Raises CannotCompileRegexp."""
    try:
        mask = pc.match_substring_regex(pa.array(names, pa.string()), pattern)
    except pa.ArrowInvalid as error:
        raise errors.CannotCompileRegexp(
            f"{pattern!r} is no regular expression: {error}.", hint="The syntax is that of RE2."
        ) from error
    return [name for name, is_match in zip(names, mask.to_pylist(), strict=True) if is_match]


def _columns_of(item: SchemaObject, snapshot: Snapshot) -> tuple[Column, ...]:
    """Return the columns that a query can read of the object."""
    columns = item.columns
    if isinstance(item, MaterializedView) and not columns:
        columns = target_of(snapshot, item, None).columns
    return tuple(c for c in columns if c.default_kind != "EPHEMERAL")


def _branch(
    item: SchemaObject,
    snapshot: Snapshot,
    declared: Sequence[Column],
    source: sql.TableReference | None,
) -> sql.Select:
    """Return the SELECT of one table: the declared columns that it has, defaults for the others."""
    own = {column.name for column in _columns_of(item, snapshot)}
    columns = [
        _named(sql.Cast(sql.Identifier((_SOURCE, c.name)), c.type), c.name)
        if c.name in own
        else _default(c)
        for c in declared
    ]
    columns += [_name(item.database, NAMES[0]), _name(item.name, NAMES[1])]
    name = sql.TableName(item.name, item.database)
    combines = isinstance(item, Table) and item.engine.combines
    merges = isinstance(item, View) and item.engine_name in ("Merge", "Alias", "Buffer")
    table = sql.TableReference(
        name,
        _SOURCE,
        final=source is not None and source.final and (combines or merges),
        sample=None if source is None else source.sample,
        sample_offset=None if source is None else source.sample_offset,
    )
    return sql.Select(tuple(columns), source=table)


def _no_rows(declared: Sequence[Column]) -> sql.Select:
    """Return a SELECT without rows of the declared columns."""
    columns = [*map(_default, declared), _name("", NAMES[0]), _name("", NAMES[1])]
    return sql.Select(tuple(columns), where=sql.Literal(0, "0"))


def _default(column: Column) -> sql.Expression:
    """Return the default value of the column's type, by the column's name."""
    value = sql.Function("defaultValueOfTypeName", (sql.Literal(column.type.name),))
    return _named(value, column.name)


def _name(text: str, column: str) -> sql.Expression:
    """Return a name as a column."""
    return _named(sql.Cast(sql.Literal(text), LowCardinality(STRING)), column)


def _named(expression: sql.Expression, name: str) -> sql.Alias:
    """Return the expression as a column of this name."""
    return sql.Alias(expression, name)

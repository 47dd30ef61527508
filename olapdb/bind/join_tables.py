"""Tables of ENGINE = Join(strictness, kind, keys…): their rows, the joins that may use them, and
joinGet.

    CREATE TABLE j (id UInt32, val UInt8) ENGINE = Join(ANY, LEFT, id)
    SELECT * FROM t ANY LEFT JOIN j USING (id)
    SELECT joinGet('j', 'val', id) FROM t

The table stores every row. Unless its strictness is ALL or its kind RIGHT, reading it gives the
first row of each key; a row whose key has a NULL is never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from olapdb import errors, functions, types
from olapdb.bind import constants
from olapdb.bind.contracts import BindContext, Binder, QueryBinder
from olapdb.bind.names import suggestion
from olapdb.bind.relation import Relation
from olapdb.bind.subqueries import with_types
from olapdb.config import Settings
from olapdb.model.schema import Column, Table
from olapdb.plan import nodes as plan
from olapdb.plan.conditions import all_of, scalar_call
from olapdb.plan.expressions import (
    Constant,
    DictionaryCall,
    DictionaryShape,
    Expression,
    ScalarSubquery,
    columns_of,
)
from olapdb.sql import nodes as sql
from olapdb.sql.dictionary_functions import dictionary_name

JOIN_GET = ("joinGet", "joinGetOrNull")

# --- the rows


def join_keys(table: Table) -> tuple[str, ...]:
    """Return the names of the key columns of a table of the engine Join."""
    return table.engine.arguments[2:]


def join_rows(table: Table, relation: Relation) -> Relation:
    """Return the rows of a table of the engine Join that a query sees: those without a NULL key, and one for each key
    unless the table is ALL, RIGHT or FULL. `relation` has the stored rows."""
    strictness, kind = table.engine.arguments[:2]
    columns = [column for name in join_keys(table) if (column := relation.find((name,)))]
    keys = tuple(column.use() for column in columns)
    nullable = [key for key in keys if types.is_nullable(key.type)]

    def build() -> plan.Node:
        """Return the plan of the rows that a query sees."""
        node = relation.build()
        if nullable:
            node = plan.Filter(node, all_of([scalar_call("isNotNull", (key,)) for key in nullable]))
        if strictness == "ALL" or kind in ("RIGHT", "FULL"):
            return node
        return plan.LimitBy(node, 1, 0, keys)

    return Relation(relation.columns, build, relation.label, relation.joins)


# --- joins


def joined_table(queries: QueryBinder, source: sql.Relation, context: BindContext) -> Table | None:
    """Return the table of the engine Join that the right side of a join names, None for others."""
    if not isinstance(source, sql.TableReference):
        return None
    name = source.table
    if name.database is None and name.name in context.tables:
        return None
    item = queries.scope.snapshot.find(name.database or context.database, name.name)
    return item if isinstance(item, Table) and item.engine.name == "Join" else None


def check_join(
    table: Table, join: sql.Join, right: Relation, keys: Sequence[Expression], nulls: bool
) -> None:
    """Raise IncompatibleTypeOfJoin unless a join with the table has its strictness, kind and keys.

    `keys` are those of the right side; `nulls` is the setting join_use_nulls. A CROSS JOIN reads the
    table like any other."""
    if join.kind == "CROSS":
        return
    strictness, kind = table.engine.arguments[:2]
    joined = "LEFT" if join.kind == "INNER" and join.strictness == "SEMI" else join.kind
    name = f"{table.database}.{table.name}"
    hint = f"The table is {table.engine}; a subquery (SELECT * FROM {name}) joins in any way."
    if (join.strictness or "ALL", joined) != (strictness, kind):
        raise errors.IncompatibleTypeOfJoin(
            f"Table {name} has incompatible type of JOIN.", hint=hint, position=join.position
        )
    if nulls and kind in ("LEFT", "FULL"):
        raise errors.IncompatibleTypeOfJoin(
            f"Table {name} needs the same join_use_nulls setting as present in LEFT or FULL JOIN.",
            hint=hint,
            position=join.position,
        )
    wanted = {
        column: right_column.use()
        for column in join_keys(table)
        if (right_column := right.find((column,)))
    }
    used = [columns_of(key) for key in keys]
    for column, reference in wanted.items():
        if columns_of(reference) not in used:
            raise errors.IncompatibleTypeOfJoin(
                f"Key {column!r} not found in JOIN ON section. Join engine key {column!r} have to be"
                " used.",
                hint=hint,
                position=join.position,
            )
    known = [columns_of(reference) for reference in wanted.values()]
    if any(columns not in known for columns in used):
        raise errors.IncompatibleTypeOfJoin(
            f"JOIN with table {name} should be performed by its keys alone.",
            hint=hint,
            position=join.position,
        )


# --- joinGet


def bind_join_get(binder: Binder, node: sql.Function) -> Expression:
    """Bind joinGet('table', 'column', key, …) or joinGetOrNull: the column's value in the row of
    the key; for a key that the table lacks the type's default, or NULL.

    Raises NumberOfArgumentsDoesntMatch, IllegalTypeOfArgument, UnknownTable, NoSuchColumn,
    TypeMismatch for keys of other types, and IncompatibleTypeOfJoin unless the table is
    Join(ANY, LEFT, …)."""
    if len(node.arguments) < 3:
        raise errors.NumberOfArgumentsDoesntMatch(
            f"Number of arguments for function {node.name} doesn't match: passed"
            f" {len(node.arguments)}, should be greater or equal to 3."
        )
    table = _named_table(binder, node)
    if table.engine.arguments[:2] != ("ANY", "LEFT"):
        raise errors.IncompatibleTypeOfJoin(
            f"{node.name} only supports tables of Join(ANY, LEFT, …), and {table.database}."
            f"{table.name} is {table.engine}."
        )
    column = _named_column(binder, node, table)
    keys = [table.column(name) for name in join_keys(table)]
    given = binder.bind_all(node.arguments[2:])
    if len(given) != len(keys):
        raise errors.NumberOfArgumentsDoesntMatch(
            f"{node.name} takes a value for each of the {len(keys)} keys of {table.name}, not"
            f" {len(given)}."
        )
    arguments = []
    for at, (value, key) in enumerate(zip(given, keys, strict=True)):
        assert key is not None
        if types.plain(value.type) != types.plain(key.type) or constants.is_null(value):
            raise errors.TypeMismatch(
                f"Type mismatch in {node.name} key {at}: found type {value.type}, while the needed"
                f" type is {types.plain(key.type)}.",
                hint=f"Write to{types.plain(key.type)}(…) or CAST.",
            )
        arguments.append(binder.cast(value, types.plain(key.type)) if _is_dressed(value) else value)
    lookup = _lookup(binder, table)
    at = len(keys) + _attributes(table).index(column)
    default: Constant | None = Constant(column.type, functions.default_value(column.type))
    result = column.type
    if node.name == "joinGetOrNull":
        result, default = types.make_nullable(result), None
    value_or_null: Expression = replace(
        lookup, type=result, arguments=tuple(arguments), default=default, attribute=at
    )
    missing = Constant(result, functions.default_value(result))
    for value in given:
        if types.is_nullable(value.type):
            value_or_null = binder.call(
                "if", (binder.call("isNull", (value,)), missing, value_or_null)
            )
    return value_or_null


def _is_dressed(value: Expression) -> bool:
    """Return whether the value's type is Nullable or LowCardinality."""
    return value.type != types.plain(value.type)


def _named_table(binder: Binder, node: sql.Function) -> Table:
    """Return the table of the engine Join that the first argument names.

    Raises IllegalTypeOfArgument and UnknownTable."""
    name = dictionary_name(node)
    if name is None:
        raise errors.IllegalTypeOfArgument(
            f"The first argument of {node.name} is the name of a table, as a constant text."
        )
    database = name.database or binder.context.database
    item = binder.queries.scope.snapshot.find(database, name.name)
    if item is None:
        raise errors.UnknownTable(f"Table {database}.{name.name} does not exist.")
    if not isinstance(item, Table) or item.engine.name != "Join":
        raise errors.IllegalTypeOfArgument(
            f"{node.name}: {database}.{name.name} is no table of ENGINE = Join.",
            hint="JOIN the table, or CREATE DICTIONARY over it and call dictGet.",
        )
    return item


def _named_column(binder: Binder, node: sql.Function, table: Table) -> Column:
    """Return the column that the second argument names: any but the keys.

    Raises IllegalTypeOfArgument and NoSuchColumn."""
    bound = binder.bind(node.arguments[1])
    name = bound.value.as_py() if isinstance(bound, Constant) else None
    if not isinstance(name, str):
        raise errors.IllegalTypeOfArgument(
            f"The second argument of {node.name} is the name of a column, as a constant text."
        )
    known = {column.name: column for column in _attributes(table)}
    if name not in known:
        raise errors.NoSuchColumn(
            f"{table.database}.{table.name} has no column {name!r} beside its keys.",
            hint=suggestion(name, known),
        )
    return known[name]


def _attributes(table: Table) -> list[Column]:
    """Return the columns that joinGet may return: all but the keys."""
    return [column for column in table.stored_columns if column.name not in join_keys(table)]


def _lookup(binder: Binder, table: Table) -> DictionaryCall:
    """Return a lookup without keys in the rows of the table: its keys, then its other columns. The
    statement reads the table once for all its calls."""
    queries = binder.queries
    known = queries.dictionaries.get(table.id)
    if isinstance(known, DictionaryCall):
        return known
    keys = [column for name in join_keys(table) if (column := table.column(name))]
    columns = [*keys, *_attributes(table)]
    select = sql.Select(
        columns=tuple(sql.Identifier((column.name,)) for column in columns),
        source=sql.TableReference(sql.TableName(table.name, table.database)),
    )
    before, queries.tables = queries.tables, {table.id: table.revision}
    try:
        bound = queries.subquery(select, BindContext(table.database, Settings({})))
        depends = tuple(sorted(queries.tables.items()))
    finally:
        queries.tables = {**before, **queries.tables}
    held = [types.plain(c.type) for c in keys] + [c.type for c in columns[len(keys) :]]
    node = with_types(bound, held, queries.names)
    name = f"{table.database}.{table.name}"
    shape = DictionaryShape(name, len(keys), False, False, -1, None, depends)
    number = ScalarSubquery(types.UINT8, node).number
    made = DictionaryCall(types.UINT8, "get", (), None, node, shape, -1, 0, number)
    queries.dictionaries[table.id] = made
    return made

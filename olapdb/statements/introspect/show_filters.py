"""The rows of SHOW statements, and their filters LIKE, WHERE and LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.bind import bind_expression
from olapdb.compute.evaluate import evaluate_predicate
from olapdb.errors import Position, UnknownRole
from olapdb.functions.strings import like_patterns
from olapdb.model.schema import Column, Engine, Table
from olapdb.records import dataclass
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.sql.literals import show_names
from olapdb.statements.context import StatementContext
from olapdb.system.ddl import expression_list, key_list
from olapdb.system.registry import parse_columns
from olapdb.types import STRING, UINT8, DataType, is_nullable
from olapdb.types.arrow_values import array_of

if TYPE_CHECKING:
    import pyarrow as pa

    from olapdb.model.snapshot import Snapshot


@dataclass(frozen=True)
class Listing:
    """Rows of a SHOW statement, in order; LIKE applies to the column `liked`."""

    fields: tuple[tuple[str, DataType], ...]
    rows: tuple[tuple[object, ...], ...]
    liked: str = "name"

    def narrowed(
        self, statement: nodes.Show, context: StatementContext, snapshot: Snapshot
    ) -> Result:
        """Return the rows that satisfy LIKE and WHERE, at most LIMIT of them."""
        names = [name for name, _ in self.fields]
        types = [data_type for _, data_type in self.fields]
        liked_position = names.index(self.liked)
        rows = [row for row in self.rows if matches(str(row[liked_position]), statement)]
        if statement.where is not None:
            selected = _satisfies_where(statement.where, self.fields, rows, context, snapshot)
            rows = [row for row, keep in zip(rows, selected, strict=True) if keep]
        if statement.limit is not None:
            rows = rows[: statement.limit]
        columns = [[row[i] for row in rows] for i in range(len(names))]
        return from_columns(names, types, columns)

    def by_name(self) -> Listing:
        """Return the rows sorted by the first column."""
        return replace(self, rows=tuple(sorted(self.rows, key=lambda row: str(row[0]))))


def matches(name: str, statement: nodes.Show | nodes.TruncateAll) -> bool:
    """Return whether the name satisfies the statement's LIKE."""
    if statement.like is None:
        return True
    match = like_patterns.ilike if statement.case_insensitive else like_patterns.like
    mask = match(array_of([name], pa.string()), statement.like)
    return bool(mask[0].as_py()) != statement.negated


def _satisfies_where(
    where: nodes.Expression,
    fields: Sequence[tuple[str, DataType]],
    rows: Sequence[Sequence[object]],
    context: StatementContext,
    snapshot: Snapshot,
) -> list[bool]:
    """Evaluate the WHERE condition over the displayed columns; return one bool a row."""
    columns = tuple(
        Column(position, column_name, data_type)
        for position, (column_name, data_type) in enumerate(fields, 1)
    )
    result_table = Table("", context.database, "", Engine("Null"), columns)
    condition = bind_expression(where, result_table, context.scope(snapshot))
    arrays = [
        pa.array([row[position] for row in rows], data_type.arrow)
        for position, (_, data_type) in enumerate(fields)
    ]
    batch = pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in fields])
    mask = evaluate_predicate(condition, batch, context.environment)
    return [bool(keep) for keep in pc.fill_null(mask, False).to_pylist()]


# --- the rows of each SHOW


def camel_case(name: str) -> str:
    """Return the engine name of a system table: `query_log` -> `QueryLog`."""
    return name.title().replace("_", "")


def name_listing(names: Sequence[str]) -> Listing:
    """Return a listing with one column of these names, sorted."""
    return Listing((("name", STRING),), tuple((name,) for name in sorted(names)))


def system_rows(
    table: str,
    columns: Sequence[str] | None,
    liked: str,
    context: StatementContext,
    snapshot: Snapshot,
) -> Listing:
    """Return columns (None: all) of a system table, in its order."""
    fields = dict(context.engine.system[table].fields)
    names = tuple(columns or fields)
    table_rows: pa.Table = context.execution(snapshot).system(table, names, {})
    rows = tuple(zip(*(column.to_pylist() for column in table_rows.columns), strict=True))
    return Listing(tuple((name, fields[name]) for name in names), rows, liked)


_CLUSTER = parse_columns(
    "cluster String, shard_num UInt32, replica_num UInt32, host_name String, host_address String,"
    " port UInt16"
)


def no_clusters(whole: bool) -> Listing:
    """Return the empty listing of SHOW CLUSTERS, and (`whole`) of SHOW CLUSTER: a warehouse has
    none."""
    return Listing(_CLUSTER if whole else _CLUSTER[:1], (), "cluster")


def no_roles(enabled: bool) -> Listing:
    """Return the empty listing of SHOW CURRENT ROLES, or of SHOW ENABLED ROLES."""
    current = " is_current UInt8," if enabled else ""
    fields = parse_columns(f"role_name String, with_admin_option UInt8,{current} is_default UInt8")
    return Listing(fields, (), "role_name")


ONLY_USER = "default"


def grant_listing(named: str | None, read_only: bool, position: Position | None) -> Listing:
    """Return the listing of SHOW GRANTS: the privileges of the only user on this connection.

    Raises UnknownRole."""
    if named is not None and named not in (ONLY_USER, "CURRENT_USER", "ALL"):
        raise UnknownRole(
            f"There is no user or role {named}.",
            hint="There is one user, default; who may open the folder may do everything.",
            position=position,
        )
    privileges = (
        f"SHOW, SELECT ON *.* TO {ONLY_USER}" if read_only else f"ALL ON *.* TO {ONLY_USER}"
    )
    title = "GRANTS" if named is None else f"GRANTS FOR {named}"
    return Listing(((title, STRING),), ((f"GRANT {privileges}",),), title)


_ACCESS = ("USER", "ROLE", "QUOTA", "POLICY", "PROFILE", "ACCESS MANAGEMENT")
"""What the words of privileges about access contain, which nobody has."""
_READING = ("SELECT", "SHOW")


def checked_grant(privileges: str, *, read_only: bool) -> Listing:
    """Return the listing of CHECK GRANT: whether the only user has all of these privileges here."""
    granted = not any(word in privileges for word in _ACCESS) and (
        not read_only or all(name.startswith(_READING) for name in privileges.split(", "))
    )
    return Listing((("result", UINT8),), ((int(granted),),), "result")


_COLUMN_FIELDS = parse_columns(
    """field String, type String, null String, key String, default Nullable(String), extra String,
    collation Nullable(Nothing), comment String, privileges String"""
)


def columns_of_table(columns: Sequence[Column], table: Table | None, full: bool) -> Listing:
    """Return the listing of SHOW [FULL] COLUMNS, by name, in MySQL's form."""
    keys = [item.expression.strip("`") for item in table.sorting_key] if table else []
    primary = keys[: table.primary_key] if table else []
    rows: list[tuple[object, ...]] = []
    for column in sorted(columns, key=lambda shown_column: shown_column.name):
        key_flags = [
            flag for flag, names in (("PRI", primary), ("SOR", keys)) if column.name in names
        ]
        row: tuple[object, ...] = (
            column.name,
            column.type.name,
            "YES" if is_nullable(column.type) else "NO",
            " ".join(key_flags),
            show_names(column.default if column.default_kind != "EPHEMERAL" else "") or None,
            "",
        )
        rows.append((*row, None, column.comment, "") if full else row)
    return Listing(_COLUMN_FIELDS if full else _COLUMN_FIELDS[:6], tuple(rows), "field")


_INDEX_FIELDS = parse_columns(
    """table String, non_unique UInt8, key_name String, seq_in_index UInt64, pk_col String,
    collation Nullable(String), cardinality UInt8, sub_part Nullable(Nothing),
    packed Nullable(Nothing), null Nullable(Nothing), index_type String, comment String,
    index_comment String, visible String, expression String"""
)


def indexes_of_table(table: Table) -> Listing:
    """Return the listing of SHOW INDEXES: skip indexes by type, and the primary key item by
    item."""
    entries: list[tuple[str, int, str, str | None, str, str]] = []
    for index in sorted(
        table.indexes, key=lambda index: (index.type.upper(), show_names(index.expression))
    ):
        entries.append(
            (
                index.name,
                1,
                "",
                None,
                index.type.upper(),
                show_names(expression_list(index.expression)),
            )
        )
    for number, item in enumerate(table.sorting_key[: table.primary_key], 1):
        entries.append(("PRIMARY", number, show_names(key_list((item,))), "A", "PRIMARY", ""))
    rows = tuple(
        (
            table.name,
            1,
            name,
            number,
            key,
            collation,
            0,
            *[None] * 3,
            kind,
            "",
            "",
            "YES",
            expression,
        )
        for name, number, key, collation, kind, expression in sorted(
            entries, key=lambda entry: entry[4]
        )
    )
    return Listing(_INDEX_FIELDS, rows, "key_name")


def no_indexes() -> Listing:
    """Return an empty listing for an object that stores no rows."""
    return Listing(_INDEX_FIELDS, (), "key_name")

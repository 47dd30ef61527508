"""The rows of SHOW …, before and after LIKE, WHERE and LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from olapdb.errors import Position, UnknownRole
from olapdb.model.schema import Column, Engine, Table
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.system.ddl import key_list
from olapdb.types import (
    NOTHING,
    STRING,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DataType,
    Nullable,
    is_nullable,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from olapdb.model.snapshot import Snapshot

_MAYBE_TEXT: DataType = Nullable(STRING)
_NULL: DataType = Nullable(NOTHING)


@dataclass(frozen=True)
class Listing:
    """Rows in their order, row by row; LIKE is about the column `liked`."""

    fields: tuple[tuple[str, DataType], ...]
    rows: tuple[tuple[object, ...], ...]
    liked: str = "name"

    def narrowed(
        self, statement: nodes.Show, context: StatementContext, snapshot: Snapshot
    ) -> Result:
        """Those that LIKE or WHERE keep, at most LIMIT of them."""
        names = [name for name, _ in self.fields]
        types = [data_type for _, data_type in self.fields]
        at = names.index(self.liked)
        rows = [row for row in self.rows if matches(str(row[at]), statement)]
        if statement.where is not None:
            kept = _kept(statement.where, self.fields, rows, context, snapshot)
            rows = [row for row, keep in zip(rows, kept, strict=True) if keep]
        if statement.limit is not None:
            rows = rows[: statement.limit]
        columns = [[row[i] for row in rows] for i in range(len(names))]
        return from_columns(names, types, columns)

    def by_name(self) -> Listing:
        """In the order of the first column."""
        return replace(self, rows=tuple(sorted(self.rows, key=lambda row: str(row[0]))))


def matches(name: str, statement: nodes.Show | nodes.TruncateAll) -> bool:
    """Whether LIKE keeps the name."""
    if statement.like is None:
        return True
    import pyarrow.compute as pc

    matched = pc.match_like([name], statement.like, ignore_case=statement.case_insensitive)
    return bool(matched[0].as_py()) != statement.negated


def _kept(
    where: nodes.Expression,
    fields: Sequence[tuple[str, DataType]],
    rows: Sequence[Sequence[object]],
    context: StatementContext,
    snapshot: Snapshot,
) -> list[bool]:
    """The condition, which is over the columns that are shown, of each row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from olapdb.bind import bind_expression
    from olapdb.compute.evaluate import evaluate_predicate

    columns = tuple(Column(i, n, t) for i, (n, t) in enumerate(fields, 1))
    shell = Table("", context.database, "", Engine("Null"), columns)
    condition = bind_expression(where, shell, context.scope(snapshot))
    arrays = [pa.array([row[i] for row in rows], t.arrow) for i, (_, t) in enumerate(fields)]
    batch = pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in fields])
    kept = evaluate_predicate(condition, batch, context.environment)
    return [bool(one) for one in pc.fill_null(kept, False).to_pylist()]


# --- what there is


def camel(name: str) -> str:
    """`query_log` -> `QueryLog`, as engines of system tables are called."""
    return name.title().replace("_", "")


def names_of(names: Sequence[str]) -> Listing:
    return Listing((("name", STRING),), tuple((name,) for name in sorted(names)))


def system_rows(
    table: str,
    columns: Sequence[str] | None,
    liked: str,
    context: StatementContext,
    snapshot: Snapshot,
) -> Listing:
    """The rows of a system table, in its order; `columns` None: all of them."""
    fields = dict(context.engine.system[table].fields)
    wanted = tuple(columns or fields)
    found: pa.Table = context.execution(snapshot).system(table, wanted)
    rows = tuple(zip(*(column.to_pylist() for column in found.columns), strict=True))
    return Listing(tuple((name, fields[name]) for name in wanted), rows, liked)


_CLUSTER: tuple[tuple[str, DataType], ...] = (
    ("cluster", STRING),
    ("shard_num", UINT32),
    ("replica_num", UINT32),
    ("host_name", STRING),
    ("host_address", STRING),
    ("port", UINT16),
)


def no_clusters(whole: bool) -> Listing:
    """SHOW CLUSTERS, and (`whole`) SHOW CLUSTER: a warehouse is served by the processes that open it."""
    return Listing(_CLUSTER if whole else _CLUSTER[:1], (), "cluster")


ONLY_USER = "default"


def grants(named: str | None, read_only: bool, position: Position | None) -> Listing:
    """SHOW GRANTS: of the one user there is, who may do what the connection may."""
    if named is not None and named not in (ONLY_USER, "CURRENT_USER", "ALL"):
        raise UnknownRole(
            f"There is no user or role {named}.",
            hint="There is one user, default; who may open the folder may do everything.",
            position=position,
        )
    what = f"SHOW, SELECT ON *.* TO {ONLY_USER}" if read_only else f"ALL ON *.* TO {ONLY_USER}"
    title = "GRANTS" if named is None else f"GRANTS FOR {named}"
    return Listing(((title, STRING),), ((f"GRANT {what}",),), title)


def columns_of_table(columns: Sequence[Column], table: Table | None, full: bool) -> Listing:
    """SHOW [FULL] COLUMNS: as MySQL's, by name."""
    keys = [item.expression.strip("`") for item in table.sorting_key] if table else []
    primary = keys[: table.primary_key] if table else []
    fields: list[tuple[str, DataType]] = [
        ("field", STRING),
        ("type", STRING),
        ("null", STRING),
        ("key", STRING),
        ("default", _MAYBE_TEXT),
        ("extra", STRING),
    ]
    rows: list[tuple[object, ...]] = []
    for column in sorted(columns, key=lambda one: one.name):
        in_keys = [
            word for word, names in (("PRI", primary), ("SOR", keys)) if column.name in names
        ]
        row: tuple[object, ...] = (
            column.name,
            column.type.name,
            "YES" if is_nullable(column.type) else "NO",
            " ".join(in_keys),
            column.default or None,
            "",
        )
        rows.append((*row, None, column.comment, "") if full else row)
    if full:
        fields += [("collation", _NULL), ("comment", STRING), ("privileges", STRING)]
    return Listing(tuple(fields), tuple(rows), "field")


_INDEX_FIELDS: tuple[tuple[str, DataType], ...] = (
    ("table", STRING),
    ("non_unique", UINT8),
    ("key_name", STRING),
    ("seq_in_index", UINT64),
    ("pk_col", STRING),
    ("collation", _MAYBE_TEXT),
    ("cardinality", UINT8),
    ("sub_part", _NULL),
    ("packed", _NULL),
    ("null", _NULL),
    ("index_type", STRING),
    ("comment", STRING),
    ("index_comment", STRING),
    ("visible", STRING),
    ("expression", STRING),
)


def indexes_of_table(table: Table) -> Listing:
    """SHOW INDEXES: skip indexes by type, and the primary key item by item."""
    rows: list[tuple[object, ...]] = []
    for index in sorted(table.indexes, key=lambda one: (one.type.upper(), one.expression)):
        rows.append(_index(table, index.name, 1, "", None, index.type.upper(), index.expression))
    for number, item in enumerate(table.sorting_key[: table.primary_key], 1):
        rows.append(_index(table, "PRIMARY", number, key_list((item,)), "A", "PRIMARY", ""))
    return Listing(_INDEX_FIELDS, tuple(sorted(rows, key=lambda row: str(row[10]))), "key_name")


def no_indexes() -> Listing:
    """Of what stores no rows."""
    return Listing(_INDEX_FIELDS, (), "key_name")


def _index(
    table: Table,
    name: str,
    number: int,
    key: str,
    collation: str | None,
    kind: str,
    expression: str,
) -> tuple[object, ...]:
    return (
        table.name,
        1,
        name,
        number,
        key,
        collation,
        0,
        None,
        None,
        None,
        kind,
        "",
        "",
        "YES",
        expression,
    )

"""The catalog's tables.

Rows are versioned by commit: `created_commit` is the commit that made a row, `dropped_commit` the
one that ended it; a snapshot n sees created <= n < dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

metadata = sa.MetaData()
Text, Int, Blob = sa.Text, sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.LargeBinary


def _column(name: str, kind: Any, **options: Any) -> sa.Column[Any]:
    """Return a column that is NOT NULL unless `nullable=True` is given."""
    options.setdefault("nullable", False)
    return sa.Column(name, kind, **options)


def _lifetime_columns() -> tuple[sa.Column[Any], sa.Column[Any]]:
    """Return the columns `created_commit` and `dropped_commit` of a row's life; the latter is NULL
    while the row is live."""
    return _column("created_commit", Int), _column("dropped_commit", Int, nullable=True)


meta = sa.Table("meta", metadata, _column("key", Text, primary_key=True), _column("value", Text))

commits = sa.Table(
    "commits",
    metadata,
    _column("number", Int, primary_key=True, autoincrement=False),
    _column("id", Text),
    _column("kind", Text),
    _column("query_id", Text),
    _column("statement", Text),
    _column("time_ms", Int),
    _column("process_id", Int),
)

databases = sa.Table(
    "databases",
    metadata,
    _column("row_id", Int, primary_key=True),
    _column("id", Text),
    _column("name", Text),
    _column("comment", Text),
    *_lifetime_columns(),
)

objects = sa.Table(
    "objects",
    metadata,
    _column("row_id", Int, primary_key=True),
    _column("id", Text),
    _column("kind", Text),
    _column("body", Text),
    *_lifetime_columns(),
    sa.Index("objects_by_id", "id"),
)

# Tables that UNDROP can recover; vacuum deletes a row together with the table's parts.
dropped_tables = sa.Table(
    "dropped_tables",
    metadata,
    _column("table_id", Text, primary_key=True),
    _column("body", Text),
    _column("part_count", Int),
    _column("dropped_commit", Int),
    _column("dropped_ms", Int),
)

parts = sa.Table(
    "parts",
    metadata,
    _column("row_id", Int, primary_key=True),
    _column("id", Text),
    _column("table_id", Text),
    _column("partition_id", Text),
    _column("first_block", Int),
    _column("last_block", Int),
    _column("level", Int),
    _column("rows", Int),
    _column("bytes", Int),
    _column("path", Text),
    _column("inline", Int),
    *_lifetime_columns(),
    _column("dropped_ms", Int, nullable=True),
    _column("rest", Text),
)
# The same part may belong to several tables one day (shared by reference), so not unique alone.
sa.Index("parts_by_id", parts.c.id)
sa.Index("parts_live", parts.c.table_id, sqlite_where=parts.c.dropped_commit.is_(None))
sa.Index("parts_dropped", parts.c.dropped_commit, sqlite_where=parts.c.dropped_commit.is_not(None))
sa.Index("parts_created", parts.c.created_commit)
sa.Index("parts_by_path", parts.c.path, sqlite_where=parts.c.path != "")

inline_rows = sa.Table(
    "inline_rows", metadata, _column("part_id", Text, primary_key=True), _column("data", Blob)
)

blocks = sa.Table(
    "blocks",
    metadata,
    _column("table_id", Text, primary_key=True),
    _column("number", Int, primary_key=True, autoincrement=False),
    _column("commit_number", Int),
    _column("row_count", Int),
    _column("query_id", Text),
    _column("kind", Text),
    _column("created_ms", Int),
    sqlite_with_rowid=False,
)

# Blocks that no readable snapshot needs individually: neighbours joined by age, see
# `olapdb.catalog.sqlite.compaction`. The newest block of a table always has its row in `blocks`.
block_spans = sa.Table(
    "block_spans",
    metadata,
    _column("table_id", Text, primary_key=True),
    _column("last_block", Int, primary_key=True, autoincrement=False),
    _column("first_block", Int),
    _column("first_commit", Int),
    _column("last_commit", Int),
    _column("row_count", Int),
    _column("oldest_ms", Int),
    _column("newest_ms", Int),
    sqlite_with_rowid=False,
)

data_versions = sa.Table(
    "data_versions",
    metadata,
    _column("table_id", Text, primary_key=True),
    _column("partition_id", Text, primary_key=True),
    _column("version", Int, primary_key=True, autoincrement=False),
    _column("commit_number", Int),
    sqlite_with_rowid=False,
)

coverage = sa.Table(
    "coverage",
    metadata,
    _column("row_id", Int, primary_key=True),
    _column("view_id", Text),
    _column("partition_id", Text, nullable=True),
    _column("first_block", Int),
    _column("last_block", Int),
    *_lifetime_columns(),
    sa.Index("coverage_by_view", "view_id", "last_block"),
)

invalidations = sa.Table(
    "invalidations",
    metadata,
    _column("id", Int, primary_key=True),
    _column("view_id", Text),
    _column("target_partition", Text, nullable=True),
    _column("cause", Text),
    _column("statement", Text),
    _column("query_id", Text),
    _column("row_count", Int),
    _column("since_ms", Int),
    _column("example_keys", Text),
    *_lifetime_columns(),
    sa.Index("invalidations_live", "view_id", "dropped_commit"),
)

retained = sa.Table(
    "retained",
    metadata,
    _column("row_id", Int, primary_key=True),
    _column("view_id", Text),
    _column("side", Text),
    _column("partition_id", Text),
    _column("body", Text),
    *_lifetime_columns(),
    sa.Index("retained_by_view", "view_id", "dropped_commit"),
)

checks = sa.Table(
    "checks",
    metadata,
    _column("id", Int, primary_key=True),
    _column("view_id", Text),
    _column("target_partition", Text),
    _column("body", Text),
    *_lifetime_columns(),
    sa.Index("checks_by_slice", "view_id", "target_partition"),
)

tokens = sa.Table(
    "tokens",
    metadata,
    _column("table_id", Text, primary_key=True),
    _column("token", Text, primary_key=True),
    _column("commit_number", Int),
    _column("created_ms", Int),
    sqlite_with_rowid=False,
)

source_offsets = sa.Table(
    "source_offsets",
    metadata,
    _column("row_id", Int, primary_key=True),
    _column("table_id", Text),
    _column("stream", Text),
    _column("position", Int),
    _column("token", Text),
    _column("time_ms", Int),
    *_lifetime_columns(),
    sa.Index("source_offsets_by_stream", "table_id", "stream"),
)

key_ledgers = sa.Table(
    "key_ledgers",
    metadata,
    _column("table_id", Text, primary_key=True),
    _column("definition", Text),
    _column("epoch", Int),
    _column("oldest", Int),
    _column("next", Int),
    _column("newest_ms", Int),
    _column("dropped", Int),
    sqlite_with_rowid=False,
)

# Blobs last, so that reading the other columns does not touch overflow pages.
accepted_keys = sa.Table(
    "accepted_keys",
    metadata,
    _column("row_id", Int, primary_key=True),
    _column("table_id", Text),
    _column("first_ordinal", Int),
    _column("next_ordinal", Int),
    _column("tier", Int),
    _column("newest_ms", Int),
    _column("segments", Blob),
    _column("hashes", Blob),
    sa.Index("accepted_keys_by_ordinal", "table_id", "first_ordinal"),
)

leases = sa.Table(
    "leases",
    metadata,
    _column("id", Text, primary_key=True),
    _column("purpose", Text),
    _column("owner", Text),
    _column("process_id", Int),
    _column("state", Text),
    _column("opened_ms", Int),
    _column("renewed_ms", Int),
)

# Not versioned: it describes the disk now. Columns in the order of Damage's fields.
damaged_parts = sa.Table(
    "damaged_parts",
    metadata,
    _column("part_id", Text, primary_key=True),
    _column("table_id", Text),
    _column("part", Text),
    _column("reason", Text),
    _column("found_ms", Int),
    sqlite_with_rowid=False,
)

# Jobs of SYSTEM … VIEW statements. Not versioned: they describe processes, as leases do.
view_jobs = sa.Table(
    "view_jobs",
    metadata,
    _column("id", Text, primary_key=True),
    _column("view_id", Text),
    _column("view", Text),
    _column("kind", Text),
    _column("lease_id", Text),
    _column("process_id", Int),
    _column("query_id", Text),
    _column("statement", Text),
    _column("executor", Text),
    _column("staged", Int),
    _column("started_ms", Int),
    _column("state", Text),
    _column("finished_ms", Int),
    _column("error", Text),
    _column("chunk_count", Int),
)

# Columns in the order of JobChunk's fields.
view_job_chunks = sa.Table(
    "view_job_chunks",
    metadata,
    _column("job_id", Text, primary_key=True),
    _column("chunk", Int, primary_key=True, autoincrement=False),
    _column("partition_id", Text),
    _column("parts", Int),
    _column("row_count", Int),
    _column("byte_count", Int),
    _column("state", Text),
    _column("target_rows", Int),
    _column("commit_number", Int),
    _column("elapsed_ms", Int),
    _column("finished_ms", Int),
    _column("error", Text),
    sqlite_with_rowid=False,
)


def ddl_of(table: sa.Table) -> Iterable[str]:
    """Yield the DDL of a table and its indexes."""
    dialect = sqlite.dialect()
    yield str(CreateTable(table).compile(dialect=dialect))
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        yield str(CreateIndex(index).compile(dialect=dialect))

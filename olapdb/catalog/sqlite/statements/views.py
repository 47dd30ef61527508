"""The ledger of views: coverage, invalidations, retained slices, checks.

Generated from `olapdb.catalog.core.views` by `python -m olapdb.catalog.core.generate`.
"""

from olapdb.catalog.sqlite.statements.base import CatalogStatement

insert_coverage = CatalogStatement(
    "INSERT INTO coverage (view_id, partition_id, first_block, last_block, created_commit, dropped_commit) VALUES (?, ?, ?, ?, ?, ?)",
    ("view_id", "partition_id", "first_block", "last_block", "created_commit", "dropped_commit"),
)
extend_coverage = CatalogStatement(
    "UPDATE coverage SET last_block=? WHERE coverage.view_id = ? AND coverage.last_block = ? AND coverage.partition_id IS NULL AND coverage.dropped_commit IS NULL",
    ("block", "of_view", "before"),
)
coverage_at = CatalogStatement(
    "SELECT coverage.row_id, coverage.partition_id, coverage.first_block, coverage.last_block  "
    "FROM coverage  "
    "WHERE coverage.view_id = ? AND coverage.created_commit <= ? AND (coverage.dropped_commit IS NULL OR coverage.dropped_commit > ?)",
    ("of_view", "number", "number"),
)
coverage_of_partition = CatalogStatement(
    "SELECT coverage.row_id, coverage.partition_id, coverage.first_block, coverage.last_block  "
    "FROM coverage  "
    "WHERE coverage.view_id = ? AND (coverage.partition_id IS NULL OR coverage.partition_id = ?) AND coverage.created_commit <= ? AND (coverage.dropped_commit IS NULL OR coverage.dropped_commit > ?)",
    ("of_view", "partition", "number", "number"),
)
drop_coverage = CatalogStatement(
    "UPDATE coverage SET dropped_commit=? WHERE coverage.row_id IN (SELECT anon_1.value  "
    "FROM json_each(?) AS anon_1)",
    ("number", "row_ids"),
)
insert_invalidation = CatalogStatement(
    "INSERT INTO invalidations (view_id, target_partition, cause, statement, query_id, row_count, since_ms, example_keys, created_commit, dropped_commit) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    (
        "view_id",
        "target_partition",
        "cause",
        "statement",
        "query_id",
        "row_count",
        "since_ms",
        "example_keys",
        "created_commit",
        "dropped_commit",
    ),
)
invalidations_at = CatalogStatement(
    "SELECT invalidations.view_id, invalidations.target_partition, invalidations.cause, invalidations.statement, invalidations.query_id, invalidations.row_count, invalidations.since_ms, invalidations.example_keys, invalidations.id, invalidations.created_commit  "
    "FROM invalidations  "
    "WHERE invalidations.created_commit <= ? AND (invalidations.dropped_commit IS NULL OR invalidations.dropped_commit > ?) ORDER BY invalidations.id",
    ("number", "number"),
)
clear_invalidations_of_slice = CatalogStatement(
    "UPDATE invalidations SET dropped_commit=? WHERE invalidations.view_id = ? AND invalidations.target_partition = ? AND invalidations.created_commit <= ? AND invalidations.dropped_commit IS NULL",
    ("number", "of_view", "of_partition", "up_to"),
)
clear_invalidations = CatalogStatement(
    "UPDATE invalidations SET dropped_commit=? WHERE invalidations.view_id = ? AND invalidations.created_commit <= ? AND invalidations.dropped_commit IS NULL AND invalidations.target_partition IS NOT ''",
    ("number", "of_view", "up_to"),
)
insert_retained = CatalogStatement(
    "INSERT INTO retained (view_id, side, partition_id, body, created_commit, dropped_commit) VALUES (?, ?, ?, ?, ?, ?)",
    ("view_id", "side", "partition_id", "body", "created_commit", "dropped_commit"),
)
retained_at = CatalogStatement(
    "SELECT retained.row_id, retained.body  "
    "FROM retained  "
    "WHERE retained.created_commit <= ? AND (retained.dropped_commit IS NULL OR retained.dropped_commit > ?) ORDER BY retained.row_id",
    ("number", "number"),
)
retained_of = CatalogStatement(
    "SELECT retained.row_id, retained.body  "
    "FROM retained  "
    "WHERE retained.view_id = ? AND retained.dropped_commit IS NULL",
    ("of_view",),
)
drop_retained = CatalogStatement(
    "UPDATE retained SET dropped_commit=? WHERE retained.row_id IN (SELECT anon_1.value  "
    "FROM json_each(?) AS anon_1)",
    ("number", "row_ids"),
)
insert_check = CatalogStatement(
    "INSERT INTO checks (view_id, target_partition, body, created_commit, dropped_commit) VALUES (?, ?, ?, ?, ?)",
    ("view_id", "target_partition", "body", "created_commit", "dropped_commit"),
)
checks_at = CatalogStatement(
    "SELECT checks.body  "
    "FROM checks  "
    "WHERE checks.id IN (SELECT max(checks.id) AS max_1  "
    "FROM checks  "
    "WHERE checks.created_commit <= ? AND (checks.dropped_commit IS NULL OR checks.dropped_commit > ?) GROUP BY checks.view_id, checks.target_partition) ORDER BY checks.view_id, checks.target_partition",
    ("number", "number"),
)
drop_checks = CatalogStatement(
    "UPDATE checks SET dropped_commit=? WHERE checks.view_id = ? AND checks.dropped_commit IS NULL",
    ("number", "of_view"),
)

"""Jobs of views: those beyond the newest are deleted when one is opened.

Generated from `olapdb.catalog.core.jobs` by `python -m olapdb.catalog.core.generate`.
"""

from olapdb.catalog.sqlite.statements.base import CatalogStatement

JOB_COLUMNS = (
    "id",
    "view_id",
    "view",
    "kind",
    "lease_id",
    "process_id",
    "query_id",
    "statement",
    "executor",
    "staged",
    "started_ms",
    "state",
    "finished_ms",
    "error",
)
insert_job = CatalogStatement(
    'INSERT INTO view_jobs (id, view_id, "view", kind, lease_id, process_id, query_id, statement, executor, staged, started_ms, state, finished_ms, error, chunk_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    (
        "id",
        "view_id",
        "view",
        "kind",
        "lease_id",
        "process_id",
        "query_id",
        "statement",
        "executor",
        "staged",
        "started_ms",
        "state",
        "finished_ms",
        "error",
        "chunk_count",
    ),
)
put_chunk = CatalogStatement(
    "INSERT OR REPLACE INTO view_job_chunks (job_id, chunk, partition_id, parts, row_count, byte_count, state, target_rows, commit_number, elapsed_ms, finished_ms, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    (
        "job_id",
        "chunk",
        "partition_id",
        "parts",
        "row_count",
        "byte_count",
        "state",
        "target_rows",
        "commit_number",
        "elapsed_ms",
        "finished_ms",
        "error",
    ),
)
count_chunks = CatalogStatement(
    "UPDATE view_jobs SET chunk_count=? WHERE view_jobs.id = ?", ("chunks", "job")
)
forget_plan = CatalogStatement(
    "DELETE FROM view_job_chunks WHERE view_job_chunks.job_id = ? AND view_job_chunks.commit_number = 0",
    ("job",),
)
close_running_job = CatalogStatement(
    "UPDATE view_jobs SET state=?, finished_ms=?, error=? WHERE view_jobs.id = ? AND view_jobs.state = 'running'",
    ("new_state", "now_ms", "reason", "job"),
)
state_of_job = CatalogStatement(
    "SELECT view_jobs.state  FROM view_jobs  WHERE view_jobs.id = ?", ("job",)
)
list_jobs = CatalogStatement(
    'SELECT view_jobs.id, view_jobs.view_id, view_jobs."view", view_jobs.kind, view_jobs.lease_id, view_jobs.process_id, view_jobs.query_id, view_jobs.statement, view_jobs.executor, view_jobs.staged, view_jobs.started_ms, view_jobs.state, view_jobs.finished_ms, view_jobs.error  '
    "FROM view_jobs ORDER BY view_jobs.rowid",
    (),
)
list_chunks = CatalogStatement(
    "SELECT view_job_chunks.job_id, view_job_chunks.chunk, view_job_chunks.partition_id, view_job_chunks.parts, view_job_chunks.row_count, view_job_chunks.byte_count, view_job_chunks.state, view_job_chunks.target_rows, view_job_chunks.commit_number, view_job_chunks.elapsed_ms, view_job_chunks.finished_ms, view_job_chunks.error  "
    "FROM view_job_chunks ORDER BY view_job_chunks.job_id, view_job_chunks.chunk",
    (),
)
forget_surplus_chunks = CatalogStatement(
    "DELETE FROM view_job_chunks WHERE view_job_chunks.job_id IN (SELECT anon_1.id  "
    "FROM (SELECT view_jobs.id AS id, view_jobs.state AS state, view_jobs.lease_id AS lease_id, row_number() OVER (ORDER BY view_jobs.rowid DESC) AS place, sum(view_jobs.chunk_count) OVER (ORDER BY view_jobs.rowid DESC) AS chunks  "
    "FROM view_jobs) AS anon_1  "
    "WHERE (anon_1.place > ? OR anon_1.chunks > ?) AND (anon_1.state != 'running' OR (anon_1.lease_id NOT IN (SELECT leases.id  "
    "FROM leases  "
    "WHERE leases.state = 'live'))))",
    ("jobs_max", "chunks_max"),
)
forget_surplus_jobs = CatalogStatement(
    "DELETE FROM view_jobs WHERE view_jobs.id IN (SELECT anon_1.id  "
    "FROM (SELECT view_jobs.id AS id, view_jobs.state AS state, view_jobs.lease_id AS lease_id, row_number() OVER (ORDER BY view_jobs.rowid DESC) AS place, sum(view_jobs.chunk_count) OVER (ORDER BY view_jobs.rowid DESC) AS chunks  "
    "FROM view_jobs) AS anon_1  "
    "WHERE (anon_1.place > ? OR anon_1.chunks > ?) AND (anon_1.state != 'running' OR (anon_1.lease_id NOT IN (SELECT leases.id  "
    "FROM leases  "
    "WHERE leases.state = 'live'))))",
    ("jobs_max", "chunks_max"),
)

"""Commits, and the catalog's facts about itself.

Generated from `olapdb.catalog.core.commits` by `python -m olapdb.catalog.core.generate`.
"""

from olapdb.catalog.sqlite.statements.base import CatalogStatement

insert_meta = CatalogStatement('INSERT INTO meta ("key", value) VALUES (?, ?)', ("key", "value"))
all_meta = CatalogStatement('SELECT meta."key", meta.value  FROM meta', ())
get_meta = CatalogStatement('SELECT meta.value  FROM meta  WHERE meta."key" = ?', ("name",))
set_meta = CatalogStatement('UPDATE meta SET value=? WHERE meta."key" = ?', ("content", "name"))
insert_commit = CatalogStatement(
    "INSERT INTO commits (number, id, kind, query_id, statement, time_ms, process_id) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ("number", "id", "kind", "query_id", "statement", "time_ms", "process_id"),
)
newest_commit = CatalogStatement("SELECT max(commits.number) AS max_1  FROM commits", ())
oldest_commit = CatalogStatement("SELECT min(commits.number) AS min_1  FROM commits", ())
newest_commit_until = CatalogStatement(
    "SELECT max(commits.number) AS max_1  FROM commits  WHERE commits.time_ms <= ?", ("until_ms",)
)
commit_by_id = CatalogStatement(
    "SELECT commits.number  FROM commits  WHERE commits.number > ? AND commits.id = ?",
    ("after", "commit_id"),
)
list_commits = CatalogStatement(
    "SELECT commits.number, commits.kind, commits.query_id, commits.statement, commits.time_ms, commits.process_id  "
    "FROM commits  "
    "WHERE commits.number >= ? AND commits.number <= ? ORDER BY commits.number",
    ("since", "up_to"),
)
purge_commits = CatalogStatement("DELETE FROM commits WHERE commits.number < ?", ("before",))

"""Duplicate detection: tokens, offsets of streams, keys.

Generated from `olapdb.catalog.core.deliveries` by `python -m olapdb.catalog.core.generate`.
"""

from olapdb.catalog.sqlite.statements.base import CatalogStatement

insert_token = CatalogStatement(
    "INSERT INTO tokens (table_id, token, commit_number, created_ms) VALUES (?, ?, ?, ?)",
    ("table_id", "token", "commit_number", "created_ms"),
)
token_commit = CatalogStatement(
    "SELECT tokens.commit_number  FROM tokens  WHERE tokens.table_id = ? AND tokens.token = ?",
    ("of_table", "of_token"),
)
forget_tokens = CatalogStatement("DELETE FROM tokens WHERE tokens.table_id = ?", ("of_table",))
insert_offset = CatalogStatement(
    "INSERT INTO source_offsets (table_id, stream, position, token, time_ms, created_commit, dropped_commit) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ("table_id", "stream", "position", "token", "time_ms", "created_commit", "dropped_commit"),
)
drop_offset = CatalogStatement(
    "UPDATE source_offsets SET dropped_commit=? WHERE source_offsets.table_id = ? AND source_offsets.stream = ? AND source_offsets.dropped_commit IS NULL",
    ("number", "of_table", "of_stream"),
)
drop_all_offsets = CatalogStatement(
    "UPDATE source_offsets SET dropped_commit=? WHERE source_offsets.table_id = ? AND source_offsets.dropped_commit IS NULL",
    ("number", "of_table"),
)
offset_of_stream = CatalogStatement(
    "SELECT source_offsets.position  "
    "FROM source_offsets  "
    "WHERE source_offsets.table_id = ? AND source_offsets.stream = ? AND source_offsets.dropped_commit IS NULL",
    ("of_table", "of_stream"),
)
offsets_at = CatalogStatement(
    "SELECT source_offsets.stream, source_offsets.position, source_offsets.created_commit, source_offsets.time_ms, source_offsets.token  "
    "FROM source_offsets  "
    "WHERE source_offsets.table_id = ? AND source_offsets.created_commit <= ? AND (source_offsets.dropped_commit IS NULL OR source_offsets.dropped_commit > ?) ORDER BY source_offsets.stream",
    ("of_table", "number", "number"),
)
key_ledger = CatalogStatement(
    "SELECT key_ledgers.definition, key_ledgers.epoch, key_ledgers.oldest, key_ledgers.next, key_ledgers.newest_ms, key_ledgers.dropped  "
    "FROM key_ledgers  "
    "WHERE key_ledgers.table_id = ?",
    ("of_table",),
)
put_key_ledger = CatalogStatement(
    "INSERT OR REPLACE INTO key_ledgers (table_id, definition, epoch, oldest, next, newest_ms, dropped) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ("table_id", "definition", "epoch", "oldest", "next", "newest_ms", "dropped"),
)
insert_keys = CatalogStatement(
    "INSERT INTO accepted_keys (table_id, first_ordinal, next_ordinal, tier, newest_ms, segments, hashes) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ("table_id", "first_ordinal", "next_ordinal", "tier", "newest_ms", "segments", "hashes"),
)
keys_since = CatalogStatement(
    "SELECT accepted_keys.first_ordinal, accepted_keys.segments, accepted_keys.hashes  "
    "FROM accepted_keys  "
    "WHERE accepted_keys.table_id = ? AND accepted_keys.next_ordinal > ? ORDER BY accepted_keys.first_ordinal",
    ("of_table", "since"),
)
newest_key_tiers = CatalogStatement(
    "SELECT accepted_keys.first_ordinal, accepted_keys.next_ordinal, accepted_keys.tier  "
    "FROM accepted_keys  "
    "WHERE accepted_keys.table_id = ? ORDER BY accepted_keys.first_ordinal DESC",
    ("of_table",),
)
oldest_keys = CatalogStatement(
    "SELECT accepted_keys.first_ordinal, accepted_keys.segments  "
    "FROM accepted_keys  "
    "WHERE accepted_keys.table_id = ? ORDER BY accepted_keys.first_ordinal",
    ("of_table",),
)
delete_keys_from = CatalogStatement(
    "DELETE FROM accepted_keys WHERE accepted_keys.table_id = ? AND accepted_keys.first_ordinal >= ?",
    ("of_table", "first"),
)
delete_expired_keys = CatalogStatement(
    "DELETE FROM accepted_keys WHERE accepted_keys.table_id = ? AND (accepted_keys.next_ordinal <= ? OR accepted_keys.newest_ms <= ?)",
    ("of_table", "oldest", "cutoff_ms"),
)
has_deliveries = CatalogStatement(
    "SELECT 1  "
    "FROM tokens  "
    "WHERE tokens.table_id = ? UNION ALL SELECT 1  "
    "FROM source_offsets  "
    "WHERE source_offsets.table_id = ? AND source_offsets.dropped_commit IS NULL UNION ALL SELECT 1  "
    "FROM accepted_keys  "
    "WHERE accepted_keys.table_id = ?",
    ("of_table", "of_table", "of_table"),
)
accepted_key_bytes = CatalogStatement(
    "SELECT sum(length(accepted_keys.hashes) + length(accepted_keys.segments)) AS sum_1  "
    "FROM accepted_keys  "
    "WHERE accepted_keys.table_id = ?",
    ("of_table",),
)

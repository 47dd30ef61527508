"""The settings of statements that create tables or change their rows."""

from __future__ import annotations

from olapdb.config.definition import SettingDefinition

_DEFAULT_ENGINES = ("MergeTree", "ReplacingMergeTree", "Log", "StripeLog", "Memory", "None")

WRITE_DEFINITIONS = (
    SettingDefinition(
        "max_insert_block_size",
        1_048_576,
        "Rows of a block: what one trigger firing sees.",
        minimum=1,
    ),
    SettingDefinition(
        "min_insert_block_size_rows",
        1_048_576,
        "Smaller blocks of one INSERT are joined up to this.",
        minimum=0,
    ),
    SettingDefinition(
        "min_insert_block_size_bytes",
        268_402_944,
        "Smaller blocks of one INSERT are joined up to this.",
        minimum=0,
    ),
    SettingDefinition(
        "parts_to_delay_insert",
        0,
        "Parts in a partition from which INSERTs wait; 0: as the table's setting says.",
        minimum=0,
    ),
    SettingDefinition(
        "parts_to_throw_insert",
        0,
        "Parts in a partition that refuse an INSERT; 0: as the table's setting says.",
        minimum=0,
    ),
    SettingDefinition(
        "optimize_throw_if_noop",
        False,
        "Whether OPTIMIZE without FINAL fails where there is nothing to merge.",
    ),
    SettingDefinition(
        "max_table_size_to_drop",
        50_000_000_000,
        "The most bytes of a table that DROP and TRUNCATE remove, 0 for any; no limit unless it is set.",
        minimum=0,
    ),
    SettingDefinition(
        "data_type_default_nullable",
        False,
        "Columns of CREATE TABLE are Nullable unless said otherwise.",
    ),
    SettingDefinition(
        "throw_on_max_partitions_per_insert_block",
        True,
        "Whether more than max_partitions_per_insert_block is an error.",
    ),
    SettingDefinition(
        "default_table_engine",
        "MergeTree",
        "The engine of a CREATE TABLE that names none.",
        only=_DEFAULT_ENGINES,
    ),
    SettingDefinition(
        "allow_deprecated_syntax_for_merge_tree",
        False,
        "CREATE TABLE takes MergeTree(date, key, granularity).",
    ),
    SettingDefinition(
        "default_temporary_table_engine",
        "Memory",
        "The engine of a CREATE TEMPORARY TABLE that names none.",
        only=_DEFAULT_ENGINES,
    ),
    SettingDefinition(
        "input_format_null_as_default",
        True,
        "An inserted NULL becomes a non-Nullable column's default.",
    ),
    SettingDefinition(
        "insert_null_as_default", True, "As input_format_null_as_default, for INSERT SELECT."
    ),
    SettingDefinition(
        "insert_allow_lossy_conversion",
        False,
        "Inserted values that a column cannot hold are converted as CAST does: integers wrap, fractions are cut, dates stop at their type's end; else they are an error.",
    ),
    SettingDefinition(
        "optimize_on_insert", True, "A block of a merging engine is combined before it is written."
    ),
    SettingDefinition(
        "insert_deduplication_token",
        "",
        "Names the whole INSERT; a second one with it does nothing.",
    ),
    SettingDefinition("insert_deduplicate", True, "Whether insert_deduplication_token is heeded."),
    SettingDefinition(
        "source_offsets",
        "",
        'Where the rows of an INSERT lie in their streams, as JSON: {"orders-0": [4711, 4730]}.',
    ),
    SettingDefinition(
        "max_partitions_per_insert_block",
        100,
        "More partitions in one block are an error; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "inline_bytes_max",
        262_144,
        "Smaller blocks are kept in the catalog until they are merged.",
        minimum=0,
    ),
    SettingDefinition(
        "materialize_ttl_after_modify", True, "MODIFY TTL removes at once what has expired by it."
    ),
    SettingDefinition(
        "retain",
        False,
        "DROP, DETACH and MOVE PARTITION are retention: what views made of the rows is frozen, not stale.",
    ),
    SettingDefinition(
        "discard_retained",
        False,
        "REPLAY, DELETE, TRUNCATE and DROP PARTITION may remove what was made of rows that left by retention.",
    ),
    SettingDefinition("allow_drop_detached", False, "Whether DROP DETACHED PARTITION is allowed."),
    SettingDefinition(
        "allow_replace_partition_from_empty_source",
        False,
        "REPLACE PARTITION from a table without the partition empties it, instead of failing.",
    ),
    SettingDefinition(
        "allow_suspicious_low_cardinality_types",
        False,
        "Columns and casts may be LowCardinality of numbers, dates and times, which gains nothing.",
    ),
    SettingDefinition(
        "check_query_single_value_result",
        False,
        "CHECK TABLE gives one row, whether all parts passed.",
    ),
    SettingDefinition(
        "create_if_not_exists", False, "CREATE TABLE means CREATE TABLE IF NOT EXISTS."
    ),
    SettingDefinition(
        "allow_suspicious_variant_types",
        False,
        "A Variant may have types whose values one of them could hold, as UInt8 and UInt64.",
    ),
    SettingDefinition(
        "allow_suspicious_fixed_string_types",
        False,
        "Columns and casts may be FixedString of more than 256 bytes.",
    ),
    SettingDefinition(
        "flatten_nested",
        True,
        "A column of type Nested is one array for each of its elements, else one of tuples.",
    ),
)
"""The settings of CREATE TABLE, INSERT, ALTER and DELETE."""

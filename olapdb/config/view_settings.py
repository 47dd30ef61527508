"""The settings of materialized views: how they fire, what they may take, how they are filled."""

from __future__ import annotations

from olapdb.config.definition import SettingDefinition

VIEW_DEFINITIONS = (
    SettingDefinition(
        "materialized_views_ignore_errors",
        False,
        "A failing view leaves a gap, by name, instead of failing the INSERT.",
    ),
    SettingDefinition(
        "dimensions",
        "current",
        "Whether a change of a joined table makes what new views made with it stale.",
        only=("current", "at_insert"),
    ),
    SettingDefinition(
        "dimension_lookup_rows_max",
        50_000_000,
        "Rows of a view's source that a change of its dimension reads to find what is stale; beyond, all of it is.",
        minimum=0,
    ),
    SettingDefinition(
        "log_query_views",
        True,
        "Whether system.query_views_log shows the views that an INSERT fires.",
    ),
    SettingDefinition(
        "parallel_view_processing", False, "Views of one table in parallel; the result is the same."
    ),
    SettingDefinition(
        "engine",
        "in_process",
        "Where SYSTEM BACKFILL, REPLAY, RECONCILE, ADOPT and REBUILD VIEW run: in_process or spark.",
        only=("in_process", "spark"),
    ),
    SettingDefinition(
        "backfill_threads",
        0,
        "Chunks computed at a time; 0 means the number of cores, at most 4.",
        minimum=0,
    ),
    SettingDefinition(
        "backfill_chunk_rows_max",
        16_777_216,
        "A backfill cuts a partition with more source rows into several chunks.",
        minimum=1,
    ),
    SettingDefinition(
        "backfill_chunk_bytes_max",
        1_073_741_824,
        "As backfill_chunk_rows_max, in uncompressed bytes; less where max_memory_usage is.",
        minimum=1,
    ),
    SettingDefinition(
        "backfill_staging",
        False,
        "A backfill publishes all of its chunks in one commit, when all are there.",
    ),
    SettingDefinition(
        "view_limits_mode",
        "throw",
        "What a view beyond a max_view_… setting does: throw fails the INSERT, warn says so.",
        only=("throw", "warn"),
    ),
    SettingDefinition(
        "max_view_milliseconds",
        0,
        "Time that one view may take of an INSERT; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "max_view_rows_expansion",
        0.0,
        "Rows that a view may make of each row of a block; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "max_view_parts",
        0,
        "Parts that one view may write in an INSERT; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "max_view_memory_usage",
        0,
        "Bytes that one view may hold while it makes a block; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "stop_refreshable_materialized_views_on_startup",
        False,
        "SYSTEM STOP VIEWS suspends schedules, and is stored.",
        only=(False,),
    ),
    SettingDefinition(
        "allow_materialized_view_with_bad_select",
        False,
        "A view whose query does not bind would never fire: CREATE its tables first.",
        only=(False,),
    ),
    SettingDefinition(
        "materialized_views_populate_atomically",
        True,
        "POPULATE is a backfill of what was there before the view: no row is missed or doubled.",
        only=(True,),
    ),
    SettingDefinition(
        "min_insert_block_size_rows_for_materialized_views",
        0,
        "A view fires on the blocks of its source; min_insert_block_size_rows says how large they are.",
        only=(0,),
    ),
    SettingDefinition(
        "min_insert_block_size_bytes_for_materialized_views",
        0,
        "A view fires on the blocks of its source; min_insert_block_size_bytes says how large they are.",
        only=(0,),
    ),
    SettingDefinition(
        "wait_for_part_commit_in_dependent_materialized_views",
        False,
        "An INSERT and all that its views make are one commit: a view never reads it half done.",
        only=(False,),
    ),
)
"""The settings of triggers, backfills, replays and refreshes."""

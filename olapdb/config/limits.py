"""The settings that bound what a statement takes: threads, memory, disk, time, rows read and returned."""

from __future__ import annotations

from olapdb.config.definition import SettingDefinition


def _external(operation: str, title: str) -> tuple[SettingDefinition, SettingDefinition]:
    """Return the two settings that say when an operation spills to disk: after a number of bytes (0: no such number),
    and after a fraction of max_memory_usage."""
    return (
        SettingDefinition(
            f"max_bytes_before_external_{operation}",
            0,
            f"Bytes that {title} may hold before it spills to disk; 0: the ratio alone decides.",
            minimum=0,
        ),
        SettingDefinition(
            f"max_bytes_ratio_before_external_{operation}",
            0.5,
            f"The same as a fraction of max_memory_usage; both 0: {title} never spills.",
            minimum=0,
            below=1.0,
        ),
    )


def _limits() -> tuple[SettingDefinition, ...]:
    """Return the settings whose excess is an error; 0 means no limit."""
    texts = {
        "max_result_bytes": "Bytes of a result.",
        "max_bytes_to_read": "Bytes that a query reads.",
        "max_rows_to_read_leaf": "Rows that a query reads.",
        "max_bytes_to_read_leaf": "Bytes that a query reads.",
        "max_columns_to_read": "Columns of a table that a query reads.",
        "max_rows_in_set": "Rows of the set of an IN.",
        "max_rows_in_distinct": "Distinct rows of a DISTINCT.",
        "max_rows_in_join": "Rows of a join's right side.",
        "max_rows_to_group_by": "Groups of a GROUP BY.",
        "max_rows_to_sort": "Rows that an ORDER BY without LIMIT sorts.",
        "max_bytes_in_set": "Bytes of the set of an IN.",
        "max_bytes_in_distinct": "Bytes of the rows that a DISTINCT returns.",
        "max_bytes_in_join": "Bytes of a join's right side.",
        "max_bytes_to_sort": "Bytes of the rows that an ORDER BY without LIMIT sorts.",
    }
    return tuple(
        SettingDefinition(name, 0, f"{text} More are an error; 0 means no limit.", minimum=0)
        for name, text in texts.items()
    )


SYNTAX_LIMITS = {
    "max_query_size": 262_144,
    "max_ast_depth": 1_000,
    "max_ast_elements": 50_000,
    "max_expanded_ast_elements": 500_000,
    "max_subquery_depth": 100,
}
"""The limits of a query's text and syntax tree, with ClickHouse's defaults."""


def _syntax_limits() -> tuple[SettingDefinition, ...]:
    """Return the settings that limit the size of a query's text and syntax tree; a larger query is an error."""
    return tuple(
        SettingDefinition(
            name, default, "A query whose text or syntax tree is larger is an error.", minimum=0
        )
        for name, default in SYNTAX_LIMITS.items()
    )


def _overflow_modes() -> tuple[SettingDefinition, ...]:
    """Return the settings that say what happens past a limit: an answer without some of its rows is
    none here, so each mode fails."""
    names = ("distinct", "group_by", "join", "read", "set", "sort", "timeout")
    return tuple(
        SettingDefinition(
            name,
            "throw",
            "Past the limit a query fails in every mode: an answer without some of its rows is none.",
            only=("throw", "break", "any") if name.startswith("group") else ("throw", "break"),
        )
        for name in (*(f"{name}_overflow_mode" for name in names), "read_overflow_mode_leaf")
    )


LIMIT_DEFINITIONS = (
    SettingDefinition("max_block_size", 65_409, "Rows of a batch inside a query.", minimum=1),
    SettingDefinition(
        "max_threads", 0, "Threads of a query; 0 means the number of cores.", minimum=0
    ),
    SettingDefinition(
        "max_memory_usage",
        0,
        "Bytes that a query may hold; 0 means half of the machine's.",
        minimum=0,
    ),
    *_external("group_by", "GROUP BY"),
    *_external("sort", "ORDER BY and window functions"),
    *_external("join", "JOIN"),
    *_external("distinct", "DISTINCT, EXCEPT, INTERSECT and LIMIT BY"),
    SettingDefinition(
        "max_temporary_data_on_disk_size_for_query",
        0,
        "Bytes that a query may have in temporary files at a time; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "min_free_disk_space_for_temporary_data",
        0,
        "Bytes of the disk that temporary files must leave free.",
        minimum=0,
    ),
    SettingDefinition(
        "temporary_files_codec",
        "LZ4",
        "Compression of temporary files.",
        only=("LZ4", "ZSTD", "NONE"),
    ),
    SettingDefinition(
        "tmp_path",
        "",
        "The folder of temporary files; '' is tmp in the warehouse, or the system's for a warehouse"
        " in memory or opened read-only.",
    ),
    SettingDefinition(
        "max_execution_time",
        0.0,
        "Seconds after which a query ends with TIMEOUT_EXCEEDED; 0 means never.",
    ),
    SettingDefinition(
        "max_result_rows", 0, "More rows in a result are an error; 0 means no limit.", minimum=0
    ),
    SettingDefinition(
        "max_rows_to_read", 0, "More rows read are an error; 0 means no limit.", minimum=0
    ),
    SettingDefinition(
        "result_overflow_mode",
        "throw",
        "Past max_result_rows or max_result_bytes: throw fails, break ends the result behind the"
        " batch that passes it.",
        only=("throw", "break"),
    ),
    *(
        SettingDefinition(
            f"{bound}_execution_speed{suffix}",
            0,
            f"{what} that a query reads a second: {said}. 0 means no limit.",
            minimum=0,
        )
        for bound, said in (("min", "fewer are an error"), ("max", "more make it wait"))
        for suffix, what in (("", "Rows"), ("_bytes", "Bytes"))
    ),
    SettingDefinition(
        "max_partitions_to_read",
        -1,
        "Partitions of a table that a query reads; more are an error. Below 1: no limit.",
    ),
    *_limits(),
    *_syntax_limits(),
    *_overflow_modes(),
    SettingDefinition(
        "max_recursive_cte_evaluation_depth",
        1000,
        "More steps of a WITH RECURSIVE are an error.",
        minimum=0,
    ),
    SettingDefinition(
        "lock_acquire_timeout_ms", 30_000, "How long a commit waits for the catalog.", minimum=1
    ),
    SettingDefinition(
        "force_primary_key",
        False,
        "A SELECT whose conditions cannot use a table's primary key is an error.",
    ),
    SettingDefinition(
        "force_index_by_date",
        False,
        "A SELECT whose conditions cannot use a table's partition key is an error.",
    ),
    SettingDefinition(
        "force_data_skipping_indices",
        "",
        "Skip indexes, separated by commas: a SELECT that does not use each is an error.",
    ),
)
"""The limits of a statement, and what happens past them."""

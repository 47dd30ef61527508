"""Settings: which there are, what they hold, and what we do not do yet.

Every setting of a query, a session or a table is looked up here; an unknown one is an error, and
so is a value of a known one that we would have to ignore.  Settings that cannot mean anything in
process (`mutations_sync`: we always wait) are accepted and marked `neutral`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from olapdb.errors import (
    BadArguments,
    CannotParseSetting,
    NotSupportedError,
    SettingOutOfRange,
    UnknownSetting,
)

SettingValue = bool | int | float | str


@dataclass(frozen=True, slots=True)
class SettingDefinition:
    """`only` lists the values that are implemented, where not all are."""

    name: str
    default: SettingValue
    description: str
    scope: Literal["session", "table"] = "session"
    minimum: int | None = None
    only: tuple[SettingValue, ...] | None = None
    neutral: bool = False

    @property
    def type(self) -> str:
        return {bool: "Bool", int: "UInt64", float: "Float", str: "String"}[type(self.default)]

    def parse(self, value: object) -> SettingValue:
        """The value in the setting's type; BadArguments or NotSupportedError where it is none."""
        parsed = self._convert(value)
        if self.minimum is not None and not isinstance(parsed, str) and parsed < self.minimum:
            kind = SettingOutOfRange if parsed < 0 and self.minimum >= 0 else BadArguments
            raise kind(f"Setting {self.name} is at least {self.minimum}, not {parsed}.")
        if self.only is not None and parsed not in self.only:
            choices = ", ".join(repr(v) for v in self.only)
            raise NotSupportedError(
                f"Setting {self.name} = {parsed!r} is not supported; olapdb has {choices}.",
                hint=self.description,
            )
        return parsed

    def _convert(self, value: object) -> SettingValue:
        expected = type(self.default)
        try:
            if expected is bool:
                return _boolean(value)
            if expected is int and not isinstance(value, bool):
                return int(value)  # type: ignore[call-overload, no-any-return]
            if expected is float:
                return float(value)  # type: ignore[arg-type]
            if expected is int:
                return int(bool(value))
            return str(value)
        except (TypeError, ValueError):
            raise CannotParseSetting(
                f"Setting {self.name} takes a value of type {self.type}, not {value!r}."
            ) from None


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if value in (0, 1, "0", "1"):
        return bool(int(value))  # type: ignore[call-overload]
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError(value)


def _session() -> Iterable[SettingDefinition]:
    s = SettingDefinition
    yield s(
        "max_insert_block_size",
        1_048_576,
        "Rows of a block: what one trigger firing sees.",
        minimum=1,
    )
    yield s(
        "min_insert_block_size_rows",
        1_048_576,
        "Smaller blocks of one INSERT are joined up to this.",
        minimum=0,
    )
    yield s(
        "min_insert_block_size_bytes",
        268_402_944,
        "Smaller blocks of one INSERT are joined up to this.",
        minimum=0,
    )
    yield s("max_block_size", 65_409, "Rows of a batch inside a query.", minimum=1)
    yield s("max_threads", 0, "Threads of a query; 0 means the number of cores.", minimum=0)
    yield s(
        "max_memory_usage",
        0,
        "Bytes that a query may hold; 0 means half of the machine's.",
        minimum=0,
    )
    yield s(
        "max_execution_time",
        0.0,
        "Seconds after which a query ends with TIMEOUT_EXCEEDED; 0 means never.",
    )
    yield s(
        "max_result_rows", 0, "More rows in a result are an error; 0 means no limit.", minimum=0
    )
    yield s("max_rows_to_read", 0, "More rows read are an error; 0 means no limit.", minimum=0)
    yield s("join_use_nulls", False, "Rows without a partner get NULL, not default values.")
    yield s("final", False, "Every table of a merging engine is read FINAL.")
    yield s(
        "do_not_merge_across_partitions_select_final",
        False,
        "FINAL combines rows of each partition apart.",
    )
    yield s(
        "union_default_mode",
        "",
        "What a bare UNION means: ALL, DISTINCT, or '' (an error).",
        only=("", "ALL", "DISTINCT"),
    )
    yield s("except_default_mode", "ALL", "What a bare EXCEPT means.", only=("ALL", "DISTINCT"))
    yield s(
        "intersect_default_mode", "ALL", "What a bare INTERSECT means.", only=("ALL", "DISTINCT")
    )
    yield s(
        "data_type_default_nullable",
        False,
        "Columns of CREATE TABLE are Nullable unless said otherwise.",
    )
    yield s("enable_positional_arguments", True, "GROUP BY 1 and ORDER BY 1 mean the first column.")
    yield s("prefer_column_name_to_alias", False, "A column wins over an alias of the same name.")
    yield s(
        "aggregate_functions_null_for_empty",
        False,
        "Aggregates over nothing are NULL.",
        only=(False,),
    )
    yield s("transform_null_in", False, "NULL IN (NULL) is true.", only=(False,))
    yield s("cast_keep_nullable", False, "CAST keeps Nullable.")
    yield s(
        "single_join_prefer_left_table",
        True,
        "A column that both sides of a join have is the left's, not an error.",
    )
    yield s(
        "count_distinct_implementation",
        "uniqExact",
        "What count(DISTINCT x) is.",
        only=("uniqExact", "uniq"),
    )
    yield s("group_by_use_nulls", False, "Keys of ROLLUP are NULL.", only=(False,))
    yield s(
        "input_format_null_as_default",
        True,
        "An inserted NULL becomes a non-Nullable column's default.",
    )
    yield s("insert_null_as_default", True, "As input_format_null_as_default, for INSERT SELECT.")
    yield s(
        "optimize_on_insert", True, "A block of a merging engine is combined before it is written."
    )
    yield s(
        "insert_deduplication_token",
        "",
        "Names the whole INSERT; a second one with it does nothing.",
    )
    yield s("insert_deduplicate", True, "Whether insert_deduplication_token is heeded.")
    yield s(
        "source_offsets",
        "",
        'Where the rows of an INSERT lie in their streams, as JSON: {"orders-0": [4711, 4730]}.',
    )
    yield s(
        "materialized_views_ignore_errors",
        False,
        "A failing view leaves a gap, by name, instead of failing the INSERT.",
    )
    yield s(
        "dimensions",
        "current",
        "Whether a change of a joined table makes what new views made with it stale.",
        only=("current", "at_insert"),
    )
    yield s(
        "dimension_lookup_rows_max",
        50_000_000,
        "Rows of a view's source that a change of its dimension reads to find what is stale; beyond, all of it is.",
        minimum=0,
    )
    yield s(
        "log_query_views",
        True,
        "Whether system.query_views_log shows the views that an INSERT fires.",
    )
    yield s(
        "parallel_view_processing", False, "Views of one table in parallel; the result is the same."
    )
    yield s(
        "max_partitions_per_insert_block",
        100,
        "More partitions in one block are an error; 0 means no limit.",
        minimum=0,
    )
    yield s(
        "lock_acquire_timeout_ms", 30_000, "How long a commit waits for the catalog.", minimum=1
    )
    yield s("session_timezone", "", "Another zone than the warehouse's.", only=("", "UTC"))
    yield s(
        "snapshot",
        0,
        "The commit as of which a SELECT reads, see system.snapshots; 0 means the newest.",
        minimum=0,
    )
    yield s("use_skip_indexes", True, "Whether SELECT skips granules by the skip indexes.")
    yield s("optimizer", True, "Whether plans are optimized; for tests that compare.")
    yield s(
        "engine",
        "in_process",
        "Where SYSTEM BACKFILL, REPLAY and RECONCILE run: in_process or spark.",
        only=("in_process", "spark"),
    )
    yield s(
        "backfill_threads",
        0,
        "Chunks computed at a time; 0 means the number of cores, at most 4.",
        minimum=0,
    )
    yield s(
        "backfill_chunk_rows_max",
        16_777_216,
        "A backfill cuts a partition with more source rows into several chunks.",
        minimum=1,
    )
    yield s(
        "backfill_chunk_bytes_max",
        1_073_741_824,
        "As backfill_chunk_rows_max, in uncompressed bytes; less where max_memory_usage is.",
        minimum=1,
    )
    yield s(
        "backfill_staging",
        False,
        "A backfill publishes all of its chunks in one commit, when all are there.",
    )
    yield s(
        "view_limits_mode",
        "throw",
        "What a view beyond a max_view_… setting does: throw fails the INSERT, warn says so.",
        only=("throw", "warn"),
    )
    yield s(
        "max_view_milliseconds",
        0,
        "Time that one view may take of an INSERT; 0 means no limit.",
        minimum=0,
    )
    yield s(
        "max_view_rows_expansion",
        0.0,
        "Rows that a view may make of each row of a block; 0 means no limit.",
        minimum=0,
    )
    yield s(
        "max_view_parts",
        0,
        "Parts that one view may write in an INSERT; 0 means no limit.",
        minimum=0,
    )
    yield s(
        "max_view_memory_usage",
        0,
        "Bytes that one view may hold while it makes a block; 0 means no limit.",
        minimum=0,
    )
    yield s(
        "inline_bytes_max",
        262_144,
        "Smaller blocks are kept in the catalog until they are merged.",
        minimum=0,
    )
    yield s(
        "materialize_ttl_after_modify", True, "MODIFY TTL removes at once what has expired by it."
    )
    yield s(
        "retain",
        False,
        "DROP, DETACH and MOVE PARTITION are retention: what views made of the rows is frozen, not stale.",
    )
    yield s(
        "discard_retained",
        False,
        "REPLAY, DELETE, TRUNCATE and DROP PARTITION may remove what was made of rows that left by retention.",
    )
    yield s("allow_drop_detached", False, "Whether DROP DETACHED PARTITION is allowed.")
    yield s(
        "allow_replace_partition_from_empty_source",
        False,
        "REPLACE PARTITION from a table without the partition empties it, instead of failing.",
    )
    yield s(
        "flatten_nested",
        True,
        "A column of type Nested is one array for each of its elements.",
        only=(True,),
    )
    yield s(
        "describe_include_virtual_columns",
        False,
        "DESCRIBE TABLE lists virtual columns too, marked is_virtual.",
    )
    yield s("describe_compact_output", False, "DESCRIBE gives names and types only.")
    yield s("describe_include_subcolumns", False, "DESCRIBE lists subcolumns.", only=(False,))
    yield s(
        "asterisk_include_materialized_columns", False, "* stands for MATERIALIZED columns too."
    )
    yield s(
        "asterisk_include_alias_columns",
        False,
        "* stands for ALIAS columns too, behind the others.",
    )
    yield s(
        "force_primary_key",
        False,
        "A SELECT whose conditions cannot use a table's primary key is an error.",
    )
    yield s(
        "force_index_by_date",
        False,
        "A SELECT whose conditions cannot use a table's partition key is an error.",
    )
    yield s(
        "force_data_skipping_indices",
        "",
        "Skip indexes, separated by commas: a SELECT that does not use each is an error.",
    )
    yield s(
        "allow_materialized_view_with_bad_select",
        False,
        "A view whose query does not bind would never fire: CREATE its tables first.",
        only=(False,),
    )
    yield s(
        "materialized_views_populate_atomically",
        True,
        "POPULATE is a backfill of what was there before the view: no row is missed or doubled.",
        only=(True,),
    )
    yield s(
        "min_insert_block_size_rows_for_materialized_views",
        0,
        "A view fires on the blocks of its source; min_insert_block_size_rows says how large they are.",
        only=(0,),
    )
    yield s(
        "min_insert_block_size_bytes_for_materialized_views",
        0,
        "A view fires on the blocks of its source; min_insert_block_size_bytes says how large they are.",
        only=(0,),
    )
    yield s(
        "wait_for_part_commit_in_dependent_materialized_views",
        False,
        "An INSERT and all that its views make are one commit: a view never reads it half done.",
        only=(False,),
    )
    for name, default in (*_NEUTRAL, *_NEUTRAL_OF_VIEWS):
        yield s(name, default, "Accepted; it means nothing in process.", neutral=True)


_NEUTRAL: tuple[tuple[str, SettingValue], ...] = (
    ("mutations_sync", 2), ("alter_sync", 2), ("insert_quorum", 0), ("log_queries", True),
    ("insert_distributed_sync", False), ("distributed_foreground_insert", False),
    ("select_sequential_consistency", True), ("replicated_deduplication_window", 0),
    ("database_replicated_enforce_synchronous_settings", False), ("async_insert", False),
    ("wait_for_async_insert", True), ("allow_nondeterministic_mutations", False),
    ("allow_experimental_lightweight_delete", True), ("enable_lightweight_delete", True),
    ("lightweight_deletes_sync", 2), ("allow_suspicious_low_cardinality_types", True),
    ("use_query_cache", False), ("send_progress_in_http_headers", False),
    ("deduplicate_blocks_in_dependent_materialized_views", True),
    ("date_time_input_format", "best_effort"), ("readonly", 0),
)  # fmt: skip


_NEUTRAL_OF_VIEWS: tuple[tuple[str, SettingValue], ...] = (
    # The same whatever they say: plain views are always inlined, nothing has a definer, a target
    # cannot be dropped before its views, and there are no replicas and no REFRESH.
    ("analyzer_inline_views", False), ("default_materialized_view_sql_security", "DEFINER"),
    ("default_normal_view_sql_security", "INVOKER"), ("default_view_definer", "CURRENT_USER"),
    ("ignore_materialized_views_with_dropped_target_table", False),
    ("materialized_views_squash_parallel_inserts", True),
    ("optimize_trivial_view_pushdown_to_distributed", True),
    ("os_threads_nice_value_materialized_view", 0),
    ("parallel_replicas_allow_materialized_views", True),
    ("parallel_replicas_allow_view_over_mergetree", False),
    ("stop_refreshable_materialized_views_on_startup", False),
    ("use_async_executor_for_materialized_views", False),
    # ClickHouse has them still, without meaning.
    ("allow_experimental_alter_materialized_view_structure", True),
    ("allow_experimental_live_view", False),
    ("allow_experimental_refreshable_materialized_view", True),
    ("allow_experimental_window_view", False), ("live_view_heartbeat_interval", 15),
    ("max_live_view_insert_blocks_before_refresh", 64), ("periodic_live_view_refresh", 60),
    ("temporary_live_view_timeout", 1),
    ("throw_if_deduplication_in_dependent_materialized_views_enabled_with_async_insert", False),
    ("update_insert_deduplication_token_in_dependent_materialized_views", False),
    ("wait_for_window_view_fire_signal_timeout", 10), ("window_view_clean_interval", 60),
    ("window_view_heartbeat_interval", 15),
)  # fmt: skip


def _table() -> Iterable[SettingDefinition]:
    def s(
        name: str, default: SettingValue, description: str, *, minimum: int | None = None,
        neutral: bool = False,
    ) -> SettingDefinition:  # fmt: skip
        return SettingDefinition(
            name, default, description, scope="table", minimum=minimum, neutral=neutral
        )

    yield s(
        "index_granularity", 65_536, "Rows of a granule, which is a Parquet row group.", minimum=1
    )
    yield s("parts_to_delay_insert", 1_000, "Parts in a partition that slow an INSERT.", minimum=1)
    yield s(
        "parts_to_throw_insert", 3_000, "Parts in a partition that refuse an INSERT.", minimum=1
    )
    yield s(
        "old_parts_lifetime",
        480,
        "Seconds for which replaced parts are kept for readers.",
        minimum=0,
    )
    yield s(
        "inline_bytes_max",
        262_144,
        "Smaller blocks are kept in the catalog until merged.",
        minimum=0,
    )
    yield s(
        "max_bytes_to_merge", 2_147_483_648, "A background merge makes no larger part.", minimum=1
    )
    yield s("allow_nullable_key", False, "Whether keys may be Nullable.")
    yield s(
        "deduplicate_by",
        "",
        "Columns that identify a row: one that was accepted before is dropped by INSERT.",
    )
    yield s(
        "deduplicate_window",
        0,
        "Seconds for which accepted keys are remembered; 0 means as deduplicate_window_rows says.",
        minimum=0,
    )
    yield s(
        "deduplicate_window_rows",
        10_000_000,
        "Accepted keys that are remembered, the newest.",
        minimum=1,
    )
    yield s(
        "ttl_retain",
        True,
        "Rows that leave by TTL leave what views made of them frozen; 0 makes it stale.",
    )
    yield s(
        "ttl_only_drop_parts",
        False,
        "TTL removes a part when all of its rows have expired, and no part of one.",
    )
    yield s(
        "merge_with_ttl_timeout",
        14_400,
        "Seconds between two looks for expired rows in the background.",
        minimum=0,
    )
    yield s("storage_policy", "default", "There is one.", neutral=True)
    yield s("min_bytes_for_wide_part", 0, "Parts have one form.", neutral=True)
    yield s("min_rows_for_wide_part", 0, "Parts have one form.", neutral=True)
    yield s("index_granularity_bytes", 0, "Granules are counted in rows.", neutral=True)
    yield s("replicated_deduplication_window", 0, "A warehouse has no replicas.", neutral=True)


SESSION_SETTINGS: Mapping[str, SettingDefinition] = MappingProxyType(
    {d.name: d for d in _session()}
)
TABLE_SETTINGS: Mapping[str, SettingDefinition] = MappingProxyType({d.name: d for d in _table()})


class Settings(Mapping[str, SettingValue]):
    """Session settings: every known name has a value, its default unless changed. Immutable."""

    __slots__ = ("_changed",)

    def __init__(self, changed: Mapping[str, object] | None = None) -> None:
        self._changed = {n: lookup(n).parse(v) for n, v in (changed or {}).items()}

    def __getitem__(self, name: str) -> SettingValue:
        if name in self._changed:
            return self._changed[name]
        return SESSION_SETTINGS[name].default

    def __iter__(self) -> Iterator[str]:
        return iter(SESSION_SETTINGS)

    def __len__(self) -> int:
        return len(SESSION_SETTINGS)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self._changed == other._changed

    def __reduce__(self) -> tuple[object, ...]:
        return Settings, (dict(self._changed),)

    @property
    def changed(self) -> Mapping[str, SettingValue]:
        return MappingProxyType(self._changed)

    @property
    def key(self) -> tuple[tuple[str, SettingValue], ...]:
        """A hashable form of what differs from the defaults."""
        return tuple(sorted(self._changed.items(), key=lambda item: item[0]))

    def with_changes(self, changes: Mapping[str, object]) -> Settings:
        return Settings({**self._changed, **changes}) if changes else self

    def integer(self, name: str) -> int:
        return int(self[name])

    def boolean(self, name: str) -> bool:
        return bool(self[name])

    def text(self, name: str) -> str:
        return str(self[name])


def setting_text(value: SettingValue) -> str:
    """As SHOW SETTINGS and system.settings print it: booleans are 0 and 1."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def lookup(name: str) -> SettingDefinition:
    """The definition of a session setting; UnknownSetting with the nearest name otherwise."""
    return _lookup(SESSION_SETTINGS, name, "setting")


def is_deduplication(name: str) -> bool:
    """Whether a table setting is about rows that were delivered before."""
    return name.startswith("deduplicate_")


def table_settings(given: Mapping[str, object]) -> tuple[tuple[str, SettingValue], ...]:
    """Checked settings of a table, as CREATE TABLE … SETTINGS gives them."""
    return tuple(
        (n, _lookup(TABLE_SETTINGS, n, "MergeTree setting").parse(v)) for n, v in given.items()
    )


def _lookup(known: Mapping[str, SettingDefinition], name: str, what: str) -> SettingDefinition:
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else "system.settings lists those there are."
    raise UnknownSetting(f"Unknown {what} '{name}'.", hint=hint)

"""The values that settings of ClickHouse with a list of values can have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from olapdb.config.setting_types import SESSION_TYPES
from olapdb.errors import (
    BadArguments,
    ProgrammingError,
    UnknownDistributedProductMode,
    UnknownJoin,
    UnknownLoadBalancing,
    UnknownOverflowMode,
    UnknownTotalsMode,
    UnknownUnion,
    WrongSizeOfFixedString,
)

_CHOICES = """
AggregateFunctionInputFormat: array state value
AlterUpdateMode: heavy lightweight lightweight_force
ArrowCompression: lz4_frame none zstd
ArrowFlightDescriptorType: command path
CapnProtoEnumComparingMode: by_names by_names_case_insensitive by_values
DateTimeInputFormat: basic best_effort best_effort_us
DateTimeOutputFormat: iso simple unix_timestamp
DateTimeOverflowBehavior: ignore saturate throw
DecorrelationJoinKind: left right
DeduplicateInsertMode: backward_compatible_choice disable enable
DeduplicateInsertSelectMode: disable enable_even_for_bad_queries enable_when_possible force_enable
DefaultDatabaseEngine: Atomic Ordinary
DefaultTableEngine: Log Memory MergeTree None ReplacingMergeTree ReplicatedMergeTree
    ReplicatedReplacingMergeTree SharedMergeTree SharedReplacingMergeTree StripeLog
Dialect: clickhouse clickhouse_json kusto polyglot promql prql trino
DistributedCacheLogMode: all nothing on_error
DistributedCachePoolBehaviourOnLimit: allocate_bypassing_pool wait
DistributedDDLOutputMode: never_throw none none_only_active null_status_on_timeout
    null_status_on_timeout_only_active throw throw_only_active
DistributedProductMode: allow deny global local
EscapingRule: CSV Escaped JSON None Quoted Raw XML
ExplainQueryPlanDefault: legacy pretty
FileLikeEngineDefaultPartitionStrategy: hive wildcard
GeoJSONUnsupportedGeometryHandling: null throw
GeoToH3ArgumentOrder: lat_lon lon_lat
IcebergMetadataLogLevel: manifest_file_entry manifest_file_metadata manifest_list_entry
    manifest_list_metadata metadata none
IdentifierQuotingRule: always user_display when_necessary
IdentifierQuotingStyle: Backticks BackticksMySQL DoubleQuotes
InputFormatColumnMatchingCaseSensitivity: auto ignore_case match_case
IntervalOutputFormat: kusto numeric
JemallocProfileFormat: collapsed raw symbolized
JoinAlgorithm: auto default direct full_sorting_merge grace_hash hash ie_join
    parallel_full_sorting_merge parallel_hash partial_merge prefer_partial_merge
JoinOrderAlgorithm: dphyp dpsize dpsub greedy
JoinOrderConflictDetector: '' a c
JoinStrictness: '' ALL ANY
LightweightDeleteMode: alter_update lightweight_update lightweight_update_force
LightweightMutationProjectionMode: drop rebuild throw
LoadBalancing: first_or_random hostname_levenshtein_distance hostname_longest_common_prefix
    hostname_longest_common_suffix in_order nearest_hostname random round_robin
LocalFSReadMethod: io_uring mmap pread pread_fake_async pread_threadpool read
LogQueriesType: EXCEPTION_BEFORE_START EXCEPTION_WHILE_PROCESSING QUERY_FINISH QUERY_START
LogsLevel: debug error fatal information none test trace warning
MsgPackUUIDRepresentation: bin ext str
MySQLDataTypesSupport: date2Date32 date2String datetime64 decimal geometry
ORCCompression: lz4 none snappy zlib zstd
ObjectStorageGranularityLevel: bucket file
OverflowMode: break throw
OverflowModeGroupBy: any break throw
ParallelReplicasCustomKeyFilterType: default range
ParallelReplicasMode: auto custom_key_range custom_key_sampling read_tasks sampling_key
ParquetCompression: brotli gzip lz4 none snappy zstd
ParquetVersion: 1.0 2.4 2.6 2.latest
QueryResultCacheNondeterministicFunctionHandling: ignore save throw
QueryResultCacheSystemTableHandling: ignore save throw
S3UriStyle: auto path virtual_hosted
SQLSecurityType: DEFINER INVOKER NONE
SchemaInferenceMode: default union
SetOperationMode: '' ALL DISTINCT
ShortCircuitFunctionEvaluation: disable enable force_enable
SkipUnavailableShardsMode: unavailable unavailable_or_exception_before_processing
    unavailable_or_table_missing
SnappyMode: basic framed
StreamingHandleErrorMode: dead_letter_queue default stream
TextIndexPostingListApplyMode: lazy materialize
TotalsMode: after_having_auto after_having_exclusive after_having_inclusive before_having
TransactionsWaitCSNMode: async wait wait_unknown
UniqueKeyProbeImplementation: auto simple
UpdateParallelMode: async auto sync
VectorSearchFilterStrategy: auto postfilter prefilter
"""
"""Each type of setting with its values, '' for the empty one."""

_SEVERAL = ("JoinAlgorithm", "JoinOrderAlgorithm", "MySQLDataTypesSupport")
"""Types of which a setting may have several values, separated by commas."""

_ERRORS: Mapping[str, type[ProgrammingError]] = {
    "DistributedProductMode": UnknownDistributedProductMode,
    "JoinAlgorithm": UnknownJoin,
    "JoinStrictness": UnknownJoin,
    "LoadBalancing": UnknownLoadBalancing,
    "OverflowMode": UnknownOverflowMode,
    "OverflowModeGroupBy": UnknownOverflowMode,
    "SetOperationMode": UnknownUnion,
    "TotalsMode": UnknownTotalsMode,
}


def _parse(text: str) -> dict[str, tuple[str, ...]]:
    """Return the allowed values of each type of setting, from lines of a type's name and its values."""
    types = re.split(r"^(?=\S)", text.strip(), flags=re.MULTILINE)
    pairs = (line.split(":", 1) for line in types if line)
    return {name: tuple(w.replace("''", "") for w in words.split()) for name, words in pairs}


_BY_TYPE = _parse(_CHOICES)


def check_choice(name: str, value: str) -> None:
    """Raise BadArguments, or the error of the setting's type, for a value that it cannot have.

    WrongSizeOfFixedString is that of a character."""
    data_type = SESSION_TYPES.get(name, "")
    if data_type == "Char" and len(value.encode("utf-8", "surrogateescape")) > 1:
        raise WrongSizeOfFixedString(
            f"Setting {name} is one character of one byte, not {value!r}.",
            hint="'' stands for the character of code 0.",
        )
    choices = _BY_TYPE.get(data_type)
    if choices is None:
        return
    words = [w.strip() for w in value.split(",")] if data_type in _SEVERAL else [value]
    for word in words:
        if word not in choices:
            raise _ERRORS.get(data_type, BadArguments)(
                f"Unexpected value of {data_type}: {word!r}.",
                hint=f"Setting {name} is one of {', '.join(repr(c) for c in choices)}.",
            )

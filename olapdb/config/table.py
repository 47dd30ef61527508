"""The settings of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from olapdb.config.definition import SettingDefinition, known_settings
from olapdb.config.merge_tree_settings import FIXED_AT_DEFAULT, WITHOUT_MEANING

_DEFINED = (
    SettingDefinition(
        "index_granularity",
        8_192,
        "Rows of a granule, which is a Parquet row group; the default is one of 65,536.",
        minimum=1,
    ),
    SettingDefinition(
        "parts_to_delay_insert", 1_000, "Parts in a partition that slow an INSERT.", minimum=1
    ),
    SettingDefinition(
        "parts_to_throw_insert", 3_000, "Parts in a partition that refuse an INSERT.", minimum=1
    ),
    SettingDefinition(
        "old_parts_lifetime",
        480,
        "Seconds for which replaced parts are kept for readers.",
        minimum=0,
    ),
    SettingDefinition(
        "inline_bytes_max",
        262_144,
        "Smaller blocks are kept in the catalog until merged.",
        minimum=0,
    ),
    SettingDefinition(
        "max_bytes_to_merge", 2_147_483_648, "A background merge makes no larger part.", minimum=1
    ),
    SettingDefinition(
        "deduplicate_merge_projection_mode",
        "throw",
        "Whether a table that combines rows may have projections, which its merges rebuild.",
        only=("throw", "rebuild"),
    ),
    SettingDefinition("allow_nullable_key", False, "Whether keys may be Nullable."),
    SettingDefinition(
        "deduplicate_by",
        "",
        "Columns that identify a row: one that was accepted before is dropped by INSERT.",
    ),
    SettingDefinition(
        "deduplicate_window",
        0,
        "Seconds for which accepted keys are remembered; 0 means as deduplicate_window_rows says.",
        minimum=0,
    ),
    SettingDefinition(
        "deduplicate_window_rows",
        10_000_000,
        "Accepted keys that are remembered, the newest.",
        minimum=1,
    ),
    SettingDefinition(
        "ttl_retain",
        True,
        "Rows that leave by TTL leave what views made of them frozen; 0 makes it stale.",
    ),
    SettingDefinition(
        "ttl_only_drop_parts",
        False,
        "TTL removes a part when all of its rows have expired, and no part of one.",
    ),
    SettingDefinition(
        "merge_with_ttl_timeout",
        14_400,
        "Seconds between two looks for expired rows in the background.",
        minimum=0,
    ),
    SettingDefinition("storage_policy", "default", "There is one.", neutral=True),
    SettingDefinition("min_bytes_for_wide_part", 0, "Parts have one form.", neutral=True),
    SettingDefinition("min_rows_for_wide_part", 0, "Parts have one form.", neutral=True),
    SettingDefinition(
        "index_granularity_bytes", 0, "A granule has at most some 8 MiB of a column.", neutral=True
    ),
    SettingDefinition(
        "replicated_deduplication_window", 0, "A warehouse has no replicas.", neutral=True
    ),
)


FIXED_SETTINGS = frozenset(["index_granularity", "index_granularity_bytes", "storage_policy"])
"""Settings that only CREATE TABLE gives: ALTER TABLE refuses them."""

_KNOWN = (
    *(
        SettingDefinition(name, default, "Accepted; no answer depends on it.", neutral=True)
        for name, default in known_settings(WITHOUT_MEANING)
    ),
    *(
        SettingDefinition(
            name, default, "Another value would change answers or limits.", only=(default,)
        )
        for name, default in known_settings(FIXED_AT_DEFAULT)
    ),
)
TABLE_SETTINGS: Mapping[str, SettingDefinition] = MappingProxyType(
    {setting.name: replace(setting, scope="table") for setting in (*_DEFINED, *_KNOWN)}
)
"""The settings of tables by name."""

MEMORY_SETTINGS: Mapping[str, SettingDefinition] = MappingProxyType(
    {
        "compress": SettingDefinition("compress", False, "Blocks have one form.", "table"),
        **{
            f"{end}_{what}_to_keep": SettingDefinition(
                f"{end}_{what}_to_keep", 0, description, "table", minimum=0
            )
            for end, description in (
                ("min", "Old blocks stay while no more than this would be left; 0 means none."),
                ("max", "An INSERT that passes it removes the oldest blocks; 0 means no limit."),
            )
            for what in ("rows", "bytes")
        },
    }
)
"""The settings of Memory tables by name."""


def is_deduplication(name: str) -> bool:
    """Return whether a table setting belongs to the deduplication of delivered rows."""
    return name.startswith("deduplicate_") and name != "deduplicate_merge_projection_mode"

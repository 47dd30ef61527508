"""The settings that a view keeps: those that change what its query means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from olapdb import errors
from olapdb.bind.json_text import JSON_SETTINGS
from olapdb.bind.query import MEANING
from olapdb.config import Settings, SettingValue
from olapdb.sql import nodes

QUERY_SETTINGS = (
    MEANING | JSON_SETTINGS | {"group_by_use_nulls", "data_type_default_nullable", "dimensions"}
)
"""Settings that change what a query means. The view keeps their values at CREATE."""

_INSERT_SETTINGS = frozenset(
    (
        "insert_allow_lossy_conversion",
        "insert_deduplicate",
        "insert_deduplication_token",
        "materialized_views_ignore_errors",
        "max_view_memory_usage",
        "max_view_milliseconds",
        "max_view_parts",
        "max_view_rows_expansion",
        "parallel_view_processing",
        "source_offsets",
        "view_limits_mode",
    )
)
"""Settings of an INSERT. In a view's query they would silently do nothing, so they are refused."""

_OF_ANSWERS = {
    "limit": "Put LIMIT into the query that reads the target.",
    "offset": "Put OFFSET into the query that reads the target.",
    "session_timezone": "Name the zone where it matters: toDateTime(t, 'Asia/Tokyo').",
}
"""Settings of one SELECT's answer, which a view does not keep, and what to write in their place."""


def frozen_settings(
    session: Mapping[str, object], clauses: Iterable[nodes.Setting]
) -> dict[str, SettingValue]:
    """Return the settings that change the query's meaning, of the session and of the query itself.
    Raise BadArguments for a setting in the query that a view cannot have."""
    chosen: dict[str, object] = {
        name: value for name, value in session.items() if name in QUERY_SETTINGS
    }
    for setting in clauses:
        if setting.name in QUERY_SETTINGS:
            chosen[setting.name] = setting.value
        elif setting.name == "compatibility":
            earlier = Settings({setting.name: setting.value})
            named = {clause.name for clause in clauses}
            changed = (n for n in QUERY_SETTINGS - named if earlier[n] != Settings()[n])
            chosen.update((name, earlier[name]) for name in changed)
        else:
            _refuse(setting)
    return dict(Settings(chosen).changed)


def _refuse(setting: nodes.Setting) -> None:
    """Raise BadArguments for a setting that a view cannot have, and the errors of unknown settings and
    values."""
    value = Settings({setting.name: setting.value})[setting.name]
    if setting.name in _INSERT_SETTINGS:
        raise errors.BadArguments(
            f"{setting.name} is a setting of the INSERT that fires a view, not of the view.",
            hint=f"Leave it out of the query; SET {setting.name} = {setting.value}, or say it"
            " in the SETTINGS of the INSERT.",
        )
    if setting.name == "snapshot":
        raise errors.BadArguments(
            "A materialized view sees the blocks that are inserted, not a snapshot.",
            hint="Leave SETTINGS snapshot out of its query.",
        )
    if setting.name in _OF_ANSWERS and value:
        raise errors.BadArguments(
            f"{setting.name} is a setting of one SELECT; a materialized view does not keep it.",
            hint=_OF_ANSWERS[setting.name],
        )

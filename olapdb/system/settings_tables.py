"""system.settings, merge_tree_settings and functions."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.config import SESSION_SETTINGS, TABLE_SETTINGS, SettingValue
from olapdb.system.registry import Row, SystemContext, SystemTable
from olapdb.types import STRING, UINT8


def _text(value: SettingValue) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _settings(context: SystemContext) -> Iterator[Row]:
    changed = context.settings.changed
    for name, definition in sorted(SESSION_SETTINGS.items()):
        yield (
            name, _text(context.settings[name]), _text(definition.default), int(name in changed),
            definition.description, definition.type, int(definition.neutral),
        )  # fmt: skip


def _table_settings(context: SystemContext) -> Iterator[Row]:
    for name, definition in sorted(TABLE_SETTINGS.items()):
        yield name, _text(definition.default), definition.description, definition.type


def _functions(context: SystemContext) -> Iterator[Row]:
    from olapdb.functions import aggregate_names, function_names

    yield from ((name, 0) for name in sorted(function_names()))
    yield from ((name, 1) for name in sorted(aggregate_names()))


TABLES = (
    SystemTable(
        "settings",
        (
            ("name", STRING), ("value", STRING), ("default", STRING), ("changed", UINT8),
            ("description", STRING), ("type", STRING), ("is_neutral", UINT8),
        ),
        _settings,
    ),
    SystemTable(
        "merge_tree_settings",
        (("name", STRING), ("value", STRING), ("description", STRING), ("type", STRING)),
        _table_settings,
    ),
    SystemTable("functions", (("name", STRING), ("is_aggregate", UINT8)), _functions),
)  # fmt: skip

"""system.settings, merge_tree_settings and functions."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.bind.special_calls import SPECIAL_CALLS
from olapdb.config import SESSION_SETTINGS, TABLE_SETTINGS, SettingDefinition, SettingValue
from olapdb.config.neutral import OBSOLETE
from olapdb.config.setting_types import SESSION_TYPES, TABLE_TYPES
from olapdb.functions.aggregates.name_parts import aggregate_descriptions
from olapdb.functions.registry import function_descriptions
from olapdb.functions.windows import window_names
from olapdb.sql.dictionary_functions import DICTIONARY_FUNCTIONS
from olapdb.system.function_tables import create_query
from olapdb.system.registry import Row, SystemContext, SystemTable


def _text(value: SettingValue) -> str:
    """Return a setting's value as text; booleans as "0" and "1", floats without ".0"."""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    return str(value)


def _minimum(definition: SettingDefinition) -> str | None:
    """Return the lowest allowed value as text. None if there is no minimum."""
    return None if definition.minimum is None else _text(definition.minimum)


def _settings(context: SystemContext) -> Iterator[Row]:
    """List the session settings by name, with their values in this session."""
    changed = context.settings.changed
    for name, definition in sorted(SESSION_SETTINGS.items()):
        yield (
            name,
            _text(context.settings[name]),
            _text(definition.default),
            int(name in changed),
            definition.description,
            SESSION_TYPES.get(name, definition.type),
            int(definition.neutral),
            _minimum(definition),
            None,
            [],
            0,
            "",
            int(name in OBSOLETE),
        )


def _table_settings(context: SystemContext) -> Iterator[Row]:
    """List the settings of MergeTree tables by name, with their defaults."""
    for name, definition in sorted(TABLE_SETTINGS.items()):
        default = _text(definition.default)
        yield (
            name,
            default,
            definition.description,
            TABLE_TYPES.get(name, definition.type),
            default,
            0,
            _minimum(definition),
            None,
            [],
            0,
            0,
        )


def _functions(context: SystemContext) -> Iterator[Row]:
    """List the functions that can be called: scalar ones, aggregates, window functions, then those that users made."""
    for name, insensitive, alias_to in function_descriptions():
        yield name, 0, int(insensitive), alias_to, "", "System"
    for name in sorted((DICTIONARY_FUNCTIONS - {"dictGetAll"}) | SPECIAL_CALLS):
        yield name, 0, 0, "", "", "System"
    for name, insensitive, alias_to in aggregate_descriptions():
        yield name, 1, int(insensitive), alias_to, "", "System"
    for name in window_names():
        yield name, 1, 0, "", "", "System"
    for function in context.snapshot.functions.values():
        origin = "SQLUserDefined" if function.language == "sql" else "ExecutableUserDefined"
        yield (
            function.full_name if function.database else function.name,
            int(function.aggregate),
            0,
            "",
            create_query(function),
            origin,
        )


TABLES = (
    SystemTable(
        "settings",
        """name String, value String, default String, changed UInt8, description String,
        type String, is_neutral UInt8, min Nullable(String), max Nullable(String),
        disallowed_values Array(String), readonly UInt8, alias_for String, is_obsolete UInt8""",
        _settings,
    ),
    SystemTable(
        "merge_tree_settings",
        """name String, value String, description String, type String, default String,
        changed UInt8, min Nullable(String), max Nullable(String),
        disallowed_values Array(String), readonly UInt8, is_obsolete UInt8""",
        _table_settings,
    ),
    SystemTable(
        "functions",
        """name String, is_aggregate UInt8, case_insensitive UInt8, alias_to String,
        create_query String, origin Enum8('System' = 0, 'SQLUserDefined' = 1,
        'ExecutableUserDefined' = 2, 'WasmUserDefined' = 3)""",
        _functions,
    ),
)

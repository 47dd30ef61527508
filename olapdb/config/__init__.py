"""Settings: which there are, what they hold, and what we do not do yet.

Every setting of a query, a session or a table is looked up here; an unknown one is an error, and
so is a value of a known one that we would have to ignore.  Settings that cannot mean anything in
process (`mutations_sync`: we always wait) are accepted and marked `neutral`.
"""

from olapdb.config.definition import SettingDefinition, SettingValue
from olapdb.config.session import FUNCTION_SETTINGS, SESSION_SETTINGS
from olapdb.config.settings import Settings, lookup, setting_text, table_settings
from olapdb.config.table import FIXED_SETTINGS, MEMORY_SETTINGS, TABLE_SETTINGS, is_deduplication

__all__ = [
    "FIXED_SETTINGS",
    "FUNCTION_SETTINGS",
    "MEMORY_SETTINGS",
    "SESSION_SETTINGS",
    "TABLE_SETTINGS",
    "SettingDefinition",
    "SettingValue",
    "Settings",
    "is_deduplication",
    "lookup",
    "setting_text",
    "table_settings",
]

"""All settings of queries and sessions, collected from the modules of their subjects."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from olapdb.config.definition import SettingDefinition, known_settings
from olapdb.config.fixed_settings import FIXED_AT_DEFAULT, OF_WHAT_IS_REFUSED, ONE_WAY
from olapdb.config.formats import FORMAT_SETTINGS
from olapdb.config.function_settings import FUNCTION_DEFINITIONS, INFERENCE_SETTINGS
from olapdb.config.limits import LIMIT_DEFINITIONS
from olapdb.config.neutral import NEUTRAL_SETTINGS
from olapdb.config.query_settings import QUERY_DEFINITIONS
from olapdb.config.server_settings import SERVER_SETTINGS
from olapdb.config.view_settings import VIEW_DEFINITIONS
from olapdb.config.write_settings import WRITE_DEFINITIONS

FUNCTION_SETTINGS = frozenset(
    (*(definition.name for definition in FUNCTION_DEFINITIONS), *INFERENCE_SETTINGS)
)
"""The names of the settings that change what a scalar function means; see functions/settings.py."""

_OWN = {
    definition.name: definition
    for definition in (
        *QUERY_DEFINITIONS,
        *FUNCTION_DEFINITIONS,
        *WRITE_DEFINITIONS,
        *VIEW_DEFINITIONS,
        *LIMIT_DEFINITIONS,
        *FORMAT_SETTINGS,
        *NEUTRAL_SETTINGS,
    )
}
_KNOWN = (
    *(
        SettingDefinition(name, default, "Accepted; it means nothing in process.", neutral=True)
        for name, default in known_settings(SERVER_SETTINGS)
    ),
    *(
        SettingDefinition(
            name, default, "Accepted; what it is about is refused by its own name.", neutral=True
        )
        for name, default in known_settings(OF_WHAT_IS_REFUSED)
    ),
    *(
        SettingDefinition(
            name, default, "Accepted; olapdb has one way, with the same rows.", neutral=True
        )
        for name, default in known_settings(ONE_WAY)
    ),
    *(
        SettingDefinition(
            name, default, "Another value would change answers, formats or limits.", only=(default,)
        )
        for name, default in known_settings(FIXED_AT_DEFAULT)
    ),
)
SESSION_SETTINGS: Mapping[str, SettingDefinition] = MappingProxyType(
    {definition.name: definition for definition in _KNOWN} | _OWN
)
"""The settings of queries and sessions by name."""

"""toJSONString where a setting of JSON formats, or of times, is not at its default.

The writers of formats lie above the functions, so that the binder makes these calls."""

from __future__ import annotations

import pyarrow as pa

from olapdb.bind import constants
from olapdb.bind.contracts import Binder
from olapdb.config import SESSION_SETTINGS, Settings
from olapdb.formats.base import Header
from olapdb.formats.json_values import JsonStyle, json_texts
from olapdb.functions.base import Argument, Column
from olapdb.functions.kernels import columns
from olapdb.functions.registry import resolve_scalar
from olapdb.functions.scalar import Invocation, standard_call
from olapdb.plan.expressions import Call, Constant, Expression
from olapdb.sql import nodes as sql
from olapdb.types import STRING

JSON_SETTINGS = frozenset(
    name
    for name in SESSION_SETTINGS
    if name.startswith("output_format_json_") or name == "date_time_output_format"
)
"""The settings of formats that toJSONString follows."""


def bind_json_text(binder: Binder, node: sql.Function) -> Expression | None:
    """Bind toJSONString(x) as the settings of JSON formats say; a constant x gives a constant.

    Returns None, so that the caller binds the function itself, if all these settings are at their defaults or if there
    is not exactly one argument. Raises the errors of the function."""
    settings = Settings.of(binder.context.settings)
    changed = [n for n in sorted(JSON_SETTINGS) if settings[n] != SESSION_SETTINGS[n].default]
    if not changed:
        return None
    argument = binder.bind(node.arguments[0]) if len(node.arguments) == 1 else None
    if argument is None:
        return None
    given = Argument(argument.type, argument.value if isinstance(argument, Constant) else None)
    resolve_scalar(node.name, [given])  # raises for what has no text

    def kernel(arrays: list[Column], call: Invocation) -> pa.Array:
        """Return the JSON text of each value of the argument."""
        style = JsonStyle(Header((), (), settings, call.environment))
        return json_texts(columns.as_array(arrays[0], call.rows), call.types[0], style)

    # Calls of one name are equal, and what one keeps of a part would be the other's.
    name = " ".join((node.name, *(f"{setting}={settings[setting]}" for setting in changed)))
    function = standard_call(name, [given], STRING, kernel)
    bound = Call(function.type, name, (argument,), function)
    return constants.fold(bound, binder.queries.scope.environment)

"""Parameters of a session: values that `SET param_name = …` gives to all later statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from olapdb.bind.parameters import SET_PREFIX, SetParameter, set_parameter
from olapdb.sql import nodes
from olapdb.sql.identifier_parameters import with_identifiers
from olapdb.statements.context import Parameters


def is_parameter(setting: nodes.Setting) -> bool:
    """Return whether SET gives a parameter its value, and changes no setting."""
    return setting.name.startswith(SET_PREFIX)


class SessionParameters:
    """The parameters of a session, by name. A statement's own parameters win over them."""

    def __init__(self) -> None:
        self._values: Mapping[str, SetParameter] = {}

    def set(self, settings: Iterable[nodes.Setting]) -> None:
        """Store the values that SET gives to parameters; DEFAULT removes one. Settings among them
        are ignored."""
        values = dict(self._values)
        for given in settings:
            if is_parameter(given):
                name = given.name.removeprefix(SET_PREFIX)
                values.pop(name, None)
                if given.value is not None:
                    values[name] = set_parameter(given.value)
        self._values = values

    def with_names(self, text: str, given: Parameters) -> str:
        """Return the statement's text with each `{name:Identifier}` replaced by the parameter's
        value. A statement's own parameter wins over the session's.

        Raises UnknownQueryParameter and BadQueryParameter."""
        if "Identifier" not in text:
            return text
        values: dict[str, object] = {name: value.text for name, value in self._values.items()}
        return with_identifiers(
            text, values | dict(given) if isinstance(given, Mapping) else values
        )

    def beside(self, given: Parameters, text: str) -> Parameters:
        """Return the statement's parameters together with the session's, over which they win.
        Return them unchanged if they are positional, or if the text names no parameter."""
        has_others = given and not isinstance(given, Mapping)
        if not self._values or has_others or not ("{" in text or ":" in text):
            return given
        return {**self._values, **(given if isinstance(given, Mapping) else {})}

"""Parameters of type Identifier, `{t:Identifier}`: names that are put into the text of a statement.

The grammar knows names alone, so that a name is put in before the statement is parsed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from olapdb.errors import BadQueryParameter, UnknownQueryParameter
from olapdb.sql.literals import quote_name
from olapdb.sql.tokens import HEREDOC, QUOTED

_PARAMETER = re.compile(
    rf"{QUOTED}|{HEREDOC}|\{{\s*(?P<name>\w+)\s*:\s*Identifier\s*\}}", re.DOTALL
)


def with_identifiers(text: str, values: Mapping[str, object]) -> str:
    """Return the text with a quoted name for each `{name:Identifier}` outside of quotes and comments.

    Raises UnknownQueryParameter for one without a value, BadQueryParameter for one that is no text."""

    def replacement(match: re.Match[str]) -> str:
        """Return the quoted name that an `{name:Identifier}` stands for; other matches (strings, comments)
        unchanged."""
        name = match["name"]
        if name is None:
            return match[0]
        if name not in values:
            raise UnknownQueryParameter(
                f"No value was given for the parameter {name!r}.",
                hint=f"Pass parameters as a mapping with this name, or SET param_{name} = '…'.",
            )
        value = values[name]
        if not isinstance(value, str) or not value:
            raise BadQueryParameter(f"The parameter {name!r} is the name of an object: a text.")
        return quote_name(value)

    return _PARAMETER.sub(replacement, text)

"""Steps of a path that only Dynamic and JSON have, as parts of an Identifier: `.:Int64`, `.^key`,
`.@key`."""

from __future__ import annotations

import re

_STEP = re.compile(r"([:^@])`([^`\\]*)`")


def json_type_step(name: str) -> str:
    r"""Return the part of an Identifier that takes the values of a type, as it is written: `:\`Int64\``."""
    return f":`{name}`"


def json_object_step(key: str) -> str:
    r"""Return the part of an Identifier that takes the object at a key, as it is written: `^\`a\``."""
    return f"^`{key}`"


def json_member_step(key: str) -> str:
    r"""Return the part of an Identifier that takes the value or the object at a key: `@\`a\``."""
    return f"@`{key}`"


def read_json_step(part: str) -> tuple[str, str] | None:
    """Return (":", type), ("^", key) or ("@", key) of a part of an Identifier; None for a name."""
    match = _STEP.fullmatch(part)
    return (match[1], match[2]) if match else None

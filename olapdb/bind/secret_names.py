"""Constants of ciphers in the names of result columns: `encrypt('aes-128-ecb', text, [HIDDEN id: 1])`.

ClickHouse shows a number in place of a constant key or text; equal constants have one number.
"""

from __future__ import annotations

from dataclasses import replace

from olapdb.bind.syntax import rewrite, walk
from olapdb.sql import format as sql_format
from olapdb.sql import nodes as sql

_FIRST_SECRETS = {"HMAC": 2, "hmac": 2}
"""The first argument that is hidden; of the ciphers the text, which follows the mode."""
_VARYING = frozenset(
    {
        "materialize",
        "rand",
        "rand32",
        "rand64",
        "randomString",
        "generateUUIDv4",
        "rowNumberInBlock",
    }
)


class SecretNames:
    """The numbers of the secrets of a SELECT."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def named(self, column: sql.Expression, ciphers: frozenset[str]) -> sql.Expression:
        """Return a column as its name shows it: the constants of calls of the functions `ciphers` are replaced by
        numbered names."""

        def change(node: sql.Node) -> sql.Node | None:
            """Return a cipher's call with its constants hidden; those inside are numbered first."""
            if isinstance(node, sql.Query):
                return node
            if not isinstance(node, sql.Function) or node.name not in ciphers:
                return None
            first = _FIRST_SECRETS.get(node.name, 1)
            inner = [rewrite(argument, change) for argument in node.arguments]
            shown = [
                self._hidden(argument) if at >= first and _is_constant(argument) else inner[at]
                for at, argument in enumerate(node.arguments)
            ]
            return replace(node, arguments=tuple(shown))

        return rewrite(column, change)

    def _hidden(self, argument: sql.Expression) -> sql.Expression:
        """Return the name that stands for a constant."""
        number = self._numbers.setdefault(sql_format.column_name(argument), len(self._numbers) + 1)
        return sql.Identifier((f"[HIDDEN id: {number}]",), position=argument.position)


def _is_constant(argument: sql.Expression) -> bool:
    """Return whether an argument is a constant expression: no column is read below it."""
    parts = list(walk(argument))
    if any(isinstance(p, sql.Identifier | sql.Subquery | sql.Query | sql.Star) for p in parts):
        return False
    return not any(isinstance(p, sql.Function) and p.name in _VARYING for p in parts)

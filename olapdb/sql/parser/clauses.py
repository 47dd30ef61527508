"""Small clauses that several statements share."""

from __future__ import annotations

from typing import NamedTuple

from olapdb.config import SESSION_SETTINGS, TABLE_SETTINGS
from olapdb.errors import ClusterDoesntExist, QueryIsProhibited, TypeMismatch
from olapdb.sql.nodes import Setting
from olapdb.sql.parser import operands
from olapdb.sql.parser.cursor import TokenCursor

_SETTING_WORDS: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "DEFAULT": None}


class LikeClause(NamedTuple):
    """`[NOT] LIKE | ILIKE 'pattern'`; `pattern` is None where the clause was left out."""

    pattern: str | None = None
    negated: bool = False
    case_insensitive: bool = False


def refuse_on_cluster(cursor: TokenCursor, creates: bool = False) -> None:
    """Raise QueryIsProhibited if ON CLUSTER is next; ClusterDoesntExist in a statement that `creates`
    or begins with SYSTEM."""
    if not cursor.sees("ON", "CLUSTER"):
        return
    kind = ClusterDoesntExist if creates else QueryIsProhibited
    raise kind(
        "ON CLUSTER is not supported: there are no clusters.",
        hint="A warehouse is shared by the processes that open it: leave the clause out.",
        position=cursor.position(),
    )


def parse_comment_clause(cursor: TokenCursor) -> str:
    """Parse `COMMENT 'text'` if it is next; "" if it is not."""
    return parse_comment(cursor) if cursor.take("COMMENT") else ""


def parse_comment(cursor: TokenCursor) -> str:
    """Parse the string behind COMMENT."""
    return cursor.string("the comment, quoted")


def parse_like_clause(cursor: TokenCursor) -> LikeClause:
    """Parse `[NOT] LIKE | ILIKE 'pattern'`; the pattern is None if it is not next."""
    negated = cursor.take("NOT")
    operator = cursor.take_one_of("LIKE", "ILIKE")
    if operator:
        return LikeClause(cursor.string("a pattern, quoted"), negated, operator == "ILIKE")
    if negated:
        raise cursor.expected("LIKE or ILIKE")
    return LikeClause()


_BEHIND_SETTING = frozenset(
    {",", ")", "FORMAT", "VALUES", "SELECT", "WITH", "AS", "INTO", "COMMENT"}
)
"""What may stand behind the name of a setting that has no value."""


def parse_settings_clause(cursor: TokenCursor) -> tuple[Setting, ...]:
    """Parse `SETTINGS a = 1, …` if it is next; () if it is not."""
    return parse_settings(cursor) if cursor.take("SETTINGS") else ()


_PARAMETER_PREFIX = "param_"
"""What SET writes before the name of a parameter of queries."""


def parse_settings(cursor: TokenCursor) -> tuple[Setting, ...]:
    """Parse `a = 1, b = 'x'`, behind the word SETTINGS or SET."""
    settings = [_parse_setting(cursor)]
    while cursor.key == "," and cursor.is_name(1) and _is_setting_after_comma(cursor):
        cursor.advance()
        settings.append(_parse_setting(cursor))
    return tuple(settings)


def _is_setting_after_comma(cursor: TokenCursor) -> bool:
    """Return whether `, name =`, or a name alone, is next rather than the next action of an ALTER."""
    step = 2
    while cursor.key_after(step) == ".":
        step += 2
    ended = cursor.kind_after(step) == "end"
    return ended or cursor.key_after(step) == "=" or cursor.key_after(step) in _BEHIND_SETTING


def _parse_setting(cursor: TokenCursor) -> Setting:
    """Parse `name = value` of SETTINGS or SET; a name alone means true. Any name is taken here.

    Raises TypeMismatch for a name alone of a setting that is no Bool."""
    token = cursor.token
    name = cursor.dotted_name("the name of a setting")
    if cursor.key != "=" and (cursor.ended or cursor.key in _BEHIND_SETTING):
        definition = SESSION_SETTINGS.get(name) or TABLE_SETTINGS.get(name)
        if definition is not None and not isinstance(definition.default, bool):
            raise TypeMismatch(
                f"Setting {name} is no Bool, so it has a value.",
                hint=f"Write {name} = value.",
                position=cursor.position(token),
            )
        return Setting(name, True, position=cursor.position(token))
    cursor.expect("=")
    if name.startswith(_PARAMETER_PREFIX) and (text := _parse_parameter_text(cursor)) is not None:
        return Setting(name, text, position=cursor.position(token))
    return Setting(name, _parse_setting_value(cursor), position=cursor.position(token))


def _parse_parameter_text(cursor: TokenCursor) -> str | None:
    """Parse an array, a tuple, a map, NULL or a bare word, the value that SET gives to a parameter; return
    its text. None for the literals that settings have too."""
    start = cursor.at
    if cursor.key in ("[", "(", "{"):
        end = cursor.closing(start)
        if end is None:
            raise cursor.expected("a value whose brackets are closed")
        cursor.move_to(end + 1)
        return cursor.text_since(start)
    if cursor.key == "DEFAULT" or cursor.key in _SETTING_WORDS or not cursor.is_name():
        return None
    return cursor.advance().text


def _parse_setting_value(cursor: TokenCursor) -> bool | int | float | str | None:
    """Parse a literal; DEFAULT gives None."""
    token = cursor.token
    if token.kind == "string":
        return cursor.advance().text
    if token.kind == "number" or (token.key == "-" and cursor.kind_after(1) == "number"):
        return operands.parse_number(cursor, negative=cursor.take("-")).value
    if token.key == "{":
        return _parse_setting_map(cursor)
    if token.key in _SETTING_WORDS:
        return _SETTING_WORDS[cursor.advance().key]
    raise cursor.expected("a number, a quoted string, true, false or DEFAULT")


def _parse_setting_map(cursor: TokenCursor) -> str:
    """Parse `{'a': 'b', …}`; return its text in ClickHouse's form, `{'a':'b'}`."""
    cursor.expect("{")
    items: list[str] = []
    while not cursor.take("}"):
        if items:
            cursor.expect(",")
        key = _quoted(cursor.string("a key, quoted"))
        cursor.expect(":")
        items.append(f"{key}:{_quoted(cursor.string('a value, quoted'))}")
    return "{" + ",".join(items) + "}"


def _quoted(text: str) -> str:
    """Return a text in single quotes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"

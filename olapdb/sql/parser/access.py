"""Statements about users, roles, quotas, policies and profiles: there is one user, who manages none.

They are refused as ClickHouse in process refuses them, whose user may not manage access either.
"""

from __future__ import annotations

from olapdb.errors import AccessDenied, SupportIsDisabled, UnknownRole
from olapdb.sql.parser.cursor import TokenCursor

_HINTS = {
    "USER": "Access is by the file system.",
    "ROLE": "Access is by the file system.",
    "ROW": "Make a view with the condition.",
    "POLICY": "Make a view with the condition.",
    "QUOTA": "Use the settings max_rows_to_read and max_execution_time.",
    "SETTINGS": "Pass settings to connect(), or with SET.",
    "PROFILE": "Pass settings to connect(), or with SET.",
}
"""The objects of access management by their first word, and what olapdb has in their place."""
_SECOND_WORDS = {"ROW": "POLICY", "SETTINGS": "PROFILE"}
_LISTS = {
    ("USERS",): "USER",
    ("ROLES",): "ROLE",
    ("QUOTAS",): "QUOTA",
    ("QUOTA",): "QUOTA",
    ("POLICIES",): "POLICY",
    ("ROW", "POLICIES"): "POLICY",
    ("PROFILES",): "PROFILE",
    ("SETTINGS", "PROFILES"): "PROFILE",
    ("ACCESS",): "USER",
}
"""What SHOW lists, and the kind of object."""
_OWN_NAMES = frozenset({"DEFAULT", "CURRENT_USER", "ALL"})


def refuse_access_management(cursor: TokenCursor) -> None:
    """Raise the error of a statement about access, with the cursor at its first word; for any other
    statement do nothing.

    Raises AccessDenied for the right to manage access, UnknownRole for a role or another user, and
    SupportIsDisabled for what the server of ClickHouse has switched off."""
    key = cursor.key
    if key in ("CREATE", "ALTER", "DROP", "MOVE"):
        _refuse_object(cursor, 1, key)
    elif key == "SHOW" and cursor.key_after(1) == "CREATE":
        _refuse_object(cursor, 2, "SHOW CREATE")
    elif key == "SHOW":
        _refuse_list(cursor)
    elif key in ("GRANT", "REVOKE"):
        _refuse_grant(cursor, "TO" if key == "GRANT" else "FROM")
    elif key == "SET":
        _refuse_role(cursor)
    elif key == "EXECUTE" and cursor.key_after(1) == "AS":
        raise SupportIsDisabled(
            "EXECUTE AS is not supported: there is one user.", position=cursor.position()
        )


def _refuse_object(cursor: TokenCursor, at: int, verb: str) -> None:
    """Raise AccessDenied if an object of access management stands `at` tokens ahead."""
    word = cursor.key_after(at)
    if word == "MASKING" and cursor.key_after(at + 1) == "POLICY":
        raise SupportIsDisabled(
            "Masking policies are not supported.",
            hint="Make a view of the columns.",
            position=cursor.position(),
        )
    second = _SECOND_WORDS.get(word)
    if word in _HINTS and (second is None or cursor.key_after(at + 1) == second):
        raise _denied(cursor, f"{verb} {word if second is None else f'{word} {second}'}", word)


def _refuse_list(cursor: TokenCursor) -> None:
    """Raise AccessDenied for a SHOW of objects of access management."""
    for words, kind in _LISTS.items():
        if all(cursor.key_after(1 + at) == word for at, word in enumerate(words)):
            raise _denied(cursor, f"SHOW {' '.join(words)}", kind)


def _refuse_grant(cursor: TokenCursor, before_names: str) -> None:
    """Raise UnknownRole for a GRANT to another user or role, AccessDenied for one to the own user."""
    name, at = "", 1
    while (key := cursor.key_after(at)) not in ("", ";"):
        if key == before_names:
            name = cursor.key_after(at + 1)
        at += 1
    verb = cursor.key
    if name and name not in _OWN_NAMES:
        raise _unknown_role(cursor, name.lower())
    raise _denied(cursor, verb, "USER")


def _refuse_role(cursor: TokenCursor) -> None:
    """Raise UnknownRole for SET ROLE, AccessDenied for SET DEFAULT ROLE."""
    if cursor.sees("SET", "DEFAULT", "ROLE"):
        raise _denied(cursor, "SET DEFAULT ROLE", "ROLE")
    if cursor.sees("SET", "ROLE") and cursor.key_after(2) not in ("=", "NONE", "DEFAULT", "ALL"):
        raise _unknown_role(cursor, cursor.key_after(2).lower())


def _denied(cursor: TokenCursor, what: str, kind: str) -> AccessDenied:
    """Return the error of a statement about users and rights, which olapdb does not have."""
    return AccessDenied(
        f"{what}: there is one user, who may not manage access.",
        hint=_HINTS[kind],
        position=cursor.position(),
    )


def _unknown_role(cursor: TokenCursor, name: str) -> UnknownRole:
    """Return the error of a role or user that does not exist."""
    return UnknownRole(
        f"There is no user or role {name}.",
        hint="Access is by the file system: there is one user, default.",
        position=cursor.position(),
    )

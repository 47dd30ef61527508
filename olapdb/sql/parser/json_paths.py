"""Steps of a path that only Dynamic and JSON have: `.:Int64`, `.^key`, `.@key` and `[]`."""

from __future__ import annotations

from olapdb.sql.json_steps import json_member_step, json_object_step, json_type_step
from olapdb.sql.parser import type_names
from olapdb.sql.parser.cursor import TokenCursor


def parse_step(cursor: TokenCursor) -> list[str] | None:
    """Parse the next steps of a path behind a name, and return the parts that stand for them in an Identifier.

    `.:T` is the values of type T, `.^key` the object at a key, `.@key` the value or the object there, `[]` the objects of an array. None if something
    else is next; the cursor then stays."""
    if cursor.key == "[" and cursor.key_after(1) == "]":
        name = "JSON"
        while cursor.key == "[" and cursor.key_after(1) == "]":
            cursor.skip(2)
            name = f"Array({name})"
        return [json_type_step(name)]
    if cursor.key != ".":
        return None
    if cursor.key_after(1) == ":":
        cursor.skip(2)
        if cursor.token.kind == "name":
            return [json_type_step(cursor.identifier("a data type"))]
        return [json_type_step(type_names.parse_data_type(cursor).name)]
    if cursor.key_after(1) == "^":
        cursor.skip(2)
        return [json_object_step(cursor.identifier("a key"))]
    if cursor.key_after(1) == "@":
        cursor.skip(2)
        return [json_member_step(cursor.identifier("a key"))]
    return None

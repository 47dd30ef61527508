"""INTO OUTFILE behind a query."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from olapdb.errors import BadArguments, InternalError
from olapdb.sql import nodes
from olapdb.sql.parser import queries
from olapdb.sql.parser.cursor import TokenCursor


def parse_outfile(cursor: TokenCursor, query: nodes.Query) -> nodes.OutFile:
    """Parse INTO OUTFILE, and the FORMAT and SETTINGS of the query behind it."""
    position = cursor.position()
    cursor.expect("INTO")
    cursor.expect("OUTFILE")
    path = cursor.string("a path in quotes")
    and_stdout = cursor.take("AND", "STDOUT")
    mode: Literal["APPEND", "TRUNCATE", ""] = cursor.take_one_of("APPEND", "TRUNCATE")
    if mode and cursor.key in ("APPEND", "TRUNCATE"):
        raise BadArguments("INTO OUTFILE takes APPEND or TRUNCATE, not both.", position=position)
    and_stdout = cursor.take("AND", "STDOUT") or and_stdout
    compression, level = parse_compression(cursor)
    settings, output = queries.parse_output(cursor)
    if not isinstance(query, nodes.Select | nodes.SetOperation):
        raise InternalError(f"A query of an unknown kind: {type(query).__name__}.")
    query = replace(query, settings=query.settings + settings, format=output or query.format)
    return nodes.OutFile(query, path, mode, and_stdout, compression, level, position=position)


def parse_compression(cursor: TokenCursor) -> tuple[str, int | None]:
    """Parse `COMPRESSION 'name' [LEVEL n]`; return "" and None if it is not next."""
    if not cursor.take("COMPRESSION"):
        return "", None
    name = cursor.string("a compression in quotes")
    return name, cursor.integer() if cursor.take("LEVEL") else None

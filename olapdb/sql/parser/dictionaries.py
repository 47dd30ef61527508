"""CREATE DICTIONARY."""

from __future__ import annotations

from dataclasses import field

from olapdb.errors import Position, SyntaxError
from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.sql.parser import clauses, expressions, operands, type_names
from olapdb.sql.parser.cursor import TokenCursor

_FLAGS = ("IS_OBJECT_ID", "HIERARCHICAL", "BIDIRECTIONAL", "INJECTIVE")
_SOURCES = ("CLICKHOUSE", "FILE", "NULL")
_OTHER_SOURCE = (
    "Load the rows into a table, and write SOURCE(CLICKHOUSE(TABLE 't')): the dictionary always has"
    " the table's rows."
)


@dataclass
class _Clauses:
    """The clauses behind the columns of a dictionary, in any order."""

    primary_key: tuple[str, ...] = ()
    source: nodes.DictionaryClause | None = None
    layout: nodes.DictionaryClause | None = None
    lifetime: tuple[int, int] | None = None
    range: tuple[str, str] | None = None
    settings: tuple[nodes.Setting, ...] = ()
    comment: str = ""
    seen: set[str] = field(default_factory=set)


def parse_create_dictionary(
    cursor: TokenCursor, or_replace: bool, position: Position
) -> nodes.CreateDictionary:
    """Parse what follows CREATE [OR REPLACE] DICTIONARY."""
    if_not_exists = cursor.if_not_exists()
    name = cursor.table_name()
    if cursor.key == "UUID" and cursor.kind_after(1) == "string":
        raise cursor.refused("A UUID of one's own", "Leave it out: it is made.")
    clauses.refuse_on_cluster(cursor, creates=True)
    cursor.expect("(")
    attributes = _parse_attributes(cursor)
    parsed = _Clauses()
    while _parse_clause(cursor, parsed):
        pass
    return nodes.CreateDictionary(
        name,
        attributes,
        parsed.primary_key,
        parsed.source,
        parsed.layout,
        parsed.lifetime,
        parsed.range,
        parsed.settings,
        parsed.comment,
        if_not_exists,
        or_replace,
        position=position,
    )


def _parse_attributes(cursor: TokenCursor) -> tuple[nodes.DictionaryAttribute, ...]:
    """Parse `a Type, b Type)`, at least one, with or without a comma behind the last."""
    attributes = [_parse_attribute(cursor)]
    while cursor.take(",") and cursor.key != ")":
        attributes.append(_parse_attribute(cursor))
    cursor.expect(")")
    return tuple(attributes)


def _parse_attribute(cursor: TokenCursor) -> nodes.DictionaryAttribute:
    """Parse `name Type [DEFAULT value | EXPRESSION expression] [flags]`."""
    position = cursor.position()
    name = cursor.identifier("a column of the dictionary")
    data_type = type_names.parse_data_type(cursor)
    default = expression = None
    flags: list[str] = []
    while True:
        if cursor.take("DEFAULT"):
            default = expressions.parse_expression(cursor)
        elif cursor.take("EXPRESSION"):
            expression = expressions.parse_expression(cursor)
        elif flag := cursor.take_one_of(*_FLAGS):
            flags.append(flag)
        else:
            break
    return nodes.DictionaryAttribute(
        name, data_type, default, expression, tuple(flags), position=position
    )


def _parse_clause(cursor: TokenCursor, parsed: _Clauses) -> bool:
    """Parse the next clause into `parsed`; return False if no clause is next.

    Raises SyntaxError for a clause that is written twice."""
    start, key = cursor.position(), cursor.key
    if cursor.take("PRIMARY", "KEY"):
        parsed.primary_key = _parse_key(cursor)
    elif cursor.take("SOURCE", "("):
        parsed.source = _parse_source(cursor)
        cursor.expect(")")
    elif cursor.take("LAYOUT", "("):
        parsed.layout = _parse_parameters(cursor)
        cursor.expect(")")
    elif cursor.take("LIFETIME", "("):
        parsed.lifetime = _parse_lifetime(cursor)
        cursor.expect(")")
    elif cursor.take("RANGE", "("):
        parsed.range = _parse_range(cursor)
        cursor.expect(")")
    elif cursor.take("SETTINGS", "("):
        parsed.settings = clauses.parse_settings(cursor)
        cursor.expect(")")
    elif cursor.take("COMMENT"):
        parsed.comment = clauses.parse_comment(cursor)
    else:
        return False
    if key in parsed.seen:
        raise SyntaxError(f"A dictionary has one {key}.", position=start)
    parsed.seen.add(key)
    return True


def _parse_key(cursor: TokenCursor) -> tuple[str, ...]:
    """Parse `a`, `a, b` or `(a, b)` behind PRIMARY KEY."""
    bracketed = cursor.take("(")
    names = cursor.comma_separated(lambda c: c.identifier("a column of the key"))
    if bracketed:
        cursor.expect(")")
    return names


def _parse_source(cursor: TokenCursor) -> nodes.DictionaryClause:
    """Parse `CLICKHOUSE(…)`, `FILE(…)` or `NULL()`; refuse other sources by their name."""
    if cursor.key not in _SOURCES:
        raise cursor.refused(f"SOURCE({cursor.token.text.upper()})", _OTHER_SOURCE)
    return _parse_parameters(cursor)


def _parse_parameters(cursor: TokenCursor) -> nodes.DictionaryClause:
    """Parse `KIND(NAME value …)`; the parentheses may be left out where there is no parameter."""
    position = cursor.position()
    kind = cursor.advance().key if cursor.key == "NULL" else cursor.identifier("a kind").upper()
    parameters: list[tuple[str, nodes.Expression]] = []
    if cursor.take("("):
        while not cursor.take(")"):
            name = cursor.identifier("a parameter").upper()
            parameters.append((name, _parse_value(cursor)))
    return nodes.DictionaryClause(kind, tuple(parameters), position=position)


def _parse_value(cursor: TokenCursor) -> nodes.Expression:
    """Parse the value of a parameter: a literal, a name, or a call such as tcpPort()."""
    if cursor.token.kind == "number" or cursor.key == "-":
        return operands.parse_number(cursor, negative=cursor.take("-"))
    return operands.parse_operand(cursor)


def _parse_lifetime(cursor: TokenCursor) -> tuple[int, int]:
    """Parse `300`, `MIN 100 MAX 300` or `MAX 300 MIN 100`. Raises SyntaxError unless both bounds are there."""
    if cursor.token.kind == "number":
        return 0, cursor.integer()
    bounds: dict[str, int] = {}
    while bound := cursor.take_one_of("MIN", "MAX"):
        bounds[bound] = cursor.integer("seconds")
    if len(bounds) < 2:
        raise cursor.expected("MIN and MAX of the lifetime")
    return bounds["MIN"], bounds["MAX"]


def _parse_range(cursor: TokenCursor) -> tuple[str, str]:
    """Parse `MIN first MAX last`, two columns, in any order."""
    bounds: dict[str, str] = {}
    while bound := cursor.take_one_of("MIN", "MAX"):
        bounds[bound] = cursor.identifier("a column of the dictionary")
    if len(bounds) < 2:
        raise cursor.expected("MIN and MAX of the range")
    return bounds["MIN"], bounds["MAX"]

"""FROM: tables, subqueries, table functions, joins and ARRAY JOIN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

from olapdb.errors import IllegalFinal, Position, SamplingNotSupported, SyntaxError
from olapdb.lazy import LazyModule
from olapdb.sql import nodes
from olapdb.sql.parser import calls, expressions, operands, queries
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.lookahead import alias_follows, call_follows, query_follows
from olapdb.sql.parser.precedence import ADD

if TYPE_CHECKING:
    from olapdb.sql.parser import statements
else:
    statements = LazyModule("olapdb.sql.parser.statements")

Kind = Literal["INNER", "LEFT", "RIGHT", "FULL", "CROSS", "PASTE"]
Strictness = Literal["", "ALL", "ANY", "SEMI", "ANTI", "ASOF"]

_KINDS: tuple[Kind, ...] = get_args(Kind)
_STRICTNESSES: dict[str, Strictness] = {
    "ALL": "ALL",
    "ANY": "ANY",
    "SEMI": "SEMI",
    "ANTI": "ANTI",
    "ASOF": "ASOF",
    "ONLY": "SEMI",
}


def parse_relation(cursor: TokenCursor) -> nodes.Relation:
    """Parse the sources of FROM; joins and commas are left-associative."""
    left = _parse_table_expression(cursor)
    while True:
        position = cursor.position()
        if cursor.take(","):
            right = _parse_table_expression(cursor)
            left = nodes.Join(left, right, "CROSS", comma=True, position=position)
            continue
        joined = parse_joined(cursor, left)
        if joined is None:
            return left
        left = joined


def parse_joined(cursor: TokenCursor, left: nodes.Relation) -> nodes.Relation | None:
    """Parse a JOIN or ARRAY JOIN of `left`; None if neither is next."""
    return _parse_array_join(cursor, left) or _parse_join(cursor, left)


# --- joins


def _parse_array_join(cursor: TokenCursor, left: nodes.Relation) -> nodes.ArrayJoin | None:
    """Parse `[LEFT | INNER] ARRAY JOIN a, b AS c`; None if it is not next."""
    position = cursor.position()
    is_left = cursor.take("LEFT", "ARRAY", "JOIN")
    if not (is_left or cursor.take("ARRAY", "JOIN") or cursor.take("INNER", "ARRAY", "JOIN")):
        return None
    arrays = cursor.comma_separated(operands.parse_column)
    return nodes.ArrayJoin(left, arrays, is_left, position=position)


def _parse_join(cursor: TokenCursor, left: nodes.Relation) -> nodes.Join | None:
    """Parse `[kind] [strictness] JOIN table ON | USING …`; None if no join is next.

    CROSS, PASTE and NATURAL joins have no condition. Raises SyntaxError if another join has none."""
    start = cursor.at
    position = cursor.position()
    natural = cursor.take("NATURAL")
    cursor.take_one_of("GLOBAL", "LOCAL")  # they mean something on several servers only
    before = cursor.take_one_of(*_STRICTNESSES)
    kind = cursor.take_one_of(*_KINDS)
    after = cursor.take_one_of(*_STRICTNESSES)
    if kind in ("LEFT", "RIGHT", "FULL"):
        cursor.take("OUTER")
    if not cursor.take("JOIN"):
        if cursor.at != start:
            raise cursor.expected("JOIN")
        return None
    if before and after:
        raise SyntaxError(f"A join is {before} or {after}, not both.", position=position)
    strictness = _STRICTNESSES.get(before or after, "")
    kind = kind or ("LEFT" if strictness in ("SEMI", "ANTI") else "INNER")
    _check_strictness(kind, strictness, position)
    if natural and (strictness or kind in ("CROSS", "PASTE")):
        raise SyntaxError(f"A NATURAL JOIN cannot be {strictness or kind}.", position=position)
    right = _parse_table_expression(cursor)
    condition: nodes.Expression | None = None
    using: tuple[str, ...] = ()
    if kind not in ("CROSS", "PASTE") and not natural:
        if cursor.take("ON"):
            condition = expressions.parse_expression(cursor)
        elif cursor.take("USING"):
            using = _parse_using(cursor)
        else:
            raise cursor.expected("ON or USING")
    return nodes.Join(left, right, kind, strictness, condition, using, natural, position=position)


def _check_strictness(kind: Kind, strictness: Strictness, position: Position) -> None:
    """Raise SyntaxError for a kind of join that cannot have this strictness."""
    if strictness in ("SEMI", "ANTI") and kind not in ("LEFT", "RIGHT"):
        raise SyntaxError(f"{strictness} JOIN must be LEFT or RIGHT.", position=position)
    if strictness and kind in ("CROSS", "PASTE"):
        raise SyntaxError(f"{kind} JOIN cannot be {strictness}.", position=position)


def _parse_using(cursor: TokenCursor) -> tuple[str, ...]:
    """Parse the columns of USING, with or without parentheses."""
    grouped = cursor.take("(")
    names = cursor.dotted_names("a column")
    if grouped and cursor.key == "AS":
        raise cursor.refused("USING (a AS b)", "Write ON left.a = right.b.")
    if grouped:
        cursor.expect(")")
    return names


# --- one table


def _parse_table_expression(cursor: TokenCursor) -> nodes.Relation:
    """Parse a table, a table function, a query, or joins in parentheses."""
    if cursor.key == "(":
        if query_follows(cursor):
            return _parse_subquery(cursor)
        if cursor.key_after(1) == "EXPLAIN" and cursor.key_after(2) not in (")", ",", "."):
            return _parse_explained(cursor)
        if cursor.key_after(1) == "VALUES" and _rows_follow(cursor):
            return _parse_values(cursor)
        cursor.enter()
        cursor.advance()
        relation = parse_relation(cursor)
        cursor.expect(")")
        cursor.leave()
        return relation
    if call_follows(cursor):
        return _parse_table_function(cursor)
    if cursor.token.kind == "string":
        raise cursor.expected("a table name (in backquotes or double quotes, not single ones)")
    position = cursor.position()
    table = cursor.table_name()
    alias = _parse_alias(cursor)
    final = cursor.take("FINAL")
    sample = offset = None
    if cursor.take("SAMPLE"):
        sample = expressions.parse_expression(cursor, ADD)
        if cursor.take("OFFSET"):
            offset = expressions.parse_expression(cursor, ADD)
    return nodes.TableReference(table, alias, final, sample, offset, position=position)


def _parse_subquery(cursor: TokenCursor) -> nodes.SubqueryRelation:
    """Parse `(query) [[AS] alias [(columns)]]` in FROM. Raises an error for FINAL."""
    position = cursor.position()
    return _aliased(cursor, queries.parse_in_parentheses(cursor), position)


def _parse_explained(cursor: TokenCursor) -> nodes.ExplainRelation:
    """Parse `(EXPLAIN …) [[AS] alias [(columns)]]` in FROM."""
    position = cursor.position(cursor.advance())
    cursor.enter()
    explain = statements.parse_explain(cursor)
    cursor.leave()
    cursor.expect(")")
    alias, columns = _parse_named_columns(cursor)
    return nodes.ExplainRelation(explain, alias, columns, position=position)


def _aliased(cursor: TokenCursor, query: nodes.Query, position: Position) -> nodes.SubqueryRelation:
    """Parse `[[AS] alias [(columns)]]` behind the parentheses of `query`. Raises an error for FINAL."""
    alias, columns = _parse_named_columns(cursor)
    return nodes.SubqueryRelation(query, alias, columns, position=position)


def _parse_named_columns(cursor: TokenCursor) -> tuple[str | None, tuple[str, ...]]:
    """Parse `[[AS] alias [(columns)]]`. Raises an error for FINAL."""
    alias = _parse_alias(cursor)
    columns: tuple[str, ...] = ()
    if alias is not None and cursor.take("("):
        columns = cursor.dotted_names("a column")
        cursor.expect(")")
    _refuse_final(cursor)
    return alias, columns


def _rows_follow(cursor: TokenCursor) -> bool:
    """Return whether `(VALUES` begins rows in parentheses, and no call of the function `values`."""
    if cursor.key_after(2) != "(":
        return False
    closing = cursor.closing(cursor.at + 2)
    several = closing is not None and cursor.keys[closing + 1] == ","
    return several or not (cursor.kind_after(3) == "string" and cursor.key_after(4) == ",")


def _parse_values(cursor: TokenCursor) -> nodes.SubqueryRelation:
    """Parse `(VALUES (1, 'a'), …) [[AS] alias [(columns)]]`, as a query of the function values."""
    position = cursor.position(cursor.advance())
    cursor.advance()
    rows = operands.parse_list_until(cursor, ")")
    query = nodes.Select(
        (nodes.Star(position=position),),
        source=nodes.TableFunction("values", rows, position=position),
        position=position,
    )
    return _aliased(cursor, query, position)


def _parse_table_function(cursor: TokenCursor) -> nodes.Relation:
    """Parse `values('a UInt8', 1)`, `a_view(p = 1)`; `view(SELECT 1)` is a subquery, and so is
    `viewIfPermitted(SELECT 1 ELSE f(…))`."""
    if cursor.key == "VIEW":
        position = cursor.position(cursor.advance())
        return _aliased_call(cursor, queries.parse_in_parentheses(cursor), None, position)
    if cursor.key == "VIEWIFPERMITTED":
        return _parse_permitted(cursor)
    function = parse_function(cursor)
    alias = _parse_alias(cursor)
    _refuse_final(cursor)
    local = local_relation(function)
    return replace(function if local is None else local, alias=alias)


_LOCAL_ADDRESSES = ("localhost", "127.0.0.1")


def local_relation(
    function: nodes.TableFunction,
) -> nodes.TableReference | nodes.TableFunction | None:
    """Return what remote('localhost', …) names: a table of this warehouse, or the table function in it; None for
    other calls."""
    if function.name.lower() not in ("remote", "remotesecure") or not function.arguments:
        return None
    address, *names = function.arguments
    if not (isinstance(address, nodes.Literal) and address.value in _LOCAL_ADDRESSES):
        return None
    if not names:
        names = [nodes.Identifier(("system", "one"))]
    if isinstance(names[0], nodes.Function):
        called = names[0]
        return nodes.TableFunction(called.name, called.arguments, position=function.position)
    parts: list[str] = []
    for name in names[:2]:
        if len(parts) < 2:
            parts += _name_parts(name)
    if len(parts) != 2:
        return None
    table = nodes.TableName(parts[1], parts[0], position=function.position)
    return nodes.TableReference(table, is_remote=True)


def _name_parts(node: nodes.Expression) -> Sequence[str]:
    """Return the parts of a table's name, written as it is or as a text; nothing for other expressions."""
    if isinstance(node, nodes.Identifier):
        return node.parts
    if isinstance(node, nodes.Literal) and isinstance(node.value, str):
        return node.value.split(".")
    return ()


def _parse_permitted(cursor: TokenCursor) -> nodes.SubqueryRelation:
    """Parse `viewIfPermitted(query ELSE f(…)) [[AS] alias]`. Raises an error for FINAL."""
    position = cursor.position(cursor.advance())
    cursor.expect("(")
    query = queries.parse_query(cursor)
    cursor.expect("ELSE")
    otherwise = parse_function(cursor)
    cursor.expect(")")
    return _aliased_call(cursor, query, otherwise, position)


def _aliased_call(
    cursor: TokenCursor,
    query: nodes.Query,
    otherwise: nodes.TableFunction | None,
    position: Position,
) -> nodes.SubqueryRelation:
    """Parse `[[AS] alias]` behind view(…) or viewIfPermitted(…). Raises an error for FINAL."""
    alias = _parse_alias(cursor)
    _refuse_final(cursor)
    return nodes.SubqueryRelation(query, alias, otherwise=otherwise, position=position)


def parse_function(cursor: TokenCursor) -> nodes.TableFunction:
    """Parse `name(arguments)`, without an alias."""
    position = cursor.position()
    name = cursor.dotted_name("a table")
    distinct, arguments, nulls = calls.parse_arguments(cursor)
    if distinct or nulls:
        raise cursor.expected("the arguments of a table function")
    return nodes.TableFunction(name, arguments, position=position)


def _parse_alias(cursor: TokenCursor) -> str | None:
    """Parse `AS alias`, or an alias without AS; None if there is none."""
    if cursor.take("AS"):
        return cursor.identifier("an alias")
    return cursor.identifier() if alias_follows(cursor) else None


def _refuse_final(cursor: TokenCursor) -> None:
    """Raise IllegalFinal if FINAL is next, SamplingNotSupported if SAMPLE is."""
    if cursor.key == "FINAL":
        raise IllegalFinal("FINAL is for tables only.", position=cursor.position())
    if cursor.key == "SAMPLE":
        raise SamplingNotSupported("SAMPLE is for tables only.", position=cursor.position())

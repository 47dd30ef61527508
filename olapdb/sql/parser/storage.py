"""What describes a table's storage: engine, keys, TTL, settings; and references to partitions."""

from __future__ import annotations

from olapdb.errors import BadArguments, SyntaxError
from olapdb.sql import nodes
from olapdb.sql.parser import clauses, expressions, operands, sorting
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.trees import elements_of_tuple

_SECOND_WORDS = {"PARTITION": "BY", "PRIMARY": "KEY", "ORDER": "BY", "SAMPLE": "BY"}


def parse_storage(
    cursor: TokenCursor,
    primary_key: tuple[nodes.Expression, ...] | None = None,
    primary_form: nodes.KeyForm = "",
    *,
    with_settings: bool = True,
) -> tuple[nodes.StorageClause, str]:
    """Parse the clauses in any order; return them and the COMMENT that stood among them.

    `primary_key` and its form are those declared among the columns.  SETTINGS end the clauses where
    `with_settings` is false.  Raises SyntaxError where a clause stands twice, and BadArguments for a second PRIMARY KEY.
    """
    engine: nodes.EngineClause | None = None
    order_by: tuple[nodes.OrderItem, ...] | None = None
    partition_by: nodes.Expression | None = None
    sample_by: nodes.Expression | None = None
    ttl: tuple[nodes.TtlItem, ...] = ()
    settings: tuple[nodes.Setting, ...] = ()
    order_form: nodes.KeyForm = ""
    comment = ""
    seen: set[str] = set()
    position = cursor.position()
    while clause := _next_clause(cursor, seen, with_settings):
        match clause:
            case "ENGINE":
                engine = parse_engine(cursor)
            case "PARTITION":
                partition_by = expressions.parse_expression(cursor)
            case "PRIMARY":
                if primary_key is not None:
                    raise BadArguments(
                        "Multiple primary keys are not allowed.",
                        hint="Leave out the one among the columns, or this one.",
                        position=cursor.position(),
                    )
                start = cursor.at
                primary_key = parse_key(cursor)
                primary_form = key_form(cursor, start)
            case "ORDER":
                start = cursor.at
                order_by = parse_sorting_key(cursor)
                order_form = key_form(cursor, start)
            case "SAMPLE":
                sample_by = expressions.parse_expression(cursor)
            case "TTL":
                ttl = parse_ttl(cursor)
            case "SETTINGS":
                settings = clauses.parse_settings(cursor)
            case _:
                comment = clauses.parse_comment(cursor)
    storage = nodes.StorageClause(
        engine,
        order_by,
        partition_by,
        primary_key,
        sample_by,
        ttl,
        settings,
        primary_form,
        order_form,
        position=position,
    )
    return storage, comment


def _next_clause(cursor: TokenCursor, seen: set[str], with_settings: bool) -> str:
    """Step over the keywords of the next clause, add it to `seen` and return its first keyword.

    Returns "" where no clause of the storage is next.
    """
    clause = cursor.key
    second_word = _SECOND_WORDS.get(clause)
    if second_word is not None:
        if cursor.key_after(1) != second_word:
            raise cursor.expected(f"{clause} {second_word}")
    elif clause not in ("ENGINE", "TTL", "COMMENT") and not (
        clause == "SETTINGS" and with_settings
    ):
        return ""
    if clause in seen:
        raise SyntaxError(f"{clause} stands twice.", position=cursor.position())
    seen.add(clause)
    cursor.skip(1 if second_word is None else 2)
    return clause


def parse_engine(cursor: TokenCursor) -> nodes.EngineClause:
    """Parse `[=] name[(…)]`, behind ENGINE."""
    cursor.take("=")
    position = cursor.position()
    name = cursor.identifier("an engine")
    if cursor.take("("):
        arguments = operands.parse_list_until(cursor, ")")
        return nodes.EngineClause(name, arguments, True, position=position)
    return nodes.EngineClause(name, position=position)


# --- keys


def parse_key(cursor: TokenCursor) -> tuple[nodes.Expression, ...]:
    """Parse `a`, `(a, b)` or `tuple()`; return the elements of the key."""
    return elements_of_tuple(expressions.parse_expression(cursor))


def key_form(cursor: TokenCursor, start: int) -> nodes.KeyForm:
    """Return how the key between the token at `start` and the next one was written."""
    tokens = cursor.tokens[start : cursor.at]
    first = 1 if tokens[0].key == "TUPLE" else 0
    if len(tokens) < first + 3 or tokens[first].key != "(":
        return ""
    depth = commas = 0
    for at, token in enumerate(tokens):
        depth += (token.key in ("(", "[")) - (token.key in (")", "]"))
        commas += depth == 1 and token.key == ","
        if not depth and first <= at < len(tokens) - 1:
            return ""  # (a + b) * 2
    if first:
        return "tuple("
    return "" if commas else "("


def parse_sorting_key(cursor: TokenCursor) -> tuple[nodes.OrderItem, ...]:
    """Parse `a`, `(a, b DESC)` or `tuple()`, behind ORDER BY of a table."""
    start = cursor.at
    if cursor.take("("):
        items: list[nodes.OrderItem] = []
        while not cursor.take(")"):
            if items:
                cursor.expect(",")
            items.append(_parse_sorting_item(cursor))
        if cursor.ended or cursor.token.kind == "word" or cursor.key in (")", ",", ";"):
            return tuple(items)
        cursor.move_to(start)  # (a + b) * 2
    item = _parse_sorting_item(cursor)
    elements = elements_of_tuple(item.expression)
    if elements == (item.expression,):
        return (item,)
    return tuple(nodes.OrderItem(e, item.descending, position=e.position) for e in elements)


def _parse_sorting_item(cursor: TokenCursor) -> nodes.OrderItem:
    """Parse an item of a table's sorting key: `expression [ASC | DESC]`."""
    position = cursor.position()
    expression = expressions.parse_expression(cursor)
    return nodes.OrderItem(expression, sorting.parse_descending(cursor), position=position)


# --- TTL


def parse_ttl(cursor: TokenCursor) -> tuple[nodes.TtlItem, ...]:
    """Parse `d + INTERVAL 1 MONTH [DELETE] [WHERE …], …`, behind TTL."""
    return cursor.comma_separated(_parse_ttl_item)


def _parse_ttl_item(cursor: TokenCursor) -> nodes.TtlItem:
    """Parse an item of TTL: `expression [DELETE] [WHERE condition]`, `expression GROUP BY keys [SET
    column = aggregate, …]`, RECOMPRESS CODEC(…) or TO DISK | VOLUME."""
    position = cursor.position()
    expression = expressions.parse_expression(cursor)
    start = cursor.at + 1
    if cursor.sees("TO", "DISK") or cursor.sees("TO", "VOLUME"):
        cursor.skip(2)
        cursor.string("the name, quoted")
        detail = cursor.text_since(start)
        return nodes.TtlItem(expression, "MOVE", detail=detail, position=position)
    if cursor.take("RECOMPRESS"):
        cursor.expect("CODEC")
        detail = _parse_codec_list(cursor)
        return nodes.TtlItem(expression, "RECOMPRESS", detail=detail, position=position)
    if cursor.take("GROUP", "BY"):
        keys = cursor.comma_separated(expressions.parse_expression)
        values = _parse_ttl_assignments(cursor) if cursor.take("SET") else ()
        return nodes.TtlItem(
            expression, "GROUP BY", group_by=keys, assignments=values, position=position
        )
    cursor.take("DELETE")
    where = expressions.parse_expression(cursor) if cursor.take("WHERE") else None
    return nodes.TtlItem(expression, where=where, position=position)


def _parse_codec_list(cursor: TokenCursor) -> str:
    """Parse `(Delta, ZSTD(5))`, behind CODEC; return it behind that word."""
    cursor.expect("(")
    codecs: list[str] = []
    while not codecs or cursor.take(","):
        start = cursor.at
        cursor.identifier("a codec")
        if cursor.key == "(":
            cursor.skip_parentheses()
        codecs.append("".join(cursor.text_since(start).split()))
    cursor.expect(")")
    return f"CODEC({', '.join(codecs)})"


def _parse_ttl_assignments(cursor: TokenCursor) -> tuple[tuple[str, nodes.Expression], ...]:
    """Parse `v = sum(v), w = max(w)`, behind SET. A comma that no `name =` follows ends it."""
    assignments = []
    while True:
        name = cursor.dotted_name("a column")
        cursor.expect("=")
        assignments.append((name, expressions.parse_expression(cursor)))
        if not (cursor.key == "," and cursor.key_after(2) == "="):
            return tuple(assignments)
        cursor.advance()


# --- partitions


def parse_partition(cursor: TokenCursor) -> nodes.PartitionReference:
    """Parse `PARTITION expr`, `PARTITION ID 'x'`, `PARTITION ALL` or `PART 'name'`."""
    position = cursor.position()
    if cursor.take("PART"):
        name = cursor.string("a part's name, quoted")
        return nodes.PartitionReference("PART", None, name, position=position)
    cursor.expect("PARTITION")
    if cursor.key == "ID" and cursor.kind_after(1) == "string":
        cursor.advance()
        return nodes.PartitionReference("ID", None, cursor.string(), position=position)
    if cursor.take("ALL"):
        return nodes.PartitionReference("ALL", position=position)
    value = expressions.parse_expression(cursor)
    return nodes.PartitionReference("VALUE", value, position=position)


def parse_in_partition(cursor: TokenCursor) -> nodes.PartitionReference | None:
    """Parse `IN PARTITION …`; None if IN is not next."""
    return parse_partition(cursor) if cursor.take("IN") else None

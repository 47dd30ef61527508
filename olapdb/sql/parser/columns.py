"""The list in parentheses of CREATE TABLE: columns, indexes, constraints, projections."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, get_args

from olapdb.errors import (
    BadArguments,
    EmptyDataPassed,
    IllegalSyntaxForDataType,
    IllegalTypeOfArgument,
    Position,
    SyntaxError,
)
from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.sql.parser import (
    clauses,
    expressions,
    operands,
    queries,
    statistics,
    storage,
    type_names,
)
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.keywords import words
from olapdb.sql.parser.lookahead import comes_before_comma
from olapdb.types import Array, DataType, Map, Nullable, make_nullable

_DefaultKind = Literal["DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL"]
_DEFAULT_KINDS: tuple[_DefaultKind, ...] = get_args(_DefaultKind)
AFTER_NAME = words(
    "DEFAULT MATERIALIZED ALIAS EPHEMERAL COMMENT CODEC TTL NULL NOT PRIMARY FIRST AFTER REMOVE "
    "MODIFY RESET SETTINGS STATISTICS"
)
"""What may follow a column's name where its type is left out."""

_AFTER_EPHEMERAL = (",", ")", "COMMENT", "CODEC", "TTL", "FIRST", "AFTER")
"""What may follow EPHEMERAL where its default is left out."""


@dataclass
class TableElements:
    """The elements of CREATE TABLE; `primary_key` is None if none is declared."""

    columns: list[nodes.ColumnDefinition] = field(default_factory=list)
    indexes: list[nodes.IndexDefinition] = field(default_factory=list)
    constraints: list[nodes.ConstraintDefinition] = field(default_factory=list)
    projections: list[nodes.ProjectionDefinition] = field(default_factory=list)
    primary_key: tuple[nodes.Expression, ...] | None = None
    primary_form: nodes.KeyForm = ""


def parse_table_elements(cursor: TokenCursor, needs_types: bool = False) -> TableElements:
    """Parse the list of columns, indexes, projections, constraints and PRIMARY KEY of a table, from its opening
    parenthesis to behind the closing one; a comma may trail.

    Raises BadArguments if PRIMARY KEY stands behind columns and in the list too. With `needs_types` it raises
    SyntaxError for a column without type and default."""
    cursor.expect("(")
    elements = TableElements()
    primary_columns: list[nodes.Expression] = []
    while True:
        if cursor.key == ")" and (elements.columns or elements.indexes):
            break
        before = len(elements.columns)
        _parse_element(cursor, elements, primary_columns)
        for column in elements.columns[before:]:
            if needs_types and column.type is None and not column.default_kind:
                raise cursor.expected(f"the type or a default of column {column.name}")
        if not cursor.take(","):
            break
    cursor.expect(")")
    if primary_columns:
        if elements.primary_key is not None:
            raise BadArguments(
                "PRIMARY KEY stands behind columns and in a list of its own.",
                hint="Leave one of the two out.",
                position=cursor.position(),
            )
        elements.primary_key = tuple(primary_columns)
        elements.primary_form = "tuple(" if len(primary_columns) == 1 else ""
    return elements


def _parse_element(
    cursor: TokenCursor, elements: TableElements, primary_columns: list[nodes.Expression]
) -> None:
    """Parse one element into `elements`; a column with PRIMARY KEY goes to `primary_columns` too."""
    key = cursor.key
    if key == "INDEX" and comes_before_comma(cursor, "TYPE"):
        cursor.advance()
        elements.indexes.append(parse_index(cursor))
    elif key == "CONSTRAINT" and cursor.key_after(2) in ("CHECK", "ASSUME"):
        cursor.advance()
        elements.constraints.append(parse_constraint(cursor))
    elif key == "PROJECTION" and cursor.key_after(2) in ("(", "INDEX"):
        cursor.advance()
        elements.projections.append(parse_projection(cursor))
    elif cursor.take("PRIMARY", "KEY"):
        start = cursor.at
        if elements.primary_key is not None:
            raise BadArguments("Several PRIMARY KEY.", position=cursor.position())
        elements.primary_key = storage.parse_key(cursor)
        elements.primary_form = storage.key_form(cursor, start)
    elif cursor.sees("FOREIGN", "KEY"):
        raise cursor.refused("FOREIGN KEY", "Leave it out; check with a join.")
    else:
        column, is_primary = parse_column(cursor)
        elements.columns.extend(column.flattened())
        if is_primary:
            primary_columns.append(nodes.Identifier((column.name,), position=column.position))


# --- columns


def parse_column(cursor: TokenCursor, before_type: str = "") -> tuple[nodes.ColumnDefinition, bool]:
    """Parse a column; return it and whether PRIMARY KEY was behind it. `before_type` is a word that
    stands between its name and its type."""
    position = cursor.position()
    name = cursor.dotted_name("a column")
    if before_type:
        cursor.expect(before_type)
    data_type: DataType | None = None
    nested: tuple[tuple[str, DataType], ...] = ()
    if cursor.token.text == "Nested" and cursor.key_after(1) == "(":
        nested = _parse_nested(cursor)
    elif cursor.is_name() and cursor.key not in AFTER_NAME:
        data_type = type_names.parse_data_type(cursor)
    options = _parse_options(cursor)
    if nested and (options.nullable or options.default is not None):
        raise cursor.refused(
            "NULL or a default of a whole Nested", f"Name each column: `{name}.{nested[0][0]}` …"
        )
    modifier: Literal["", "NULL", "NOT NULL"] = ""
    if options.has_modifier and not (data_type is not None and options.nullable):
        modifier = "NULL" if options.nullable else "NOT NULL"
    if data_type is not None:
        data_type = _with_modifier(data_type, options, position)
    column = nodes.ColumnDefinition(
        name,
        data_type,
        options.default_kind,
        options.default,
        options.codec,
        options.ttl,
        options.comment,
        nested,
        options.statistics,
        settings=options.settings,
        modifier=modifier,
        position=position,
    )
    return column, options.is_primary


@dataclass
class _ColumnOptions:
    """The clauses behind the name and type of a column, such as DEFAULT and CODEC."""

    nullable: bool = False
    has_modifier: bool = False
    """True if the column says NULL or NOT NULL behind its type."""
    default_kind: Literal["", "DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL"] = ""
    default: nodes.Expression | None = None
    comment: str = ""
    codec: tuple[nodes.Expression, ...] = ()
    ttl: nodes.Expression | None = None
    statistics: tuple[str, ...] = ()
    settings: tuple[nodes.Setting, ...] = ()
    is_primary: bool = False


def _parse_options(cursor: TokenCursor) -> _ColumnOptions:
    """Parse NULL, a default, COMMENT, CODEC, TTL, … of a column, in any order."""
    options = _ColumnOptions(nullable=cursor.take("NULL"))
    options.has_modifier = options.nullable
    if not options.nullable and cursor.take("NOT"):
        cursor.expect("NULL")
        options.has_modifier = True
    while cursor.key not in (",", ")", ""):
        if not options.default_kind and (kind := cursor.take_one_of(*_DEFAULT_KINDS)):
            options.default_kind = kind
            if kind != "EPHEMERAL" or not (cursor.ended or cursor.key in _AFTER_EPHEMERAL):
                options.default = expressions.parse_expression(cursor)
        elif not options.has_modifier and cursor.take("NULL"):
            options.nullable = options.has_modifier = True
        elif not options.has_modifier and cursor.take("NOT", "NULL"):
            options.has_modifier = True
        elif cursor.take("COMMENT"):
            options.comment = clauses.parse_comment(cursor)
        elif cursor.take("CODEC", "("):
            options.codec = operands.parse_list_until(cursor, ")")
        elif cursor.take("TTL"):
            options.ttl = expressions.parse_expression(cursor)
        elif cursor.take("STATISTICS"):
            options.statistics = statistics.parse_column_statistics(cursor)
        elif cursor.take("SETTINGS", "("):
            options.settings = clauses.parse_settings(cursor)
            cursor.expect(")")
        elif cursor.take("PRIMARY", "KEY"):
            options.is_primary = True
        elif cursor.take("COLLATE"):  # as MySQL writes it; texts are compared by their bytes
            cursor.identifier("the name of a collation")
        else:
            _refuse_column_clause(cursor)
            break
    return options


def _with_modifier(data_type: DataType, options: _ColumnOptions, position: Position) -> DataType:
    """Return the type of a column with NULL or NOT NULL, if any, applied.

    Raises IllegalSyntaxForDataType for a type that is Nullable already, and IllegalTypeOfArgument for an array or map
    that may be NULL."""
    if options.has_modifier and isinstance(data_type, Nullable):
        raise IllegalSyntaxForDataType(
            "NULL and NOT NULL cannot stand behind a Nullable type.",
            hint="Leave one of them out.",
            position=position,
        )
    if options.nullable and isinstance(data_type, Array | Map):
        raise IllegalTypeOfArgument(
            f"{data_type} cannot be inside Nullable.",
            hint="An empty array or map says as much.",
            position=position,
        )
    return make_nullable(data_type) if options.nullable else data_type


def _parse_nested(cursor: TokenCursor) -> tuple[tuple[str, DataType], ...]:
    """Parse `Nested(a T, b U)`."""
    cursor.skip(2)
    if cursor.key == ")":
        raise EmptyDataPassed("A Nested has at least one column.", position=cursor.position())
    elements = [_parse_nested_element(cursor)]
    while cursor.take(",") and cursor.key != ")":  # a comma may stand behind the last column
        elements.append(_parse_nested_element(cursor))
    cursor.expect(")")
    return tuple(elements)


def _parse_nested_element(cursor: TokenCursor) -> tuple[str, DataType]:
    """Parse `name type` of a Nested."""
    name = cursor.identifier("a column of the Nested")
    return name, type_names.parse_data_type(cursor)


def _refuse_column_clause(cursor: TokenCursor) -> None:
    """Raise SyntaxError if AUTO_INCREMENT is next."""
    if cursor.key == "AUTO_INCREMENT":
        raise SyntaxError(
            "AUTO_INCREMENT is not supported.",
            hint="Leave it out: DEFAULT generateSerialID('name') numbers rows.",
            position=cursor.position(),
        )


# --- indexes, constraints, projections


def parse_index(cursor: TokenCursor) -> nodes.IndexDefinition:
    """Parse `name expression TYPE type(…) [GRANULARITY n]`, behind INDEX."""
    position = cursor.position()
    name = cursor.identifier("the name of an index")
    return parse_index_type(cursor, name, expressions.parse_expression(cursor), position)


def parse_index_type(
    cursor: TokenCursor, name: str, expression: nodes.Expression, position: Position
) -> nodes.IndexDefinition:
    """Parse `TYPE type(…) [GRANULARITY n]` of the index `name` over `expression`."""
    cursor.expect("TYPE")
    type_position = cursor.position()
    type_name = cursor.identifier("a type of index")
    arguments = operands.parse_list_until(cursor, ")") if cursor.take("(") else ()
    granularity = 100_000_000 if type_name.lower() == "vector_similarity" else 1
    if cursor.take("GRANULARITY"):
        granularity = cursor.integer()
    index_type = nodes.Function(type_name, arguments, position=type_position)
    return nodes.IndexDefinition(name, expression, index_type, granularity, position=position)


def parse_constraint(cursor: TokenCursor) -> nodes.ConstraintDefinition:
    """Parse `name CHECK | ASSUME expression`, behind CONSTRAINT."""
    position = cursor.position()
    name = cursor.identifier("the name of a constraint")
    kind: Literal["CHECK", "ASSUME", ""] = cursor.take_one_of("CHECK", "ASSUME")
    if not kind:
        raise cursor.expected("CHECK or ASSUME")
    condition = expressions.parse_expression(cursor)
    return nodes.ConstraintDefinition(name, kind, condition, position=position)


def parse_projection(cursor: TokenCursor) -> nodes.ProjectionDefinition:
    """Parse `name (SELECT …)` behind PROJECTION. Raises SyntaxError if it is no one SELECT."""
    position = cursor.position()
    name = cursor.identifier("the name of a projection")
    if cursor.key == "INDEX":
        raise cursor.refused(
            "PROJECTION … INDEX … TYPE", "A projection is (SELECT columns ORDER BY expressions)."
        )
    cursor.expect("(")
    query = queries.parse_query(cursor)
    if not isinstance(query, nodes.Select):
        raise SyntaxError("A projection is one SELECT.", position=position)
    cursor.expect(")")
    if cursor.key == "WITH" and cursor.key_after(1) == "SETTINGS":
        raise cursor.refused(
            "PROJECTION … WITH SETTINGS",
            "Leave it out: a projection has the granules of its table.",
        )
    return nodes.ProjectionDefinition(name, query, position=position)

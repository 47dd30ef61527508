"""formatQuery and its kin: the text of a statement as ClickHouse writes it.

The parser and the formatter lie above the functions, so that the binder makes these calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from olapdb import errors
from olapdb.bind import constants
from olapdb.bind.contracts import Binder
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import by_value, bytes_of_text, text_of
from olapdb.functions.scalar import require, standard_call
from olapdb.plan.expressions import Call, Constant, Expression
from olapdb.sql import format as sql_format
from olapdb.sql import nodes as sql
from olapdb.sql.parser import parse_one
from olapdb.types import STRING, DataType, Nullable, String


def bind_format_query(binder: Binder, node: sql.Function) -> Expression:
    """Bind formatQuery, formatQuerySingleLine, or one of them with OrNull. Raises
    NumberOfArgumentsDoesntMatch and IllegalTypeOfArgument.

    A call on a row raises SyntaxError for a text that is no statement, unless its name ends in
    OrNull, and NotSupportedError for a statement that is not formatted."""
    if len(node.arguments) != 1:
        raise errors.NumberOfArgumentsDoesntMatch(
            f"Function {node.name} takes 1 argument(s), {len(node.arguments)} given."
        )
    argument = binder.bind(node.arguments[0])
    or_null = node.name.endswith("OrNull")

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type: String, Nullable for a name with OrNull. Raise IllegalTypeOfArgument unless the
        argument is a String."""
        require(name, types, String, "a String")
        return Nullable(STRING) if or_null else STRING

    given = Argument(argument.type, argument.value if isinstance(argument, Constant) else None)
    kernel = by_value(_formatter(single="SingleLine" in node.name, or_null=or_null))
    call = standard_call(node.name, [given], rule, kernel)
    bound = Call(call.type, node.name, (argument,), call)
    return constants.fold(bound, binder.queries.scope.environment)


def _formatter(*, single: bool, or_null: bool) -> Callable[[bytes], bytes | None]:
    """Return the function from a statement's text to the text as it is formatted."""

    def formatted(text: bytes) -> bytes | None:
        """Return the formatted statement. For a text that is no statement return None if `or_null`, else raise
        SyntaxError."""
        try:
            statement = parse_one(text_of(text))
        except errors.SyntaxError:
            if or_null:
                return None
            raise
        return bytes_of_text(sql_format.to_lines(statement, single=single))

    return formatted

"""system.user_functions, and CREATE FUNCTION of existing functions."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.model.user_function import UserFunction
from olapdb.sql.formatter.expressions import format_operand
from olapdb.sql.literals import quote_string
from olapdb.sql.parser import parse_expression
from olapdb.system.registry import Row, SystemContext, SystemTable, moment
from olapdb.types import quote_identifier


def create_query(function: UserFunction) -> str:
    """Return the CREATE FUNCTION of a function, as SQL."""
    kind = "AGGREGATE FUNCTION" if function.aggregate else "FUNCTION"
    if not function.typed:
        names = ", ".join(quote_identifier(p.name) for p in function.parameters)
        names = names if len(function.parameters) == 1 else f"({names})"
        body = format_operand(parse_expression(function.body))
        return f"CREATE {kind} {function.full_name} AS {names} -> {body}"
    parameters = ", ".join(
        f"{quote_identifier(p.name)} {p.type}" + (f" DEFAULT {p.default}" if p.default else "")
        for p in function.parameters
    )
    parts = [f"CREATE {kind} {function.full_name}({parameters})"]
    parts += [f"RETURNS {function.returns}"] if function.returns else []
    parts += [function.volatility] if function.volatility else []
    if function.language == "sql":
        return " ".join([*parts, f"AS {function.body}"])
    parts.append(f"LANGUAGE python HANDLER = {quote_string(function.handler)}")
    if function.runtime_version:
        parts.append(f"RUNTIME_VERSION = {quote_string(function.runtime_version)}")
    if function.packages:
        packages = ", ".join(quote_string(p) for p in function.packages)
        parts.append(f"PACKAGES = ({packages})")
    parts += ["VECTORIZED"] if function.vectorized else []
    return " ".join([*parts, f"AS {quote_string(function.body)}"])


def _user_functions(context: SystemContext) -> Iterator[Row]:
    """List the functions that users made, by database and name."""
    for _, function in sorted(context.snapshot.functions.items()):
        yield (
            function.database,
            function.name,
            function.language,
            int(function.aggregate),
            [p.name for p in function.parameters],
            [p.type for p in function.parameters],
            function.returns,
            function.volatility,
            function.comment,
            create_query(function),
            moment(function.created_ms),
        )


TABLES = (
    SystemTable(
        "user_functions",
        """database String, name String, language String, is_aggregate UInt8,
        parameters Array(String), parameter_types Array(String), returns String, volatility String,
        comment String, create_query String, created_time DateTime64(3)""",
        _user_functions,
        "The functions that CREATE FUNCTION made",
    ),
)

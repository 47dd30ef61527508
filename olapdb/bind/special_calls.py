"""Calls whose value the binder knows, or which are another form of an expression: getSetting,
hasColumnInTable, in(x, set), dictGet, joinGet, formatRow, formatQuery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb import errors, types
from olapdb.bind import constants
from olapdb.bind.contracts import Binder
from olapdb.bind.join_tables import JOIN_GET, bind_join_get
from olapdb.bind.names import NULL_SET_FUNCTIONS, SET_FUNCTIONS
from olapdb.bind.subcolumns import subcolumn
from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.config import SESSION_SETTINGS
from olapdb.functions.base import ScalarCall
from olapdb.lazy import lazy_modules
from olapdb.model.schema import MaterializedView, RefreshableView, Table
from olapdb.plan.expressions import Call, Constant, Expression
from olapdb.sql import nodes as sql
from olapdb.sql.dictionary_functions import DICTIONARY_FUNCTIONS

if TYPE_CHECKING:
    from olapdb.bind import dictionaries, format_row, json_text, query, query_formatting
else:
    dictionaries, format_row, json_text, query, query_formatting = lazy_modules(
        "olapdb.bind", "dictionaries", "format_row", "json_text", "query", "query_formatting"
    )

FORMAT_QUERY = frozenset(
    {"formatQuery", "formatQueryOrNull", "formatQuerySingleLine", "formatQuerySingleLineOrNull"}
)
"""The functions that write statements as ClickHouse does."""


_PARSING = ("parsedatetime", "str_to_date")
"""How the names of functions begin whose result has a zone by itself."""


def special_call(binder: Binder, node: sql.Function) -> Expression | None:
    """Bind a call that no function of the registry is; None for other names."""
    if node.name in JOIN_GET:
        return bind_join_get(binder, node)
    if node.name in DICTIONARY_FUNCTIONS:
        return dictionaries.bind_dictionary_call(binder, node)
    if node.name in ("formatRow", "formatRowNoNewline"):
        return format_row.bind_format_row(binder, node)
    if node.name in FORMAT_QUERY:
        return query_formatting.bind_format_query(binder, node)
    if node.name in ("toTimeZone", "toTimezone"):
        return _in_named_zone(binder, node)
    if node.name == "toJSONString":
        return json_text.bind_json_text(binder, node)
    bind = _CALLS.get(node.name)
    if bind is None and node.name.lower().startswith(_PARSING):
        return _in_session_zone(binder, node)
    return None if bind is None else bind(binder, node)


def _in_session_zone(binder: Binder, node: sql.Function) -> Expression | None:
    """Bind parseDateTime(text[, format]) and its kin with the zone of the session; None with an own zone."""
    zone, lower = binder.context.text("session_timezone"), node.name.lower()
    if not zone or not 1 <= len(node.arguments) <= 2 or "besteffort" in lower:
        return None
    default = "yyyy-MM-dd HH:mm:ss" if "joda" in lower else "%Y-%m-%d %H:%i:%s"
    given = (*node.arguments, sql.Literal(default))[:2]
    return binder.bind(replace(node, arguments=(*given, sql.Literal(zone))))


def _in_set(binder: Binder, node: sql.Function) -> Expression:
    """Bind in(x, set), notIn, globalIn or globalNotIn as IN or NOT IN. GLOBAL changes nothing here.

    Raises NumberOfArgumentsDoesntMatch."""
    if len(node.arguments) != 2:
        raise errors.NumberOfArgumentsDoesntMatch(f"{node.name} takes a value and a set.")
    left, right = node.arguments
    negated = node.name in ("notIn", "globalNotIn")
    return binder.bind(sql.In(left, right, negated, position=node.position))


def _null_in_set(binder: Binder, node: sql.Function) -> Expression:
    """Bind [global][Not]nullIn(x, set) as IN, with "not in the set" as the answer for NULL.

    As in ClickHouse without `transform_null_in`, a NULL in the set equals nothing.

    Raises NumberOfArgumentsDoesntMatch."""
    if len(node.arguments) != 2:
        raise errors.NumberOfArgumentsDoesntMatch(f"{node.name} takes a value and a set.")
    left, right = node.arguments
    negated = node.name in ("notNullIn", "globalNotNullIn")
    is_in = sql.In(left, right, negated, position=node.position)
    otherwise = sql.Literal(int(negated))
    return binder.bind(sql.Function("ifNull", (is_in, otherwise), position=node.position))


def _setting(binder: Binder, node: sql.Function) -> Expression:
    """Bind getSetting('name'). A view does not keep settings that only say how a query runs."""
    if len(node.arguments) != 1:
        raise errors.NumberOfArgumentsDoesntMatch(f"{node.name} takes the name of a setting.")
    return _value_of_setting(binder, *_name_of_setting(binder, node))


def _name_of_setting(binder: Binder, node: sql.Function) -> tuple[str, bool]:
    """Return the setting that the first argument of a call names, and whether its type is Nullable.

    Raises IllegalColumn unless it is a constant, IllegalTypeOfArgument unless it is a text."""
    given = constants.compute(binder.bind(node.arguments[0]), binder.environment)
    if given is None or (
        isinstance(node.arguments[0], sql.Function) and node.arguments[0].name == "materialize"
    ):
        raise errors.IllegalColumn(f"{node.name} takes the name of a setting, a constant text.")
    name = given.value.as_py()
    if not isinstance(name, str):
        raise errors.IllegalTypeOfArgument(
            f"{node.name} takes the name of a setting, a constant text."
        )
    return name, types.is_nullable(given.type)


def _value_of_setting(binder: Binder, name: str, nullable: bool) -> Expression:
    """Return the value of a setting as a constant. It is `momentary` if it says how a query runs."""
    value = constants.setting(name, binder.context)
    if name not in query.MEANING:
        binder.queries.momentary = f"getSetting('{name}'), which each session may set"
    return replace(value, type=types.make_nullable(value.type)) if nullable else value


def _setting_or_default(binder: Binder, node: sql.Function) -> Expression:
    """Bind getSettingOrDefault('name', default): the default for an unknown name.

    Raises NumberOfArgumentsDoesntMatch."""
    if len(node.arguments) != 2:
        raise errors.NumberOfArgumentsDoesntMatch(
            f"{node.name} takes the name of a setting and a default."
        )
    name, nullable = _name_of_setting(binder, node)
    if name not in SESSION_SETTINGS:
        return binder.bind(node.arguments[1])
    return _value_of_setting(binder, name, nullable)


def _has_column(binder: Binder, node: sql.Function) -> Expression:
    """Bind hasColumnInTable('database', 'table', 'column'): 1 or 0.

    Raises UnknownTable; NumberOfArgumentsDoesntMatch and IllegalTypeOfArgument for other arguments
    than constant texts. The forms with a host are refused. Also raises UnknownDatabase."""
    if len(node.arguments) != 3:
        raise errors.NumberOfArgumentsDoesntMatch(
            f"{node.name} takes the names of a database, a table and a column; there are no hosts."
        )
    arguments = tuple(binder.bind(argument) for argument in node.arguments)
    names = []
    for bound in arguments:
        constant = constants.compute(bound, binder.environment)
        value = None if constant is None else constant.value.as_py()
        if not isinstance(value, str):
            raise errors.IllegalTypeOfArgument(f"The arguments of {node.name} are constant texts.")
        names.append(value)
    database, table, column = names
    queries = binder.queries
    if database in SYSTEM_DATABASES:
        every = sql.Select((sql.Star(),), source=sql.TableReference(sql.TableName(table, database)))
        bound_columns = queries.subquery(every, binder.subquery_context()).columns
        return constants.unsigned_byte(
            int(any(column_there.name == column for column_there in bound_columns))
        )
    if database not in queries.scope.snapshot.databases:
        raise errors.UnknownDatabase(f"There is no database {database!r}.")
    item = queries.scope.snapshot.find(database, table)
    if isinstance(item, MaterializedView | RefreshableView):
        item = queries.scope.snapshot.by_id(item.target_id)
    if item is None:
        raise errors.UnknownTable(f"Table {database}.{table} does not exist.")
    queries.tables[item.id] = item.revision
    exists = any(column_there.name == column for column_there in item.columns)
    if isinstance(item, Table):
        exists |= any(column_there.name.startswith(f"{column}.") for column_there in item.columns)
    # A call and no constant: an ALTER changes the answer, so that no view with it is provable.
    kernel = partial(_answer, pa.scalar(int(exists), pa.uint8()))
    return Call(
        types.UINT8, node.name, arguments, ScalarCall(node.name, types.UINT8, kernel, "query")
    )


def _answer(answer: pa.Scalar, _: object, __: int, ___: object) -> pa.Scalar:
    """Return `answer` whatever the arguments: the kernel of a call whose result the binder already knows."""
    return answer


def _subcolumn(binder: Binder, node: sql.Function) -> Expression:
    """Bind getSubcolumn(x, 'a.b'): the part of a value that x.a.b names.

    Raises NumberOfArgumentsDoesntMatch, and IllegalColumn where there is none of that name."""
    if len(node.arguments) != 2:
        raise errors.NumberOfArgumentsDoesntMatch(
            f"Function {node.name} takes 2 argument(s), {len(node.arguments)} given."
        )
    value, path = (binder.bind(argument) for argument in node.arguments)
    name = path.value.as_py() if isinstance(path, Constant) else None
    if not isinstance(name, str):
        raise errors.IllegalColumn(
            f"The second argument of {node.name} is the name of a subcolumn, a constant text."
        )
    part = subcolumn(binder, value, name.split("."))
    if part is None:
        raise errors.IllegalColumn(f"There is no subcolumn {name} in type {value.type}.")
    return part


def _in_named_zone(binder: Binder, node: sql.Function) -> Expression | None:
    """Bind toTimeZone(t, timezone()) with that zone as a constant; None for another zone."""
    match node.arguments:
        case (time, sql.Function(name=name, arguments=())) if name.lower() == "timezone":
            zone = sql.Literal(binder.environment.zone, position=node.position)
            return binder.bind(replace(node, arguments=(time, zone)))
        case _:
            return None


_CALLS: Mapping[str, Callable[[Binder, sql.Function], Expression]] = {
    **dict.fromkeys(SET_FUNCTIONS, _in_set),
    **dict.fromkeys(NULL_SET_FUNCTIONS, _null_in_set),
    "getSetting": _setting,
    "getMergeTreeSetting": lambda binder, node: constants.table_setting(node),
    "getSettingOrDefault": _setting_or_default,
    "hasColumnInTable": _has_column,
    "getSubcolumn": _subcolumn,
}
SPECIAL_CALLS = FORMAT_QUERY.union(_CALLS, ("formatRow", "formatRowNoNewline"))
"""The names that system.functions lists beside those of the registry."""

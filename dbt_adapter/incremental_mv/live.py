"""What is live in the warehouse beside what the model's last run made: trigger and read view."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_common.exceptions import DbtDatabaseError

from olapdb.bind.analysis import referenced_tables
from olapdb.errors import Error
from olapdb.sql.format import to_sql
from olapdb.sql.nodes import TableName
from olapdb.sql.parser import parse_query

from ..relation import quote, string_literal
from .model_definition import read_view_select
from .names import ModelNames
from .warehouse import Warehouse


def read_view_problem(warehouse: Warehouse, names: ModelNames) -> str:
    """Return why readers of the model do not read its answer, "" if they do.

    The read view is compared with the one that belongs to the trigger. A trigger of an older
    adapter recorded none, so nothing is compared."""
    view = warehouse.view(names)
    if view is None or view.read is None:
        return ""
    tables = warehouse.rows(
        "SELECT engine, as_select FROM system.tables "
        f"WHERE database = {string_literal(names.database)} "
        f"AND name = {string_literal(names.model)}"
    )
    if not tables:
        return f"the read view {names} does not exist"
    if tables[0]["engine"] != "View":
        return f"{names} is a {tables[0]['engine']}, not the model's read view"
    expected = read_view_select(warehouse.named(names.database, names.model), *view.read)
    if _normal(tables[0]["as_select"]) == _normal(expected):
        return ""
    return (
        f"the read view {names} is not the one that belongs to its trigger: it reads "
        f"{tables[0]['as_select']}"
    )


def reading_problem(warehouse: Warehouse, names: ModelNames) -> str:
    """Return why the model cannot be read, "" if it can.

    A trigger whose adapter recorded no read view is not looked at."""
    view = warehouse.view(names)
    if view is None or view.read is None:
        return ""
    query = read_view_select(warehouse.named(names.database, names.model), *view.read)
    error = reading_error(warehouse, query, view.column_kinds)
    return (
        f"{names} cannot be read, since a column fails on the stored rows: {error}" if error else ""
    )


def reading_error(
    warehouse: Warehouse, query: str, column_kinds: Mapping[str, tuple[str, str]]
) -> str:
    """Return the error of computing the model's columns from its stored rows, "" if there is none.

    `query` is that of the read view. Only an expression over aggregates can fail: it is computed when the
    model is read, from the states of all rows, and not when they are stored."""
    computed = [quote(name) for name, (kind, _) in column_kinds.items() if kind == "expression"]
    if not computed:
        return ""
    try:
        warehouse.rows(f"SELECT sum(ignore({', '.join(computed)})) AS ignored FROM ({query})")
    except DbtDatabaseError as error:
        return str(error.msg)
    return ""


def trigger_problem(warehouse: Warehouse, names: ModelNames) -> str:
    """Return why the trigger does not compute the model, "" if it does.

    Only MODIFY QUERY gives a trigger another SELECT. A RENAME of what it reads is followed, and
    counts only if another table got the old name, as by EXCHANGE: INSERTs into that one do not fire
    the trigger."""
    view = warehouse.view(names)
    if view is None or view.trigger is None:
        return ""
    rows = warehouse.rows(
        "SELECT as_select, definition_version FROM system.views "
        f"WHERE database = {string_literal(names.database)} "
        f"AND name = {string_literal(names.view)}"
    )
    if not rows:
        return ""
    moved = _moved(warehouse, names, rows[0]["as_select"], view.trigger)
    if moved or rows[0]["definition_version"] == 1:
        return moved
    if _normal(rows[0]["as_select"]) == _normal(warehouse.stored_query(view.trigger)):
        return ""
    return (
        f"the trigger {names.view} was altered after the model's last run: it computes "
        f"{rows[0]['as_select']}"
    )


def _moved(warehouse: Warehouse, names: ModelNames, live: str, recorded: str) -> str:
    """Return why the trigger reads other tables than its recorded query names, "" if it reads those
    or the names are no tables any more."""
    live_tables, recorded_tables = _tables(live, names), _tables(recorded, names)
    taken = [
        name
        for name in sorted(recorded_tables - live_tables, key=str)
        if warehouse.table(name, names.database) is not None
    ]
    if not taken:
        return ""
    reads = ", ".join(sorted(map(str, live_tables - recorded_tables))) or "none of that name"
    return (
        f"the trigger {names.view} reads {reads}, and {', '.join(map(str, taken))}, which it was made "
        "for, is another table now: a table was renamed or exchanged under it"
    )


def _tables(query: str, names: ModelNames) -> set[TableName]:
    """Return the tables that the query reads, with their databases."""
    return {
        TableName(table.name, table.database or names.database)
        for table in referenced_tables(parse_query(query))
    }


def restore_read_view(warehouse: Warehouse, names: ModelNames) -> bool:
    """Replace a read view that does not belong to the trigger by the one that does.

    Returns whether it was replaced. A table under the model's name stays."""
    view = warehouse.view(names)
    if view is None or view.read is None or not read_view_problem(warehouse, names):
        return False
    table = warehouse.table(names.table(names.model), names.database)
    if table is not None and table.engine != "View":
        return False
    relation = warehouse.sql_name(names, names.model)
    select = read_view_select(warehouse.named(names.database, names.model), *view.read)
    warehouse.run(f"CREATE OR REPLACE VIEW {relation} AS {select}")
    return True


def _normal(sql: str) -> str:
    """Return a query in the formatter's spelling; the text itself if it does not parse."""
    try:
        return to_sql(parse_query(sql))
    except Error:
        return sql

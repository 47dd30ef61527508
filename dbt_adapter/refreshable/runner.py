"""One run of a model that is refreshed on a schedule: create the view, or bring it to its definition.

The view and its rows are one relation. What is live is compared with the statement that would create
it, as the engine stores both, so that an unchanged model is no statement.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from olapdb.errors import Error
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_one, parse_query

from ..incremental_mv.errors import refuse_sql
from ..incremental_mv.model_run import Outcome
from ..incremental_mv.model_sql import is_limited, without_limits
from ..incremental_mv.names import ModelNames
from ..incremental_mv.warehouse import Warehouse
from ..relation import quote, string_literal
from .config import Refresh

logger = AdapterLogger("olapdb")
BUILT_SUFFIX = "__dbt_tmp"
"""The end of the name under which the view is filled that takes the place of another relation."""


@dataclass(frozen=True)
class RefreshedModel:
    """A model as its run needs it. `storage` are the clauses from ENGINE on, `query_settings` is the
    SETTINGS clause of the query or "". `on_change` is dbt's on_configuration_change."""

    sql: str
    refresh: Refresh
    storage: str
    query_settings: str
    on_change: str
    full_refresh: bool


def live_view(warehouse: Warehouse, names: ModelNames) -> nodes.CreateMaterializedView | None:
    """Return the definition of the refreshable view of the model's name; None if there is none."""
    table = warehouse.table(names.table(names.model), names.database)
    if table is None or table.engine != "MaterializedView":
        return None
    live = parse_one(table.create_table_query)
    assert isinstance(live, nodes.CreateMaterializedView)
    return live if live.refresh is not None else None


def run(warehouse: Warehouse, names: ModelNames, model: RefreshedModel) -> Outcome:
    """Bring the view to the model's definition; a relation of another kind leaves when the view is
    filled. Returns what was done.

    Raises CompilationError for SQL that does not parse, a missing view of `depends_on`, a trigger of
    the name that dbt did not make, and a change that may not be made."""
    limited = _is_limited(model.sql)
    if limited:
        model = replace(model, sql=to_sql(without_limits(parse_query(_without_end(model.sql)))))
    built = f"{names.model}{BUILT_SUFFIX}"
    parts = [(names.database, name) for name in (names.model, names.view, names.target, built)]
    warehouse.look_up([*parts, *model.refresh.depends_on])
    _check_dependencies(warehouse, model)
    existing = warehouse.table(names.table(names.model), names.database)
    if warehouse.table(names.table(built), names.database) is not None:  # of a run that was killed
        warehouse.run(f"DROP VIEW IF EXISTS {warehouse.sql_name(names, built)}")
    live = live_view(warehouse, names)
    if existing is None:
        warehouse.run(_create(names, names.model, model, empty=limited))
        return _outcome(warehouse, names, "CREATE")
    if live is not None:
        return _outcome(warehouse, names, _bring_to_definition(warehouse, names, model, live))
    if existing.engine == "MaterializedView":
        raise CompilationError(
            f"{names} is a materialized view that dbt did not make. Drop or rename it, or rename the "
            "model."
        )
    if limited:
        logger.warning(f"{names} is left as it is, since refs are limited (--empty or --sample).")
        return _outcome(warehouse, names, "NO CHANGE")
    _take_the_place(warehouse, names, model, "TABLE" if existing.engine != "View" else "VIEW")
    return _outcome(warehouse, names, "CREATE")


def _is_limited(sql: str) -> bool:
    """Return whether dbt limited a ref; raise CompilationError if the SQL does not parse."""
    try:
        return is_limited(sql)
    except Error as error:
        raise refuse_sql(sql, error) from error


def _without_end(sql: str) -> str:
    """Return the SQL without blanks and semicolon at its end."""
    return sql.strip().rstrip(";").rstrip()


def _check_dependencies(warehouse: Warehouse, model: RefreshedModel) -> None:
    """Raise CompilationError if a view of `depends_on` is missing, and the config says to look."""
    if not model.refresh.validates_dependencies:
        return
    missing = [
        f"{database}.{name}"
        for database, name in model.refresh.depends_on
        if live_view(warehouse, ModelNames(database, name)) is None
    ]
    if missing:
        raise CompilationError(
            f"refresh.depends_on names {', '.join(missing)}, and no refreshable view has that name. "
            "A model is built before this one if the SQL has a line -- depends_on: {{ ref('…') }}."
        )


def _create(
    names: ModelNames,
    name: str,
    model: RefreshedModel,
    *,
    replaces: bool = False,
    empty: bool = False,
) -> str:
    """Return the CREATE statement of the view under a name."""
    verb = "CREATE OR REPLACE" if replaces else "CREATE"
    filled = "" if model.refresh.filled and not empty else " EMPTY"
    return (
        f"{verb} MATERIALIZED VIEW {Warehouse.sql_name(names, name)} {model.refresh.clause} "
        f"{model.storage}{filled} AS {_query(model)}"
    )


def _query(model: RefreshedModel) -> str:
    """Return the model's query with the settings of its config."""
    return f"{_without_end(model.sql)} {model.query_settings}".strip()


def _bring_to_definition(
    warehouse: Warehouse,
    names: ModelNames,
    model: RefreshedModel,
    live: nodes.CreateMaterializedView,
) -> str:
    """Change the live view to the model's definition; return the steps. Only a new schedule, and the
    new query of an APPEND view, leave the rows; else the view is replaced in one commit.

    Raises CompilationError."""
    wanted = parse_one(warehouse.stored_query(_create(names, names.model, model, replaces=True)))
    assert isinstance(wanted, nodes.CreateMaterializedView)
    assert live.refresh is not None
    assert wanted.refresh is not None
    if model.full_refresh:
        warehouse.run(_create(names, names.model, model, replaces=True))
        return "REPLACE"
    differs = [
        part
        for part, is_equal in (
            ("schedule", _same(live.refresh, wanted.refresh)),
            ("query", _same(live.query, wanted.query)),
            ("columns", _columns(live) == _columns(wanted)),
            ("storage", live.storage == wanted.storage),
        )
        if not is_equal
    ]
    if not differs:
        return "NO CHANGE"
    what = f"{names}: {' and '.join(differs)} of the live view differ from the model"
    if model.on_change == "fail":
        raise CompilationError(f"{what}, and on_configuration_change is fail.")
    if model.on_change == "continue":
        logger.warning(f"{what}; it stays, since on_configuration_change is continue.")
        return "NO CHANGE"
    keeps_rows = live.refresh.append
    if keeps_rows and (not wanted.refresh.append or "columns" in differs or "storage" in differs):
        raise CompilationError(
            f"{what}. The view appends, and would lose the rows of its earlier refreshes. Run dbt "
            "with --full-refresh to begin anew, or change it by hand."
        )
    if differs == ["schedule"] and live.refresh.append == wanted.refresh.append:
        return _alter(warehouse, names, model, differs)
    joined = _is_joined(warehouse, names)
    if keeps_rows or (joined and differs in (["query"], ["schedule", "query"])):
        steps = _alter(warehouse, names, model, differs)
        if not keeps_rows:
            warehouse.run(f"SYSTEM REFRESH VIEW {warehouse.sql_name(names, names.model)}")
        return steps
    warehouse.run(_create(names, names.model, model, replaces=True))
    return "REPLACE"


def _alter(
    warehouse: Warehouse, names: ModelNames, model: RefreshedModel, differs: list[str]
) -> str:
    """Change schedule and query of the view in place."""
    name = warehouse.sql_name(names, names.model)
    if "schedule" in differs:
        warehouse.run(f"ALTER TABLE {name} MODIFY {model.refresh.clause}")
    if "query" in differs:
        warehouse.run(f"ALTER TABLE {name} MODIFY QUERY {_query(model)}")
    return "ALTER"


def _is_joined(warehouse: Warehouse, names: ModelNames) -> bool:
    """Return whether a trigger joins the view, so that its table has to stay."""
    return bool(
        warehouse.rows(
            "SELECT 1 FROM system.view_dependencies AS d INNER JOIN system.tables AS t "
            "ON t.target_database = d.depends_on_database AND t.target_table = d.depends_on "
            f"WHERE t.database = {string_literal(names.database)} "
            f"AND t.name = {string_literal(names.model)} AND d.kind = 'dimension' LIMIT 1"
        )
    )


def _same(live: nodes.Node, wanted: nodes.Node) -> bool:
    """Return whether two parts of definitions are the same text."""
    return to_sql(live) == to_sql(wanted)


def _columns(view: nodes.CreateMaterializedView) -> list[tuple[str, str]]:
    """Return names and types of the view's columns; comments are dbt's descriptions."""
    return [(column.name, str(column.type)) for column in view.columns]


def _take_the_place(
    warehouse: Warehouse, names: ModelNames, model: RefreshedModel, kind: str
) -> None:
    """Fill the view under a name of its own, drop the relation that has the model's name, with the
    parts of an `incremental_mv`, and give the name to the view."""
    built = f"{names.model}{BUILT_SUFFIX}"
    owned = warehouse.owns(names)
    shares = bool(warehouse.named(names.database, names.model).shares)
    warehouse.run(_create(names, built, model))
    if owned:
        warehouse.run(f"DROP VIEW {warehouse.sql_name(names, names.view)}")
    warehouse.run(f"DROP {kind} {warehouse.sql_name(names, names.model)}")
    if owned and not shares:
        warehouse.run(f"DROP TABLE {warehouse.sql_name(names, names.target)}")
    warehouse.run(
        f"RENAME TABLE {warehouse.sql_name(names, built)} TO {quote(names.database)}."
        f"{quote(names.model)}"
    )


def _outcome(warehouse: Warehouse, names: ModelNames, message: str) -> Outcome:
    """Return what the run did."""
    return Outcome(message, 0, tuple(warehouse.statements), ((names.model, "materialized_view"),))

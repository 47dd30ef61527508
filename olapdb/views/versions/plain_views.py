"""Plain views over the targets of versions: whether their queries bind, and their columns."""

from __future__ import annotations

from dataclasses import replace

from olapdb import errors
from olapdb.bind import BindScope, bind_query
from olapdb.functions.base import Environment
from olapdb.model.schema import Column, View
from olapdb.model.snapshot import Snapshot
from olapdb.plan.nodes import Plan
from olapdb.sql.parser import parse_query
from olapdb.views.definition.definition import columns_of_plan


def bind_error(view: View, snapshot: Snapshot) -> errors.Error | None:
    """Return the error that binding the view's query raises; None if it binds."""
    try:
        _bound(view, snapshot)
    except errors.Error as error:
        return error
    return None


def _bound(view: View, snapshot: Snapshot) -> Plan:
    """Return the plan of a plain view's query. Raises what binding raises."""
    scope = BindScope(
        snapshot=snapshot, database=view.database, environment=Environment(database=view.database)
    )
    return bind_query(parse_query(view.query), scope)


def columns_of(view: View, snapshot: Snapshot) -> tuple[Column, ...]:
    """Return the columns of the view's query; those of the same name keep their comments. Raise
    HaveDependentObjects if the query does not bind."""
    try:
        plan = _bound(view, snapshot)
    except errors.Error as error:
        raise errors.HaveDependentObjects(
            f"The query for the view {view.database}.{view.name} does not fit the new version:"
            f" {error.message}",
            hint="Give a query that reads the new target by the name of the old one.",
        ) from error
    comments = {column.name: column.comment for column in view.columns}
    return tuple(
        replace(column, comment=comments.get(column.name, "")) for column in columns_of_plan(plan)
    )

"""CREATE VIEW of a view with parameters, which are given where it is read."""

from __future__ import annotations

from dataclasses import replace

from olapdb.bind.analysis import qualify, referenced_tables
from olapdb.errors import NotSupportedError
from olapdb.model.snapshot import Snapshot
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext


def view_with_parameters(
    statement: nodes.CreateView, context: StatementContext, snapshot: Snapshot
) -> nodes.Query:
    """Return the query that a view with parameters stores: full table names, `*` as written.

    Nothing is bound before there are values. Raises NotSupportedError for a list of columns."""
    if statement.columns:
        raise NotSupportedError(
            "The columns of a view with parameters are those of its query, at each call.",
            hint="Leave the list of columns out; name and cast them in the SELECT.",
            position=statement.position,
        )
    query = statement.query
    if isinstance(query, nodes.Select | nodes.SetOperation):
        query = replace(query, format=None)
    return qualify(query, context.scope(snapshot), stars=False)


def named_objects(query: nodes.Query, snapshot: Snapshot) -> tuple[tuple[str, int], ...]:
    """Return (id, revision) of the tables and views that a qualified query names and that exist."""
    objects = (snapshot.find(name.database or "", name.name) for name in referenced_tables(query))
    return tuple((item.id, item.revision) for item in objects if item is not None)

"""The plain view by which a view's target is read, and the query that it gets with a new version."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from olapdb.bind import BindScope, bind_query
from olapdb.bind.qualify import qualify
from olapdb.config import Settings
from olapdb.errors import Error, UnknownTable
from olapdb.functions.base import Environment
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.schema import Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.sql.format import to_sql

_KEEP_NULLS = "cast_keep_nullable"


@dataclass(frozen=True, slots=True)
class Reading:
    """The query that the plain view `database`.`name` gets in the commit of the swap.

    `keep_nulls` is `cast_keep_nullable` of the session: the view keeps it, as CREATE VIEW does, if
    its query depends on it."""

    database: str
    name: str
    query: nodes.Query
    keep_nulls: bool = False

    def resolved(
        self, snapshot: Snapshot, old_target: Table, new_target: Table, scope: Environment
    ) -> tuple[View, str]:
        """Return the plain view and its qualified query, whose names are those after the swap.

        Raises UnknownTable if there is no such plain view, and what binding the query raises."""
        view = snapshot.find(self.database, self.name)
        if not isinstance(view, View):
            raise UnknownTable(
                f"There is no plain view {self.database}.{self.name} to replace.",
                hint="CREATE VIEW it first, or leave REPLACE VIEW out.",
            )
        swapped = OverlaySnapshot.of(
            snapshot,
            new_target.renamed(old_target.database, old_target.name),
            old_target.renamed(new_target.database, new_target.name),
        )
        binding = BindScope(snapshot=swapped, database=scope.database, environment=scope)
        qualified = qualify(self._with_kept_nulls(binding), binding)
        bind_query(qualified, binding)
        return view, to_sql(qualified)

    def _with_kept_nulls(self, scope: BindScope) -> nodes.Query:
        """Return the query, with the session's `cast_keep_nullable` if it depends on that."""
        query = self.query
        if not self.keep_nulls or not isinstance(query, nodes.Select | nodes.SetOperation):
            return query
        if any(setting.name == _KEEP_NULLS for setting in query.settings):
            return query
        keeping = bind_query(query, replace(scope, settings=Settings({_KEEP_NULLS: 1})))
        with suppress(Error):  # CAST(NULL AS String) is an error without the setting
            if bind_query(query, scope).root == keeping.root:
                return query
        return replace(query, settings=(*query.settings, nodes.Setting(_KEEP_NULLS, 1)))

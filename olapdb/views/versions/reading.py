"""The plain view by which a view's target is read, and the query that it gets with a new version."""

from __future__ import annotations

from dataclasses import dataclass

from olapdb.bind import BindScope, bind_query
from olapdb.bind.qualify import qualify
from olapdb.errors import UnknownTable
from olapdb.functions.base import Environment
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.schema import Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.sql import nodes
from olapdb.sql.format import to_sql


@dataclass(frozen=True, slots=True)
class Reading:
    """The query that the plain view `database`.`name` gets in the commit of the swap."""

    database: str
    name: str
    query: nodes.Query

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
        qualified = qualify(self.query, binding)
        bind_query(qualified, binding)
        return view, to_sql(qualified)

"""The input of a judgement: a bound definition and its tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from functools import cached_property

from olapdb.engine.layout import TableLayout
from olapdb.functions.base import Environment
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan import nodes
from olapdb.records import dataclass
from olapdb.views.definition.query_shape import QueryShape, branches, shape_of


@dataclass(frozen=True)
class BoundDefinition:
    """A view's definition at one snapshot.

    `plan` is bound, not optimized. `settings` are frozen in the view; `environment` has its zone.
    """

    name: str
    plan: nodes.Plan
    source: Table
    target: Table
    snapshot: Snapshot
    settings: Mapping[str, object] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    added_keys: Collection[int] = ()
    """See `MaterializedView.added_keys`; none for a new definition."""

    @property
    def merges(self) -> bool:
        """Return whether merges of the target join rows of equal sorting key."""
        return self.target.engine.combines

    @property
    def source_name(self) -> str:
        """Return the source as "database.table"."""
        return full_name(self.source)

    @property
    def target_name(self) -> str:
        """Return the target as "database.table"."""
        return full_name(self.target)

    @cached_property
    def branches(self) -> tuple[tuple[nodes.Plan, QueryShape], ...]:
        """Return the inputs of a UNION ALL at the top, or the plan itself, each with its shape."""
        return tuple((branch, shape_of(branch)) for branch in branches(self.plan))

    @cached_property
    def layout(self) -> TableLayout:
        """Return the keys of the target."""
        return TableLayout(self.target, self.environment)

    @property
    def order(self) -> list[str]:
        """Return the items of the target's ORDER BY."""
        return [item.expression.strip("`") for item in self.target.sorting_key]


def full_name(table: Table) -> str:
    """Return "database.table", unquoted."""
    return f"{table.database}.{table.name}"

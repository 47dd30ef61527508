"""The base of snapshots that stand in for another one and exchange a part of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from olapdb.model.damage import Damage
from olapdb.model.named_collection import NamedCollection
from olapdb.model.schema import DatabaseEntry
from olapdb.model.snapshot import Snapshot
from olapdb.model.user_function import UserFunction
from olapdb.records import dataclass

if TYPE_CHECKING:
    from olapdb.model.view_state import Check, Coverage, Invalidation, Retained


@dataclass(frozen=True)
class StandInSnapshot:
    """A snapshot that differs from `base` in some tables or parts only. Its commit number,
    databases, functions and states of views are those of `base`; a subclass says what differs."""

    base: Snapshot

    @property
    def number(self) -> int:
        """The base's commit number."""
        return self.base.number

    @property
    def databases(self) -> Mapping[str, DatabaseEntry]:
        """The base's databases by name."""
        return self.base.databases

    @property
    def functions(self) -> Mapping[tuple[str, str], UserFunction]:
        """The base's stored functions by database and name."""
        return self.base.functions

    @property
    def named_collections(self) -> Mapping[str, NamedCollection]:
        """The base's named collections by name."""
        return self.base.named_collections

    def coverage(self, view_id: str) -> Coverage:
        """Return the view's coverage in the base."""
        return self.base.coverage(view_id)

    def invalidations(self, view_id: str | None = None) -> tuple[Invalidation, ...]:
        """Return the base's unrepaired invalidations (of one view)."""
        return self.base.invalidations(view_id)

    def checks(self, view_id: str | None = None) -> tuple[Check, ...]:
        """Return the base's newest checks (of one view)."""
        return self.base.checks(view_id)

    def retained(self, view_id: str | None = None) -> tuple[Retained, ...]:
        """Return the base's ledger of rows removed by retention (of one view)."""
        return self.base.retained(view_id)

    def damaged(self) -> tuple[Damage, ...]:
        """Return the damaged live parts of the base."""
        return self.base.damaged()

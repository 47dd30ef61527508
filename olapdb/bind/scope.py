"""What binding needs to know: the snapshot, where names are looked up, settings, parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from olapdb.config import Settings, SettingValue
from olapdb.functions.base import Environment
from olapdb.model.frozen import FrozenSnapshot
from olapdb.model.snapshot import Snapshot
from olapdb.plan.nodes import Field
from olapdb.sql import nodes as sql

if TYPE_CHECKING:
    from olapdb.bind.expressions import ExpressionBinder

Parameters: TypeAlias = Sequence[object] | Mapping[str, object] | None


def no_system_tables(database: str, name: str) -> tuple[Field, ...] | None:
    """A warehouse without system tables."""
    return None


NO_SNAPSHOT: Snapshot = FrozenSnapshot(number=0, databases={}, items={}, parts_of={})
"""Keys are expressions over their own table's columns: they can name no other object."""


@dataclass(frozen=True)
class BindScope:
    """`parameters` are Python values, by position or by name; `system_tables(database, name)`
    gives the columns of a table of `system` or `information_schema`, None where there is none."""

    snapshot: Snapshot
    database: str = "default"
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    parameters: Parameters = ()
    system_tables: Callable[[str, str], tuple[Field, ...] | None] = no_system_tables


@dataclass(frozen=True)
class CommonTable:
    """`WITH name AS (query)`, bound anew at each use, where it was defined."""

    item: sql.WithItem
    surroundings: BindContext


@dataclass(frozen=True)
class BindContext:
    """What a query sees of what is around it. `outer` is the enclosing query's binder: its
    constants (WITH 5 AS n) may be used, its columns may not (a correlated subquery)."""

    database: str
    settings: Mapping[str, SettingValue]
    tables: Mapping[str, CommonTable] = field(default_factory=dict)
    outer: ExpressionBinder | None = None
    depth: int = 0

    def flag(self, name: str) -> bool:
        """Return a setting as a truth value, its default where it was not changed."""
        return Settings.of(self.settings).boolean(name)

    def text(self, name: str) -> str:
        """Return a setting as text, its default where it was not changed."""
        return Settings.of(self.settings).text(name)

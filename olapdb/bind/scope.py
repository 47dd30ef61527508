"""What binding needs to know: the snapshot, settings, parameters; and the lambdas being bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TypeAlias

from olapdb.config import SettingValue
from olapdb.functions.base import Environment
from olapdb.functions.scalar import ScalarDefinition
from olapdb.model.frozen import FrozenSnapshot
from olapdb.model.snapshot import Snapshot
from olapdb.plan.expressions import Expression
from olapdb.plan.nodes import Field
from olapdb.records import dataclass

Parameters: TypeAlias = Sequence[object] | Mapping[str, object] | None


def no_system_tables(database: str, name: str) -> tuple[Field, ...] | None:
    """Return None: a warehouse without system tables."""
    return None


def no_python_functions(database: str, name: str) -> ScalarDefinition | None:
    """Return None: a scope in which no Python function may be called."""
    return None


NO_SNAPSHOT: Snapshot = FrozenSnapshot(number=0, databases={}, items={}, parts_of={})
"""Keys are expressions over their own table's columns: they can name no other object."""


@dataclass(frozen=True)
class BindScope:
    """The snapshot, database, settings and parameters that a statement is bound with.

    `parameters` are Python values, by position or by name. `system_tables(database, name)` returns
    the columns of a table of `system` or `information_schema`, None where there is no such table.
    `python_function(database, name)` returns a Python function that may be called, None if there is
    none. Only queries have any: definitions of tables and views are computed by any process."""

    snapshot: Snapshot
    database: str = "default"
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    parameters: Parameters = ()
    system_tables: Callable[[str, str], tuple[Field, ...] | None] = no_system_tables
    temporary: frozenset[str] = frozenset()
    """The names of the session's temporary tables, which a name without a database means first."""
    python_function: Callable[[str, str], ScalarDefinition | None] = no_python_functions
    refuses_columns: bool = False
    """Whether a column in place of a constant argument is refused, as in a query of a user."""


class LambdaScopes:
    """A stack of the parameters of the lambdas that enclose the bound expression, innermost last."""

    def __init__(self) -> None:
        self._scopes: list[Mapping[str, Expression]] = []

    @property
    def depth(self) -> int:
        """The number of enclosing lambdas."""
        return len(self._scopes)

    def parameter(self, name: str) -> Expression | None:
        """Return the innermost parameter of this name, else None."""
        for parameters in reversed(self._scopes):
            if name in parameters:
                return parameters[name]
        return None

    @contextmanager
    def within(self, parameters: Mapping[str, Expression]) -> Iterator[None]:
        """Make these names lambda parameters while the returned manager is active."""
        self._scopes.append(parameters)
        try:
            yield
        finally:
            self._scopes.pop()

"""Factories of aggregates whose modules are imported at the first call: a query needs few of them."""

from __future__ import annotations

from importlib import import_module

from olapdb.functions.aggregates.signatures import ResolveAggregate
from olapdb.functions.base import Aggregate
from olapdb.types import DataType

_PACKAGE = __name__.rpartition(".")[0]


class DeferredFactory:
    """A factory of aggregates whose module is imported at its first call; `place` is "module.function" in this
    package."""

    def __init__(self, place: str) -> None:
        """Remember the place; import nothing."""
        self._place = place
        self._function: ResolveAggregate | None = None

    def __call__(
        self, name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
    ) -> Aggregate:
        """Import the module and call the factory function with these arguments."""
        return self.function(name, parameters, types)

    @property
    def function(self) -> ResolveAggregate:
        """The function itself; imports its module."""
        if self._function is None:
            module, _, name = self._place.partition(".")
            function: ResolveAggregate = getattr(import_module(f"{_PACKAGE}.{module}"), name)
            self._function = function
        return self._function


def deferred(place: str) -> ResolveAggregate:
    """Return the factory at a place, "module.function" of this package."""
    return DeferredFactory(place)

"""Races of two statements: one is paused just before its commit while others run whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from olapdb.dbapi.connection import Connection
from olapdb.errors import Error
from olapdb.model.changes import Commit, Committed
from olapdb.model.requirements import Requirement


class Race:
    """Two connections to one warehouse."""

    def __init__(self, first: Connection, second: Connection) -> None:
        self.first, self.second = first, second

    @contextmanager
    def meddling(self, *meanwhile: str, without: type[Requirement] | None = None) -> Iterator[None]:
        """Run `statements` on the second connection just before the first commit of the first one.

        To inject a fault, requirements of the type `without` are omitted from the first one's
        commits."""
        catalog = self.first.database.services.catalog
        apply, waiting = catalog.apply, [meanwhile]

        def meddled(commit: Commit) -> Committed:
            for one in waiting.pop() if waiting else ():
                self.second.execute(one)
            kept = [r for r in commit.requirements if without is None or not isinstance(r, without)]
            return apply(replace(commit, requirements=tuple(kept)))

        catalog.apply = meddled  # type: ignore[method-assign]
        try:
            yield
        finally:
            del catalog.apply

    def run(
        self, statement: str, *meanwhile: str, without: type[Requirement] | None = None
    ) -> bool:
        """Run `statement` with others just before its first commit; return whether it succeeded."""
        with self.meddling(*meanwhile, without=without):
            try:
                self.first.execute(statement)
            except Error:
                return False
        return True

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the second connection."""
        return [tuple(row) for row in self.second.execute(query).fetchall()]

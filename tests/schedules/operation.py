"""The interface of a schedule's steps. A new kind is one small class in one of the modules here."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

from olapdb.dbapi.connection import Connection
from olapdb.errors import Error
from tests.schedules.model import Model
from tests.schedules.shapes import Fails

CATALOG = ("catalog.checked", "catalog.before_commit", "catalog.committed")
STORE = ("store.written", "store.flushed", "store.renamed", "store.synced")


@dataclass(frozen=True)
class Answer:
    """A statement's answer: rows by column, or the ClickHouse name of its error."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""
    message: str = ""


THROWN = "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO"
"""The error of the view that fails."""
DEPENDED_ON = "HAVE_DEPENDENT_OBJECTS"
"""The error of a statement that would take a table away from a view."""
UNREADABLE = "QUERY_IS_NOT_SUPPORTED_IN_MATERIALIZED_VIEW"
"""The error of a statement that would have to read a Null table again."""


class Untrue(Exception):
    """The exception for an answer that is impossible in the state."""


class Operation(ABC):
    """A frozen dataclass whose fields make it concrete, so that a schedule can be run again.

    `weight` is its relative frequency, `stages` are the points where a process may be killed in it,
    `refusals` the errors that it may answer with: they must have changed nothing.
    """

    weight: ClassVar[int] = 10
    stages: ClassVar[tuple[str, ...]] = ()
    refusals: ClassVar[tuple[str, ...]] = ()
    piecemeal: ClassVar[bool] = False
    """Whether it may make several commits."""
    plans: ClassVar[bool] = False
    """Whether it may do only what was due when it began; `orders` includes those cases."""
    planned: bool = False
    """Whether this one does so: a field where `plans`."""
    settles: ClassVar[bool] = False
    """Whether its effect depends on gaps or frozen keys."""

    @classmethod
    @abstractmethod
    def draw(cls, model: Model, chance: random.Random) -> Self | None:
        """Draw one that makes sense now; None where nothing does."""

    @abstractmethod
    def sql(self, model: Model) -> str:
        """Return the statement, with present names. Raise KeyError where it names something
        absent."""

    @abstractmethod
    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        """Apply the statement to the model, one commit after another: each `yield` precedes a
        commit. `answer` None: the process died without one. Raises Untrue."""

    def orders(self, model: Model) -> Iterator[Operation]:
        """Yield the operation with its commits in each possible order."""
        yield self

    def perform(self, connection: Connection, text: str) -> Answer:
        """Execute the statement and return its answer; errors of the engine are answers too."""
        try:
            cursor = connection.execute(text)
            names = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchall() if names else []
            return Answer([dict(zip(names, row, strict=True)) for row in rows])
        except Error as error:
            found = [asdict(row) for row in getattr(error, "rows", None) or ()]
            return Answer(found, error.name, str(error))

    @property
    def asks(self) -> bool:
        """Whether only the answer shows what was done, so that a model alone cannot follow."""
        return False

    def after(self, model: Model, answer: Answer) -> Model:
        """Return the model after the statement with this answer."""
        changed = model.copy()
        if answer.error == THROWN:
            if not self.fails(model):
                raise Untrue(f"no view fails: {answer.message}")
            return changed
        if answer.error:
            if answer.error not in self.refusals:
                raise Untrue(f"refused: {answer.message}")
            return changed
        try:
            for _ in self.change(changed, answer):
                pass
        except Fails as row:
            raise Untrue(f"done, and a view fails on {row}") from None
        return changed

    def outcomes(self, model: Model, answer: Answer) -> list[Model]:
        """Return the possible models, where the answer alone does not decide."""
        return [self.after(model, answer)]

    def fails(self, model: Model) -> bool:
        """Return whether a view fails on a row that the statement gives it."""
        try:
            for _ in self.change(model.copy(), None):
                pass
        except Fails:
            return True
        return False

    def prefixes(self, model: Model) -> Iterator[Model]:
        """Yield the models that a killed process may have left: after any of its commits."""
        changed = model.copy()
        try:
            for _ in self.change(changed, None):
                yield changed.copy()
        except Fails:
            return
        yield changed

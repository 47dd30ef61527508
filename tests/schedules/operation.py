"""What a step of a schedule is. A new kind is one small class in one of the files beside."""

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
    """What a statement answered: rows by column, or the ClickHouse name of its error."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""
    message: str = ""


THROWN = "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO"
"""The error of the view that fails."""
UNREADABLE = "QUERY_IS_NOT_SUPPORTED_IN_MATERIALIZED_VIEW"
"""Of what has to read a Null table again."""


class Untrue(Exception):
    """The answer cannot be one to this state."""


class Operation(ABC):
    """A frozen dataclass whose fields make it concrete, so that a schedule can be run again.

    `weight` is how often it is drawn beside the others, `stages` where a process may be killed in
    it, `refusals` the errors that it may answer with: they must have changed nothing.
    """

    weight: ClassVar[int] = 10
    stages: ClassVar[tuple[str, ...]] = ()
    refusals: ClassVar[tuple[str, ...]] = ()
    piecemeal: ClassVar[bool] = False
    """Whether it may be several commits."""
    plans: ClassVar[bool] = False
    """Whether it may do what was to be done when it began, and no more; `orders` has those too."""
    planned: bool = False
    """Whether this one does: a field where `plans`."""
    settles: ClassVar[bool] = False
    """Whether what it does depends on what is a gap, or frozen."""

    @classmethod
    @abstractmethod
    def draw(cls, model: Model, chance: random.Random) -> Self | None:
        """One that makes sense now; None where there is none."""

    @abstractmethod
    def sql(self, model: Model) -> str:
        """The statement, with the names of now. KeyError where what it names is not there."""

    @abstractmethod
    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        """Changes the model as the statement does, one commit after another: each `yield` comes
        before a commit. `answer` None: the process died, there was none. Raises Untrue."""

    def orders(self, model: Model) -> Iterator[Operation]:
        """The same with its commits in each order in which they may come."""
        yield self

    def perform(self, connection: Connection, text: str) -> Answer:
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
        """Whether only the answer tells what was done: a model alone cannot follow."""
        return False

    def after(self, model: Model, answer: Answer) -> Model:
        """The model once the statement has given this answer."""
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
        """The models that it may be, where the answer alone does not tell."""
        return [self.after(model, answer)]

    def fails(self, model: Model) -> bool:
        """Whether a view fails on a row that the statement gives it."""
        try:
            for _ in self.change(model.copy(), None):
                pass
        except Fails:
            return True
        return False

    def prefixes(self, model: Model) -> Iterator[Model]:
        """Where a process that died in it may have left things: after any of its commits."""
        changed = model.copy()
        try:
            for _ in self.change(changed, None):
                yield changed.copy()
        except Fails:
            return
        yield changed

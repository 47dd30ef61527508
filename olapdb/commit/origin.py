"""The origin of a commit: the statement or background work that every committing function
receives."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from olapdb.config import Settings
from olapdb.errors import QueryWasCancelled
from olapdb.functions.base import Environment
from olapdb.lazy import LazyModule
from olapdb.records import dataclass
from olapdb.runtime.services import Services

if TYPE_CHECKING:
    from olapdb.model import requirements
else:
    requirements = LazyModule("olapdb.model.requirements")

STATEMENT_CHARACTERS_MAX = 4_096
"""The most characters of the statement's text that a commit, and each slice that it invalidates,
keeps."""
_OF_THE_WAREHOUSE = Environment()


@dataclass(frozen=True)
class CommitOrigin:
    """The statement, or the background work, for which a commit is made.

    `kind` is the commit's in system.snapshots ("INSERT", "REPLAY"); the committing function sets it
    with `of_kind`.  `statement` is cut to `STATEMENT_CHARACTERS_MAX` characters.  `settings` are
    the statement's.  `environment` defaults to the warehouse's current one.  Another thread sets
    `cancelled` to end the statement.
    """

    services: Services
    kind: str = ""
    query_id: str = ""
    statement: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    environment: Environment = _OF_THE_WAREHOUSE
    cancelled: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        object.__setattr__(self, "statement", self.statement[:STATEMENT_CHARACTERS_MAX])
        if self.environment is _OF_THE_WAREHOUSE:
            object.__setattr__(self, "environment", self.services.environment(self.query_id))

    def of_kind(self, kind: str) -> CommitOrigin:
        """Return the same origin for a commit of this kind."""
        return replace(self, kind=kind)

    @property
    def lease(self) -> requirements.LeaseLive:
        """Return the requirement of every commit that refers to files staged by this process."""
        return requirements.LeaseLive(self.services.lease_id)

    @property
    def threads(self) -> int:
        """Return how many threads may encode and decode files for the statement; 0: all cores."""
        return Settings.of(self.settings).threads

    def now_ms(self) -> int:
        """Return the wall clock in milliseconds since the epoch."""
        return self.services.clock_ms()

    def refuse_cancelled(self) -> None:
        """Raise QueryWasCancelled if the statement was cancelled."""
        if self.cancelled.is_set():
            raise QueryWasCancelled("The statement was cancelled; nothing was changed.")

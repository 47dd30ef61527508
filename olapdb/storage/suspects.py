"""Parts that a read of this process failed on, until it is looked into whether they are damaged.

A failed read is no proof: memory or file descriptors may have run out, or the reader's snapshot may
have been vacuumed.  So a reader, which may be in any thread and may hold any lock, only notes the
part here; `olapdb.maintenance.damaged_parts` looks at its bytes when the statement has ended.
"""

from __future__ import annotations

import threading

from olapdb.model.part import Part

SUSPECTS_MAX = 1_000


class Suspects:
    """Thread-safe; bounded: of more than `SUSPECTS_MAX` parts the next read tells again."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, part: Part) -> None:
        with self._lock:
            if len(self._parts) < SUSPECTS_MAX:
                self._parts[part.id] = part

    def take(self) -> tuple[Part, ...]:
        """All of them; they are no suspects any more."""
        with self._lock:
            taken, self._parts = tuple(self._parts.values()), {}
        return taken

"""Parts on which a read of this process failed, until a check finds out whether they are damaged.

A failed read is no proof: memory or file descriptors may have run out, or vacuum may have removed
the reader's snapshot.  A reader may be in any thread and hold any lock, so it only notes the part
here; `olapdb.maintenance.damaged_parts` checks its bytes when the statement has ended.
"""

from __future__ import annotations

import threading

from olapdb.model.part import Part

SUSPECTS_MAX = 1_000


class Suspects:
    """A thread-safe set of parts, bounded by `SUSPECTS_MAX`; the next failing read adds those
    beyond it."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, part: Part) -> None:
        """Add a part; do nothing if the set is full."""
        with self._lock:
            if len(self._parts) < SUSPECTS_MAX:
                self._parts[part.id] = part

    def take(self) -> tuple[Part, ...]:
        """Return all suspects and clear the set."""
        with self._lock:
            taken, self._parts = tuple(self._parts.values()), {}
        return taken

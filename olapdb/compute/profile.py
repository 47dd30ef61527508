"""The profile of a running plan, for EXPLAIN ANALYZE: what each node took and gave.

Operators pull batches from each other in one thread, so a stack of the nodes that are asked for a batch
now gives each its own time: the time until its batch came, without that of its inputs.  Tasks of the
query's other threads count for the node that started them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TypeVar

import pyarrow as pa

from olapdb.observation import Counts, counting
from olapdb.plan.nodes import Node
from olapdb.records import dataclass
from olapdb.result import close_iterator

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass
class NodeProfile:
    """The time and the rows of one plan node. `waited_seconds`: for its batches, without those of its inputs;
    `task_seconds`: of its tasks in the query's threads, added up."""

    node: Node
    rows: int = 0
    bytes: int = 0
    batches: int = 0
    waited_seconds: float = 0.0
    tasks: int = 0
    task_seconds: float = 0.0
    starts: int = 0
    ended: bool = False
    """True once the last batch was asked for: the number of rows is then complete."""
    selection: tuple[int, int, int, int] | None = None
    """Parts and parts read, granules and granules read; None for a node that selects none."""
    notes: list[str] = field(default_factory=list)
    expected_share: float = 1.0
    """The part of the node's rows that was expected to remain after filters of joins above it."""
    runner: Node | None = None
    """The node above whose operator does this one's work, if it has no operator of its own."""
    counts: Counts = field(default_factory=Counts)


class QueryProfile:
    """The profiles of a plan's nodes. Tasks of any thread may report to it."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._profiles: dict[int, NodeProfile] = {}
        self._running: list[tuple[NodeProfile, float]] = []
        self._replacements: list[Node] = []
        self._lock = threading.Lock()

    def of(self, node: Node) -> NodeProfile:
        """Return the profile of a node, an empty one at first."""
        known = self._profiles.get(id(node))
        if known is None:
            known = self._profiles.setdefault(id(node), NodeProfile(node))
        return known

    def stand_in(self, replacement: Node, original: Node) -> None:
        """Let `replacement`, a node that runs in place of `original`, add to the profile of `original`."""
        self._profiles[id(replacement)] = self.of(original)
        self._replacements.append(replacement)  # an id comes again when its object is gone

    def reduce(self, node: Node, share: float) -> None:
        """Note that a filter was expected to leave this share, 0 to 1, of a node's rows."""
        self.of(node).expected_share *= share

    def watch(self, batches: Iterator[pa.RecordBatch], node: Node) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a node and count them, and the time until each came."""
        profile = self.of(node)
        profile.starts += 1
        try:
            while True:
                with counting(profile.counts):
                    batch = self._next(batches, profile)
                if batch is None:
                    profile.ended = True
                    return
                profile.rows += batch.num_rows
                profile.bytes += batch.nbytes
                profile.batches += 1
                yield batch
        finally:
            close_iterator(batches)

    def _next(
        self, batches: Iterator[pa.RecordBatch], profile: NodeProfile
    ) -> pa.RecordBatch | None:
        """Return the next batch, None at the end; take its time from that of the node above."""
        begun = self._clock()
        if self._running:
            above, since = self._running[-1]
            above.waited_seconds += begun - since
        self._running.append((profile, begun))
        try:
            return next(batches, None)
        finally:
            ended = self._clock()
            profile.waited_seconds += ended - self._running.pop()[1]
            if self._running:
                self._running[-1] = (self._running[-1][0], ended)

    def task(self, work: Callable[[Item], Answer]) -> Callable[[Item], Answer]:
        """Return `work` such that its calls count as tasks of the node that runs now."""
        if not self._running:
            return work
        profile = self._running[-1][0]

        def counted(item: Item) -> Answer:
            """Do the work, and add its time and counts to the node's."""
            counts = Counts()
            begun = self._clock()
            try:
                with counting(counts):
                    return work(item)
            finally:
                with self._lock:
                    profile.tasks += 1
                    profile.task_seconds += self._clock() - begun
                    profile.counts.add(counts)

        return counted

"""Chains of operators that make batches of batches, so that a thread can do all of them for some rows.

A scan, a condition, a projection and the look-ups of a join each turn a batch into batches, whatever
the other batches have.  Such an operator returns a `Stage`:

    Stage(read, tasks)  <-  Stage(filtered)  <-  Stage(joined)  <-  GROUP BY

Whoever draws batches from the last one has them made stage by stage, by several threads, and few of them
wait between two stages.  An operator that keeps little of its input takes the chain instead (`Stage.chain`):
one thread does all stages and its own work for a task, so that no batch waits for another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from olapdb.compute.batches import cut
from olapdb.errors import InternalError
from olapdb.records import dataclass
from olapdb.result import close_iterator

if TYPE_CHECKING:
    from olapdb.compute.context import ExecutionContext
    from olapdb.plan.nodes import Node

Made = TypeVar("Made")
Answer = TypeVar("Answer")
Work = Callable[[Any], Iterable[pa.RecordBatch]]
"""What is made of a batch, or of a task of the first stage."""
Together = Callable[[Sequence[Any]], Sequence[Any]]
"""Puts items together that one thread works on."""
Gather = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Puts batches together, or cuts them, before the work."""
Begin = Callable[[bool], AbstractContextManager[Iterator[pa.RecordBatch]]]
"""Begins an operator, see `Deferred`."""


@dataclass(frozen=True)
class KnownTasks:
    """Facts about the items of a first stage that are known before work on them begins."""

    rows: Sequence[int] = ()
    """The rows of each item; empty where they are not known."""
    together: Together | None = None
    """Puts items together, where the rows are known and one thread does all."""
    scan: Hashable = None
    """The key under which later runs of the plan find what this scan took; None if they do not read the same."""
    is_long: bool = False
    """Whether the works are known to take long enough for threads."""


UNKNOWN_TASKS = KnownTasks()


@dataclass(frozen=True)
class Chain(Generic[Made]):
    """Items, and what all stages make of each."""

    items: Iterable[Any]
    work: Callable[[Any], Made]
    known: KnownTasks = UNKNOWN_TASKS
    stages: int = 1
    """How many works are done for each item."""

    def then(self, work: Callable[[Made], Answer]) -> Chain[Answer]:
        """Return the chain in which `work` is applied to the answer of the work so far, as one more stage."""
        below = self.work
        return Chain(self.items, lambda item: work(below(item)), self.known, self.stages + 1)

    def run(self, context: ExecutionContext) -> Iterator[Made]:
        """Yield the answer of the chain's work for each item, in the order of the items; by threads where that pays."""
        known = self.known
        if known.rows and isinstance(self.items, Sequence):
            return context.parallel_if_long(
                self.work,
                self.items,
                known.rows,
                known.together,
                self.stages,
                scan=known.scan,
                is_long=known.is_long,
            )
        return context.parallel_if_slow(self.work, self.items)


class Stage(Iterator[pa.RecordBatch]):
    """The batches that some work makes of each item, in the order of the items.

    The items are tasks, about which `known` has facts, or the batches of the stage below, as `gather` leaves them.
    The work must be thread-safe, and its batches may have any number of rows."""

    def __init__(
        self,
        context: ExecutionContext,
        work: Work,
        items: Iterable[Any],
        *,
        gather: Gather | None = None,
        known: KnownTasks = UNKNOWN_TASKS,
    ) -> None:
        self._context = context
        self._work = work
        self._items = items
        self._gather = gather
        self._known = known
        self._batches: Iterator[pa.RecordBatch] | None = None

    def __next__(self) -> pa.RecordBatch:
        """Return the next batch, cut to a batch's rows; no batch is empty."""
        if self._batches is None:
            self._batches = self._made()
        return next(self._batches)

    def close(self) -> None:
        """End the threads' work on further items."""
        close_iterator(self._items if self._batches is None else self._batches)

    def checked(self, node: Node) -> Stage:
        """Return the stage with each batch checked to be of a node's schema."""
        work = self._work
        return Stage(
            self._context,
            lambda item: (has_schema(batch, node) for batch in work(item)),
            self._items,
            gather=self._gather,
            known=self._known,
        )

    def chain(self, stack: ExitStack) -> Chain[Iterable[pa.RecordBatch]]:
        """Return this stage and those below it; nothing may have been drawn from them."""
        work, gather = self._work, self._gather
        items = begun(self._items, stack)
        if not isinstance(items, Stage):
            rows = items if gather is None else gather(iter(items))
            return Chain(rows, work, self._known)

        def made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            """Yield what the work makes of the batches that the stages below made of an item."""
            for batch in batches if gather is None else gather(iter(batches)):
                self._context.check()
                if batch.num_rows:
                    yield from work(batch)

        return items.chain(stack).then(made)

    def _made(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of this stage alone, each of at most a batch's rows, without joining its work to that of
        the stages below."""
        items = self._items if self._gather is None else self._gather(iter(self._items))
        alone = KnownTasks(self._known.rows, scan=self._known.scan, is_long=self._known.is_long)
        chain = Chain(items, lambda item: list(self._work(item)), alone)
        for batches in chain.run(self._context):
            for batch in batches:
                yield from cut(batch, self._context.batch_rows)


class Deferred(Iterator[pa.RecordBatch]):
    """The batches of an operator that has to do something first, and to clean up after the last one.

    `begin` does it when the first batch is asked for; what it returns gives the batches, which may be a
    `Stage`, within a `with` block. Its argument is whether a chain will take all of them: then the first ones
    need not come soon."""

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._batches: Iterator[pa.RecordBatch] | None = None

    def __next__(self) -> pa.RecordBatch:
        """Return the next batch."""
        if self._batches is None:
            self._batches = self._run()
        return next(self._batches)

    def close(self) -> None:
        """End the deferred work and clean up, if it was begun."""
        if self._batches is not None:
            close_iterator(self._batches)

    def begun(self, stack: ExitStack) -> Iterator[pa.RecordBatch]:
        """Do the deferred first part of the work, such as building a hash table; return the batches, which may be read
        until the stack closes."""
        return stack.enter_context(self._begin(True))

    def checked(self, node: Node) -> Deferred:
        """Return the deferred batches, each checked to be of the node's schema."""

        @contextmanager
        def begin(in_chain: bool) -> Iterator[Iterator[pa.RecordBatch]]:
            """Begin the deferred work, and yield its batches with their schemas checked."""
            with self._begin(in_chain) as batches:
                yield checked(batches, node)

        return Deferred(begin)

    def _run(self) -> Iterator[pa.RecordBatch]:
        """Begin the work and yield its batches; clean up at the end."""
        with self._begin(False) as batches:
            yield from batches


def begun(rows: Iterable[Any], stack: ExitStack) -> Iterable[Any]:
    """Return the rows after the first part of their work, if they are deferred, has been done: a `Stage`, whose `chain`
    may be taken, or other batches. What was begun ends when the stack closes."""
    while isinstance(rows, Deferred):
        rows = rows.begun(stack)
    return rows


def chain_of(rows: Iterable[Any], stack: ExitStack) -> Chain[Iterable[pa.RecordBatch]]:
    """Return the chain that makes the rows. If no stage makes them, each batch is an item of its own, unchanged."""
    rows = begun(rows, stack)
    return rows.chain(stack) if isinstance(rows, Stage) else Chain(rows, lambda batch: (batch,))


def all_batches(
    rows: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield all batches, for a caller that takes every one: a thread does all stages of a task, and no batch waits
    between two of them."""
    with ExitStack() as stack:
        batches = begun(rows, stack)
        if not isinstance(batches, Stage):
            yield from batches
            return
        for batches_of_item in batches.chain(stack).then(list).run(context):
            for batch in batches_of_item:
                yield from cut(batch, context.batch_rows)


def checked(batches: Iterator[pa.RecordBatch], node: Node) -> Iterator[pa.RecordBatch]:
    """Return the batches; one whose schema is not the node's raises InternalError."""
    if isinstance(batches, Stage | Deferred):
        return batches.checked(node)
    return (has_schema(batch, node) for batch in batches)


def has_schema(batch: pa.RecordBatch, node: Node) -> pa.RecordBatch:
    """Return the batch. Raises InternalError if its schema is not the node's."""
    if not batch.schema.equals(node.arrow_schema):
        raise InternalError(
            f"{type(node).__name__} made a batch of {batch.schema}, its schema is {node.arrow_schema}."
        )
    return batch

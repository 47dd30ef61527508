"""Stage, then commit once: what merges, mutations and jobs use to change a warehouse.

    with Transaction(services) as transaction:
        staged = transaction.stage(table, rows, partition_id="202301", …)
        transaction.commit(lambda snapshot: Commit(…))

Files of a transaction that surely did not happen are deleted at its end; after CommitUnknown
nothing is, for they may be the table's now (vacuum finds out, once the lease has ended).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

import pyarrow as pa

from olapdb.errors import CommitConflict, CommitUnknown, Error, InternalError
from olapdb.model.changes import Commit, Committed, LeaseLive
from olapdb.model.part import Blocks, Contribution
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.failpoints import failpoint
from olapdb.runtime.services import Services
from olapdb.storage.writer import StagedPart, write_part

ATTEMPTS_MAX = 10


class Transaction:
    """Of one thread, for one commit."""

    def __init__(self, services: Services, *, attempts_max: int = ATTEMPTS_MAX) -> None:
        self._services = services
        self._attempts_max = attempts_max
        self._paths: list[str] = []
        self._settled = False

    @property
    def lease(self) -> LeaseLive:
        """The requirement that every commit of staged files has."""
        return LeaseLive(self._services.lease_id)

    def stage(
        self,
        table: Table,
        rows: pa.Table,
        *,
        partition_id: str,
        partition_value: tuple[object, ...],
        blocks: Blocks,
        contributions: Iterable[Contribution] = (),
        level: int = 0,
        inline_bytes_max: int = 0,
        replaces: Iterable[str] = (),
        index_values: Mapping[str, pa.Array] | None = None,
        threads: int = 0,
    ) -> StagedPart:
        """`write_part` under the transaction's lease."""
        failpoint("stage.before_part")
        staged = write_part(
            self._services.store,
            table,
            rows,
            partition_id=partition_id,
            partition_value=partition_value,
            blocks=blocks,
            lease_id=self._services.lease_id,
            contributions=contributions,
            level=level,
            inline_bytes_max=inline_bytes_max,
            replaces=replaces,
            index_values=index_values,
            threads=threads,
        )
        self.adopt(staged)
        failpoint("stage.part_staged")
        return staged

    def adopt(self, staged: StagedPart) -> None:
        """Takes over a part that was staged elsewhere under the same lease."""
        if staged.part.path:
            self._paths.append(staged.part.path)

    def drop(self, staged: StagedPart) -> None:
        """Delete the file of a part that no further attempt commits; after a conflict only."""
        if staged.part.path:
            self._paths.remove(staged.part.path)
            self._services.store.delete(staged.part.path)

    def commit(self, build: Callable[[Snapshot], Commit]) -> Committed:
        """Applies `build(newest snapshot)`; on CommitConflict builds again, bounded.

        `build` raises what makes the work pointless (Aborted, or CommitConflict to give up at
        once).  Raises Aborted where the lease was revoked, CommitConflict after the last attempt,
        and all that `Catalog.apply` raises.
        """
        if self._settled:
            raise InternalError("A transaction commits once.")
        for attempt in range(1, self._attempts_max + 1):
            commit = build(self._services.catalog.snapshot())
            failpoint("transaction.before_commit")
            self._settled = True  # whatever interrupts `apply`, its outcome is not known
            try:
                committed = self._services.catalog.apply(commit)
            except CommitUnknown:
                raise
            except CommitConflict:
                self._settled = False
                if attempt == self._attempts_max:
                    raise
                continue
            except Error:
                self._settled = False
                raise
            failpoint("transaction.committed")
            return committed
        raise InternalError("A transaction makes at least one attempt.")

    def discard(self) -> None:
        """Deletes what was staged, unless it was, or may have been, committed. Idempotent."""
        if self._settled:
            return
        self._settled = True
        for path in self._paths:
            self._services.store.delete(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.discard()

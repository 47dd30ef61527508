"""Stages files for a statement's commit, and deletes them unless the commit happened.

    with Staging(origin) as staging:
        added = staging.stage_part(table, rows, PartPlan("202301", (date,), blocks))
        draft.change(added)
        staging.publish(draft)

After CommitUnknown, or an interrupt during the commit, nothing is deleted: the files may belong to
the table now.  Vacuum decides, once the lease has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self

import pyarrow as pa

from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.origin import CommitOrigin
from olapdb.errors import CommitUnknown, Error, InternalError
from olapdb.model.changes import AddPart, Committed
from olapdb.model.part import Contribution, Part
from olapdb.model.schema import Table
from olapdb.storage.part_plan import NOTHING_DERIVED, Derived, PartPlan
from olapdb.storage.writer import write_part


class Staging:
    """The files of one commit, staged under the process's lease.

    As a context manager it deletes them at the end unless they were, or may have been, committed.
    Several threads may stage at once.
    """

    def __init__(self, origin: CommitOrigin) -> None:
        self._origin = origin
        self._paths: list[str] = []
        self._committed = False

    def stage_part(self, table: Table, rows: pa.Table, plan: PartPlan) -> AddPart:
        """Write a part of these rows (see `write_part`); return the change that adds it."""
        origin = self._origin
        staged = write_part(
            origin.services.store,
            table,
            rows,
            plan,
            lease_id=origin.services.lease_id,
            threads=origin.threads,
        )
        if staged.part.path:
            self._paths.append(staged.part.path)
        return AddPart(staged.part, staged.inline_rows)

    def stage_replacement(
        self,
        table: Table,
        part: Part,
        rows: pa.Table,
        derived: Derived = NOTHING_DERIVED,
        *,
        contributions: Sequence[Contribution] | None = None,
    ) -> AddPart:
        """Write a part of these rows that replaces `part`; `contributions` None keeps those of
        `part`."""
        plan = PartPlan.replacing(part, table, derived)
        if contributions is not None:
            plan = replace(plan, contributions=contributions)
        return self.stage_part(table, rows, plan)

    def adopt(self, paths: Iterable[str]) -> None:
        """Take over files that the caller staged under the same lease."""
        self._paths += paths

    def drop(self, staged: AddPart) -> None:
        """Delete the file of a part that no commit will name any more."""
        if staged.part.path:
            self._paths.remove(staged.part.path)
            self._origin.services.store.delete(staged.part.path)

    def publish(self, draft: CommitDraft, *, notify: bool = True) -> Committed:
        """Apply the draft as `olapdb.commit.draft.publish` does; the files then belong to the
        warehouse.

        After an error other than CommitUnknown the statement may try again, or end.
        """
        with self.committing():
            return publish(draft, self._origin, notify=notify)

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Hand the files over to the commit inside; after an error other than CommitUnknown they
        belong to the statement again."""
        if self._committed:
            raise InternalError("Staged files are committed once.")
        self._committed = True  # an interrupt during the commit leaves its outcome unknown
        try:
            yield
        except CommitUnknown:
            raise
        except Error:
            self._committed = False
            raise

    def discard(self) -> None:
        """Delete the staged files, unless they were, or may have been, committed. Idempotent."""
        if self._committed:
            return
        paths, self._paths = self._paths, []
        for path in paths:
            self._origin.services.store.delete(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.discard()

"""Backfills with several chunks for a partition, published all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from tests.schedules.model import Model
from tests.schedules.operation import Answer, Operation, Untrue
from tests.schedules.views import Backfill, fillable


@dataclass(frozen=True)
class StagedBackfill(Backfill):
    """A backfill with small chunks in one commit: a killed process has published all of it, or
    nothing."""

    weight: ClassVar[int] = 8
    piecemeal: ClassVar[bool] = False

    def sql(self, model: Model) -> str:
        return (
            f"{super().sql(model)}, backfill_staging = 1, backfill_chunk_rows_max = 3,"
            " backfill_threads = 2"
        )

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        wanted = self.slices(model)
        plan = self.plan(model)
        if answer is not None:
            done = sorted({r["partition"] for r in answer.rows if r["status"] == "published"})
            if done != wanted or any(r["status"] == "failed" for r in answer.rows):
                raise Untrue(f"filled {answer.rows}, the gap is {wanted}")
            if len({r["commit"] for r in answer.rows if r["status"] == "published"}) > 1:
                raise Untrue(f"published one after another: {answer.rows}")
        if wanted:
            yield
        for slice_ in wanted:
            model.fill(self.view, slice_, plan.get(slice_))

    def orders(self, model: Model) -> Iterator[Operation]:
        yield replace(self, planned=True)

    def fill_some(self, model: Model, answer: Answer) -> None:
        """Apply nothing: a failed chunk publishes no other."""
        wanted = self.slices(model)
        failed = {row["partition"] for row in answer.rows if row["status"] == "failed"}
        if failed != set(wanted) - set(fillable(model, self.view, wanted)) or not failed:
            raise Untrue(f"failed {failed} of {wanted}")
        if any(row["status"] == "published" for row in answer.rows):
            raise Untrue(f"published a part of it: {answer.rows}")

    def prefixes(self, model: Model) -> Iterator[Model]:
        return Operation.prefixes(self, model)

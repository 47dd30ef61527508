"""UPDATE and OPTIMIZE … DEDUPLICATE: one mutation in one commit."""

from __future__ import annotations

from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import retry_commit
from olapdb.commit.staging import Staging
from olapdb.dml.find_rows import Parameters
from olapdb.dml.mutation import Mutation
from olapdb.dml.mutation_steps import Step
from olapdb.errors import UnknownTable
from olapdb.lineage.row_removal import part_rewrite_policy
from olapdb.model.requirements import SchemaIs
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """The outcome of a mutation: rows that a step changed or removed, parts that were replaced;
    `commit` is None if there was nothing to do."""

    rows: int
    parts: int
    commit: int | None


def mutate(
    origin: CommitOrigin, table_id: str, step: Step, *, parameters: Parameters = None
) -> UpdateResult:
    """Run one step on one snapshot and commit it; repeat it after each conflict, bounded. Rows
    inserted meanwhile stay unchanged.

    Raises the errors of `check_assignments`, and HaveDependentObjects on the target of a view.
    """

    def attempt(snapshot: Snapshot) -> UpdateResult:
        """Run the step on this snapshot and commit the rewritten parts, if there are any.

        Raises UnknownTable."""
        table = snapshot.by_id(table_id)
        if not isinstance(table, Table):
            raise UnknownTable(f"The table of this {origin.kind} does not exist any more.")
        with Staging(origin) as staging:
            mutation = Mutation(origin, staging, snapshot, table, parameters)
            mutation.run(step)
            if not mutation.replaced:
                return UpdateResult(0, 0, None)
            draft = mutation.draft()
            draft.require(origin.lease, SchemaIs(table.id, table.version))
            failpoint("update.before_commit")
            committed = staging.publish(draft)
        return UpdateResult(mutation.rows, len(mutation.replaced), committed.number)

    return retry_commit(origin.services, attempt, part_rewrite_policy(origin.kind))

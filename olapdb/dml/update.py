"""UPDATE and OPTIMIZE … DEDUPLICATE: a mutation by itself, in one commit."""

from __future__ import annotations

from dataclasses import dataclass

from olapdb.commit.fair_retry import ATTEMPTS_MAX, FairRetry
from olapdb.dml.find_rows import Parameters
from olapdb.dml.mutation import Mutation
from olapdb.dml.mutation_steps import Step
from olapdb.errors import CommitConflict, UnknownTable
from olapdb.ingest.read_parts import discarding
from olapdb.ingest.trigger import TriggerContext
from olapdb.model.changes import Commit, LeaseLive, SchemaIs
from olapdb.model.schema import Table
from olapdb.runtime.failpoints import failpoint
from olapdb.runtime.services import Services


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Rows that a step changed or removed, parts that were replaced; `commit` None where there was
    nothing to do."""

    rows: int
    parts: int
    commit: int | None


def mutate(
    services: Services,
    table_id: str,
    step: Step,
    *,
    kind: str,
    around: TriggerContext,
    query_id: str = "",
    statement: str = "",
    parameters: Parameters = None,
) -> UpdateResult:
    """One step, as of one snapshot, anew on each conflict, bounded.  Rows inserted meanwhile stay
    as they are.  `around` gives settings and environment; `kind` is the commit's.

    Raises what `check_assignments` raises, and HaveDependentObjects on the target of a view.
    """
    turns = FairRetry(services, kind)
    for _ in range(ATTEMPTS_MAX):
        with turns.attempt(), services.catalog.pinned() as snapshot:
            table = snapshot.by_id(table_id)
            if not isinstance(table, Table):
                raise UnknownTable(f"The table of this {kind} does not exist any more.")
            mutation = Mutation(services, snapshot, table, around, query_id, statement, parameters)
            try:
                try:
                    mutation.run(step)
                    if not mutation.replaced:
                        return UpdateResult(0, 0, None)
                    requirements, changes = mutation.commit_data()
                    requirements.insert(0, SchemaIs(table.id, table.version))
                    failpoint("update.before_commit")
                except BaseException:
                    mutation.discard()
                    raise
                with discarding(mutation.discard):
                    committed = services.catalog.apply(
                        Commit(
                            (LeaseLive(services.lease_id), *requirements),
                            tuple(changes),
                            kind,
                            query_id,
                            statement,
                        )
                    )
            except CommitConflict:
                continue
            services.notify_written(table.id)
            return UpdateResult(mutation.rows, len(mutation.replaced), committed.number)
    raise CommitConflict(
        f"Merges and INSERTs were faster than this {kind} {ATTEMPTS_MAX} times.",
        hint="Nothing was changed; run it again, after SYSTEM STOP MERGES if need be.",
    )

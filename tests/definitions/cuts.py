"""The same rows cut into other blocks give the same answers.

A script runs unchanged and with each INSERT cut into blocks of one row. If both runs refused the
same statements, targets of views that both call covered or proven must hold the same rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from olapdb.dbapi.connection import Connection
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.types import AggregateFunction
from tests.definitions.run import Finding, Run, Totals
from tests.definitions.steps import Script, recut, script_of
from tests.definitions.truth import TRUSTED, statuses
from tests.definitions.values import normal

ORDER_MATTERS = re.compile(r"LIMIT|rand|now|UUID|uptime|queryID|QueryID")
"""Statements whose outcome depends on the order of rows, or on the time at which they run."""
ROWS_MATTER = re.compile(r"UPDATE|DELETE|TTL|CLEAR|DEDUPLICATE|CONSTRAINT|ADD COLUMN")
"""Statements about stored rows: in an engine that combines rows, each cut stores other ones."""
JOINS_ROWS = re.compile(r"ENGINE = (?:Summing|Aggregating|Replacing|Collapsing|Versioned)")

Answers = Mapping[str, Sequence[Sequence[Any]]]


@dataclass(frozen=True)
class Outcome:
    """The result of a run: a finding, or the refused statements and the answers by target."""

    finding: Finding | None
    refused: tuple[str, ...]
    answers: Answers


def outcome(script: Script, totals: Totals) -> Outcome:
    """Run the script; return its first finding, or the refused statements and what trusted views
    hold."""
    run = Run(totals)
    try:
        for step in script.steps:
            finding = run.take(step)
            if finding is not None:
                return Outcome(finding, (), {})
        seen = statuses(run.connection)
        trusted = {name for name, status in seen.items() if status.verdict in TRUSTED}
        refused = tuple(
            re.sub(r" SETTINGS max_insert.*", "", t) for t in run.said if t.startswith("-- refused")
        )
        return Outcome(None, refused, answers(run.connection, trusted))
    finally:
        run.close()


def compare_cuts(script: Script, totals: Totals) -> str:
    """Return "" if both cuts give the same answers, else the finding or the two answers in
    words."""
    joins_rows = any(JOINS_ROWS.search(s.text) for s in script.steps)
    fixed = script_of(
        (s.text for s in script.steps if not _by_rows(s.text, joins_rows)), script.seed
    )
    whole = outcome(fixed, totals)
    if whole.finding is not None:
        return ""  # other cuts are not needed to find it
    cut = outcome(recut(fixed), totals)
    if cut.finding is not None:
        return f"in blocks of one row:\n{cut.finding}"
    if [_head(t) for t in whole.refused] != [_head(t) for t in cut.refused]:
        return ""
    for target in sorted(whole.answers.keys() & cut.answers.keys()):
        if whole.answers[target] != cut.answers[target]:
            return f"{fixed}-- {target} holds {whole.answers[target]}, in blocks of one row {cut.answers[target]}"
    totals.counts["cut otherwise"] += 1
    return ""


def answers(connection: Connection, trusted: set[str]) -> dict[str, list[list[Any]]]:
    """Return the rows of targets that are trusted down to their sources, sorted and finalized."""
    snapshot = connection.database.services.catalog.snapshot()
    found: dict[str, list[list[Any]]] = {}
    for target in snapshot.objects("default"):
        if not isinstance(target, Table) or not snapshot.views_into(target.id):
            continue
        if not _by_rows_alone(snapshot, target.id, trusted):
            continue
        said = [
            f"finalizeAggregation({c.name})" if isinstance(c.type, AggregateFunction) else c.name
            for c in target.stored_columns
        ]
        final = " FINAL" if target.engine.combines else ""
        rows = connection.execute(f"SELECT {', '.join(said)} FROM {target.name}{final}").fetchall()
        kinds = [c.type.name for c in target.stored_columns]
        found[target.name] = sorted(
            ([normal(v, k) for v, k in zip(row, kinds)] for row in rows), key=repr
        )
    return found


def _by_rows_alone(snapshot: Snapshot, table_id: str, trusted: set[str]) -> bool:
    """Return whether every view that writes the table, or a table that these views read, is
    trusted."""
    seen: set[str] = set()
    waiting = [table_id]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        for view in snapshot.views_into(one):
            if view.name not in trusted:
                return False
            waiting += view.references
    return True


def _by_rows(text: str, joins_rows: bool) -> bool:
    """Return whether another cut of the rows may rightly change the statement's outcome."""
    if ORDER_MATTERS.search(text) is not None:
        return True
    return joins_rows and not text.startswith("CREATE") and ROWS_MATTER.search(text) is not None


def _head(text: str) -> str:
    """Return the statement without its rows, which is equal in both cuts."""
    return text.partition(" VALUES ")[0]

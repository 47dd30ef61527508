"""The same rows in other blocks give the same answers.

A script is run as it is and with each INSERT of rows in blocks of one. Where both runs refused the
same statements and call a view covered or proven at the end, its target must hold the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.definitions.run import Finding, Run, Totals
from tests.definitions.steps import Script, recut, script_of
from tests.definitions.truth import TRUSTED, answers, statuses

ORDER_MATTERS = re.compile(r"LIMIT|rand|now|UUID|uptime|queryID|QueryID")
"""Statements whose own outcome depends on the order of rows, or on when they run."""
ROWS_MATTER = re.compile(r"UPDATE|DELETE|TTL|CLEAR|DEDUPLICATE|CONSTRAINT")
"""Statements about rows as they are stored: of an engine that joins rows, each cut stores others."""
JOINS_ROWS = re.compile(r"ENGINE = (?:Summing|Aggregating|Replacing|Collapsing|Versioned)")

Answers = Mapping[str, Sequence[Sequence[Any]]]


@dataclass(frozen=True)
class Outcome:
    finding: Finding | None
    refused: tuple[str, ...]
    answers: Answers


def outcome(script: Script, totals: Totals) -> Outcome:
    """What trusted views hold at the end, by the name of their target; nothing after a finding."""
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
    """ "" where other cuts give the same; else what differs, with both scripts' finding or answers."""
    joins_rows = any(JOINS_ROWS.search(s.text) for s in script.steps)
    fixed = script_of(
        (s.text for s in script.steps if not _by_rows(s.text, joins_rows)), script.seed
    )
    whole = outcome(fixed, totals)
    if whole.finding is not None:
        return ""  # it is found without other cuts as well
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


def _by_rows(text: str, joins_rows: bool) -> bool:
    """Whether another cut of the rows may rightly give the statement another outcome."""
    if ORDER_MATTERS.search(text) is not None:
        return True
    return joins_rows and not text.startswith("CREATE") and ROWS_MATTER.search(text) is not None


def _head(text: str) -> str:
    """The statement without its rows: the same one is cut in two ways."""
    return text.partition(" VALUES ")[0]

"""Random definitions: after every step each view that `system.views` calls covered or proven equals
its query.

A failure prints the seed and the shortest script, as SQL that can be pasted."""

from __future__ import annotations

import os
import time

import pytest

from tests.definitions.cuts import compare_cuts
from tests.definitions.grammar import draw_script
from tests.definitions.run import Totals
from tests.definitions.soak import soak
from tests.definitions.steps import read_script

pytestmark = pytest.mark.feature("provability")

DEFINITIONS = 300
CUT_EVERY = 10
"""Every tenth definition is run again with its rows in blocks of one."""
PROVABLE_SHARE = 0.15
SHRINKING_RUNS_MAX = 200
"""Runs per finding in CI. `python -m tests.definitions.soak SEED 1` shrinks it further."""


@pytest.mark.timeout(1_200)
def test_definitions() -> None:
    """The 300 seeds are the same in each run."""
    processes = min(os.cpu_count() or 1, 4)
    totals, findings = soak(0, DEFINITIONS, processes, SHRINKING_RUNS_MAX)
    print(f"\n{totals}")
    assert not findings, "\n".join(findings)
    assert totals.counts["compared"] > DEFINITIONS
    views = sum(totals.definitions.values())
    assert totals.definitions["provable"] > PROVABLE_SHARE * views, (
        "it hardly reaches what is provable"
    )
    assert totals.definitions["refused"] < 0.65 * views, "most of what it draws is refused"


@pytest.mark.timeout(600)
def test_rows_in_blocks_of_one_row_give_the_same_answers() -> None:
    """The same rows in blocks of one row give the same answers."""
    totals = Totals()
    for seed in range(0, DEFINITIONS, CUT_EVERY):
        wrong = compare_cuts(draw_script(seed), totals)
        assert not wrong, f"seed {seed}, cut otherwise:\n{wrong}"
    print(f"\n{totals.counts['cut otherwise']} cut otherwise; {totals}")
    assert totals.counts["cut otherwise"] > DEFINITIONS / CUT_EVERY / 2


def test_scripts_are_the_same_for_a_seed() -> None:
    for seed in range(20):
        script = draw_script(seed)
        assert str(script) == str(draw_script(seed))
        assert read_script(str(script)).steps == script.steps


@pytest.mark.soak
@pytest.mark.timeout(86_400)
def test_many_definitions() -> None:
    """100,000 seeds, which change each day."""
    first = time.time_ns() // 86_400_000_000_000 * 1_000_000
    count = int(os.environ.get("OLAPDB_SOAK_DEFINITIONS", "100000"))
    totals, findings = soak(first, count, processes=os.cpu_count() or 1)
    print(f"\n{totals}")
    assert not findings, "\n".join(findings)
    assert totals.scripts == count

"""Pairs of mechanisms that could make a view's verdict false: the scripts of `pairs.sql`, mended at their end.

Each exchanges, renames, retypes or changes by a setting what a view reads or writes, between two proofs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.definitions.run import Totals, run_script
from tests.definitions.steps import MEND, Script, Step, read_script

pytestmark = pytest.mark.feature("provability")

_BLOCKS = (Path(__file__).parent / "pairs.sql").read_text().split("--= ")[1:]
PAIRS = {block.partition("\n")[0]: block.partition("\n")[2] for block in _BLOCKS}


@pytest.mark.parametrize("name", PAIRS)
def test_no_verdict_is_false(name: str) -> None:
    script, totals = read_script(PAIRS[name]), Totals()
    finding = run_script(Script((*script.steps, Step(MEND))), totals)
    assert finding is None, f"\n{finding}"
    assert totals.counts["compared"] >= 2, "no proof was compared with its query"
    assert totals.verdicts["proven"], "the view was never proven"

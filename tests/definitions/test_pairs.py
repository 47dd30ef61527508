"""Pairs of mechanisms that could make a view's verdict false: the scripts of `pairs.sql`, `names.sql` and
`histories.sql`, mended at their end.

Each exchanges, renames, retypes or changes by a setting what a view reads or writes, between two proofs. Those of
`histories.sql` are done to one warehouse of three views, which their `prelude` makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.definitions.run import Totals, run_script
from tests.definitions.steps import MEND, Script, Step, read_script

pytestmark = pytest.mark.feature("provability")


def blocks_of(name: str) -> dict[str, str]:
    """Return the blocks of a file by their names."""
    blocks = (Path(__file__).parent / name).read_text().split("--= ")[1:]
    return {block.partition("\n")[0]: block.partition("\n")[2] for block in blocks}


_HISTORIES = blocks_of("histories.sql")
_PRELUDE, _END = _HISTORIES.pop("prelude"), _HISTORIES.pop("end")
_NAMES = blocks_of("names.sql")
_TABLES = _NAMES.pop("prelude")
PAIRS = (
    blocks_of("pairs.sql")
    | {f"names_{n}": _TABLES + text for n, text in _NAMES.items()}
    | {n: _PRELUDE + text + _END for n, text in _HISTORIES.items()}
)


@pytest.mark.parametrize("name", PAIRS)
def test_no_verdict_is_false(name: str) -> None:
    script, totals = read_script(PAIRS[name]), Totals()
    finding = run_script(Script((*script.steps, Step(MEND))), totals)
    assert finding is None, f"\n{finding}"
    assert totals.counts["compared"] >= 2, "no proof was compared with its query"
    assert totals.verdicts["proven"], "the view was never proven"


def test_a_column_that_the_view_does_not_name_leaves_it_proven() -> None:
    totals = Totals()
    assert run_script(read_script(PAIRS["names_other_names"]), totals) is None
    assert not totals.verdicts["stale"]

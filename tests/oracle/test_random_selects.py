"""Random typed SELECTs beside ClickHouse: the same types, values and errors, except for differences
that docs/differences.md lists, each a named rule of `random_compare`.

A failure names its seed and statement; `Statements(seed)` draws the same tables and statements
again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

import olapdb
from tests.harness.oracle import Oracle
from tests.oracle.random_compare import Comparison, Verdict
from tests.oracle.random_selects import TABLES, Statements

pytestmark = pytest.mark.feature("select")

STATEMENTS_A_SEED = 50
SHORT_SEEDS, LONG_SEEDS = range(1, 11), range(1_000, 1_400)
FOUND_SEEDS = (7_014, 20_002, 20_009, 20_050, 20_104, 20_175, 31_053, 31_088, 31_119, 57_006)
"""Seeds of differences that a long run found."""
UNEXPLAINED = ("different", "refused", "accepted")
REFUSED_MOST = 0.005
"""The largest share of statements that olapdb may refuse though ClickHouse answers them, not
counting those whose answer is a Variant of numbers, which olapdb does not make."""
VARIANTS = ("no Variant", "an integer that no Float64 is")


class Tally:
    """Counts of the outcomes of many statements."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()
        self.answered = self.refused = 0
        self.wrong: list[str] = []

    def add(self, where: str, statement: str, verdict: Verdict) -> None:
        self.outcomes[verdict.outcome] += 1
        self.rules[verdict.rule] += 1
        self.answered += verdict.theirs_answered
        refused = verdict.theirs_answered and not verdict.ours_answered
        self.refused += refused and verdict.rule not in VARIANTS
        if verdict.outcome in UNEXPLAINED:
            self.wrong.append(
                f"{where} {verdict.outcome}: {statement}\n  olapdb     {verdict.ours}\n"
                f"  ClickHouse {verdict.theirs}"
            )

    def report(self) -> str:
        return (
            f"{dict(self.outcomes)}, {self.refused} of {self.answered} refused, {dict(self.rules)}"
        )


def compared(oracle: Oracle, seeds: Iterable[int]) -> Tally:
    """Compare all statements of the seeds."""
    tally = Tally()
    for seed in seeds:
        statements = Statements(seed)
        connection = olapdb.connect()
        for text in statements.setup():
            connection.session.execute(text)
            oracle.execute(text)
        comparison = Comparison(connection, oracle)
        for at in range(STATEMENTS_A_SEED):
            statement = statements.statement()
            verdict = comparison.judge(statement, statements.typed(statement))
            tally.add(f"seed {seed}, statement {at},", statement, verdict)
        connection.close()
        for name, _ in TABLES:
            oracle.execute(f"DROP TABLE {name} SYNC")
    return tally


def test_random_selects_answer_as_clickhouse_does(oracle: Oracle) -> None:
    tally = compared(oracle, (*SHORT_SEEDS, *FOUND_SEEDS))
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.outcomes["same"] > len(SHORT_SEEDS) * STATEMENTS_A_SEED * 0.8, tally.report()


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_twenty_thousand_random_selects_answer_as_clickhouse_does(oracle: Oracle) -> None:
    tally = compared(oracle, LONG_SEEDS)
    print(tally.report())
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.refused <= tally.answered * REFUSED_MOST, tally.report()


def test_the_same_seed_draws_the_same_statements() -> None:
    one, other = Statements(7), Statements(7)
    assert one.setup() == other.setup()
    assert [one.statement() for _ in range(20)] == [other.statement() for _ in range(20)]

"""sequenceMatch and sequenceCount of random patterns over random events beside ClickHouse."""

from __future__ import annotations

import random

import pytest

import olapdb
from tests.harness.beside import assert_same
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("aggregates")


def _pattern(generator: random.Random) -> str:
    parts = []
    for _ in range(generator.randint(0, 5)):
        comparison = generator.choice(["<", "<=", ">", ">=", "=="])
        choices = [
            f"(?{generator.randint(1, 3)})",
            ".",
            ".*",
            f"(?t{comparison}{generator.randint(0, 4)})",
        ]
        parts += generator.choices(choices, [10, 2, 3, 5])
    return "".join(parts)


def _rows(generator: random.Random) -> str:
    rows = [
        f"({generator.randint(0, 1)}, {generator.randint(0, 12)}, {generator.randint(0, 7)})"
        for _ in range(generator.randint(1, 14))
    ]
    return ", ".join(rows)


@pytest.mark.parametrize("seed", range(8))
def test_random_patterns(oracle: Oracle, seed: int) -> None:
    generator = random.Random(seed)
    given = "t, bitTest(e, 0), bitTest(e, 1), bitTest(e, 2)"
    with olapdb.connect() as connection:
        for _ in range(25):
            pattern = _pattern(generator)
            assert_same(
                connection,
                oracle,
                f"SELECT g, sequenceMatch('{pattern}')({given}), sequenceCount('{pattern}')({given}) "
                f"FROM VALUES('g UInt8, t DateTime, e UInt8', {_rows(generator)}) GROUP BY g",
            )

"""Performs traces of the model on the engine, which must behave as the model demands."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.protocol.explore import Scenario, explore, moves, start_of
from tests.protocol.model import Protocol
from tests.protocol.replay_on_engine import Performance, performable
from tests.protocol.scenarios import GUARDS, NAMED, together

pytestmark = pytest.mark.feature("commits", "engines")

ON_ENGINE = tuple(
    g
    for g in GUARDS
    if not NAMED[g].crashes and performable((NAMED[g].history, *NAMED[g].programs))
)


@pytest.mark.parametrize("guard", ON_ENGINE)
def test_what_breaks_without_a_guard_is_harmless_on_the_engine(guard: str, tmp_path: Path) -> None:
    """Perform the shortest counterexample of the model that lacks the guard."""
    scenario = NAMED[guard]
    broken = explore(scenario, Protocol(frozenset({guard}))).found
    assert broken is not None
    performance = Performance(tmp_path, scenario)
    performance.follow([int(step.split(":")[0]) for step in broken.trace])
    assert not performance.problems, "\n".join(["", *broken.trace, *performance.problems])


def random_walk(scenario: Scenario, chance: random.Random) -> list[int]:
    """Return the index of the next actor for each step, along one random path of the whole
    protocol."""
    world, who = start_of(scenario, Protocol()), list[int]()
    while True:
        choices = list(moves(world, scenario.programs, Protocol()))
        if not choices:
            return who
        label, world = chance.choice(choices)
        who.append(int(label.split(":")[0]))


def walk(seed: int, folder: Path) -> Performance:
    """Perform a random walk of a random scenario on the engine."""
    chance = random.Random(seed)
    scenarios = [s for s in together(3) if performable((s.history, *s.programs))]
    scenario = chance.choice(scenarios)
    performance = Performance(folder, scenario)
    performance.follow(random_walk(scenario, chance))
    return performance


@pytest.mark.parametrize("seed", range(20))
def test_random_walks(seed: int, tmp_path: Path) -> None:
    performance = walk(seed, tmp_path)
    told = (performance.scenario.name, *map(str, performance.scenario.programs))
    assert not performance.problems, "\n".join(["", *told, *performance.problems])


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_many_random_walks(tmp_path: Path) -> None:
    for seed in range(1_000, 3_000):
        performance = walk(seed, tmp_path / str(seed))
        assert not performance.problems, (seed, performance.scenario, performance.problems)

"""Checks that the protocol holds in every interleaving of small scenarios, and needs each guard.

`pytest -s` prints how much was explored, and the shortest way in which each guard, left out, breaks
something: docs/protocol.md describes them in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest

from tests.protocol.explore import Explored, Scenario, explore
from tests.protocol.model import Protocol
from tests.protocol.scenarios import GUARDS, NAMED, sequences, together

pytestmark = pytest.mark.feature("commits")

SHORTCUTS = ("9.definition", "9.dimension", "9.target_version")
"""Guards of the model that can be left out: see docs/protocol.md."""
NOT_MODELLED = {
    "4.altered",
    "4.dimension_seen",
    "6.downstream_covered",
    "10.dependents",
    "10.homeless",
    "10.put",
    "10.references",
    "10.revision",
    "10.undrop",
    "10.views_since",
    "8.batch",
    "13.head",
    "13.spans",
}
"""Guards about names, columns, single slices, truncated targets, batches of merges and vacuum's
joins and deletions, which the model lacks: raced on the engine, by
tests/protocol/test_names_on_engine.py and tests/unit."""
ROOT = Path(__file__).parents[2]


def explored_all(scenarios: Iterable[Scenario]) -> tuple[int, int, int, float]:
    """Explore the scenarios and fail at the first violation; return the numbers of scenarios,
    states, transitions and seconds."""
    count, states, transitions, seconds = 0, 0, 0, 0.0
    for scenario in scenarios:
        outcome = explore(scenario)
        assert outcome.found is None, told(scenario, outcome)
        count += 1
        states += outcome.states
        transitions += outcome.transitions
        seconds += outcome.seconds
    print(f"\n{count} scenarios, {states} states, {transitions} transitions, {seconds:.1f} s")
    return count, states, transitions, seconds


def told(scenario: Scenario, outcome: Explored) -> str:
    """Describe the violation that an exploration found, with the steps that lead to it."""
    assert outcome.found is not None
    steps = "\n  ".join(outcome.found.trace)
    return (
        f"{scenario.name} after {outcome.states} states:\n  {steps}\n  -> {outcome.found.violation}"
    )


@pytest.mark.parametrize("guard", GUARDS)
def test_each_guard_is_needed(guard: str) -> None:
    scenario = NAMED[guard]
    whole = explore(scenario)
    assert whole.found is None, told(scenario, whole)
    without = explore(scenario, Protocol(frozenset({guard})))
    assert without.found is not None, f"Nothing goes wrong without {guard}."
    print(f"\nwithout {told(scenario, without)}")


@pytest.mark.parametrize("guard", SHORTCUTS)
def test_without_a_shortcut_the_protocol_still_holds(guard: str) -> None:
    for scenario in together(2):
        outcome = explore(scenario, Protocol(frozenset({guard})))
        assert outcome.found is None, told(scenario, outcome)


def test_any_two_operations_at_once_with_a_crash() -> None:
    count, *_ = explored_all(together(2, crashes=1))
    assert count > 1_000


@pytest.mark.slow
def test_any_three_operations_at_once() -> None:
    """Explore every fifth scenario; the soak explores all."""
    count, *_ = explored_all(islice(together(3), 0, None, 5))
    assert count > 4_000


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_any_three_operations_at_once_with_a_crash() -> None:
    explored_all(together(3, crashes=1))


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_any_two_pairs_of_operations_at_once() -> None:
    """Explore two actors, each with any two operations one after the other."""
    explored_all(sequences(2))


def test_every_guard_is_in_the_model_and_in_the_documentation() -> None:
    """Require that the model's code, its scenarios and docs/protocol.md have the same guard ids."""
    here = Path(__file__).parent
    sources = "".join(
        (here / f"{one}.py").read_text()
        for one in ("turn", "operations", "repairs", "model", "swaps", "commits")
    )
    asked = set(re.findall(r'"(\d+\.[a-z_]+)"', sources))
    assert asked == {*GUARDS, *SHORTCUTS}
    told = re.findall(r"^\| `(\d+\.[a-z_]+)`", (ROOT / "docs/protocol.md").read_text(), re.M)
    assert set(told) - NOT_MODELLED == {*GUARDS, *SHORTCUTS}

"""Plants faults in the engine: the trace that needs a guard goes wrong without it.

`test_on_engine.py` shows that each trace is harmless. Here the engine's guard is disabled and the
same trace does harm, so it is this guard that protects.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.protocol.explore import explore
from tests.protocol.model import Protocol
from tests.protocol.planted import FAULTS
from tests.protocol.replay_on_engine import Performance
from tests.protocol.scenarios import NAMED
from tests.protocol.test_on_engine import ON_ENGINE

pytestmark = pytest.mark.feature("commits")

ON_TRACES = tuple(guard for guard in ON_ENGINE if guard in FAULTS)


@pytest.mark.parametrize("guard", ON_TRACES)
def test_a_trace_goes_wrong_without_its_guard(guard: str, tmp_path: Path) -> None:
    scenario = NAMED[guard]
    broken = explore(scenario, Protocol(frozenset({guard}))).found
    assert broken is not None
    performance = Performance(tmp_path, scenario, FAULTS[guard])
    performance.follow([int(step.split(":")[0]) for step in broken.trace])
    assert performance.problems, "\n".join(["Nothing notices:", *broken.trace])


def test_every_fault_is_documented() -> None:
    """Require each fault's description in docs/protocol.md."""
    told = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
    for fault in FAULTS.values():
        assert f"| `{fault.guard}` | {fault.words} |" in told, fault.guard


def test_a_fault_for_each_rule() -> None:
    """Require a fault for each rule; file faults of rules 13 and 14 are in
    test_planted_files.py."""
    assert {int(guard.split(".")[0]) for guard in FAULTS} >= set(range(1, 14))
    assert set(ON_TRACES) == set(ON_ENGINE) - FILES


FILES = {"13.live_leases", "13.catalog_last", "13.pins", "13.mark", "13.look_again"}
"""Guards of vacuum, whose faults are planted in test_planted_files.py."""

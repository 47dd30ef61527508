"""What EXPLAIN ANALYZE of olapdb says of the measured queries, and TPC-H in other orders.

None of this is compared with another engine: how far estimates are from the rows that were met, how much
memory and disk a query took, and how much its time depends on the order in which it is written.
"""

from __future__ import annotations

import importlib
import math
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

from cases import OLAPDB, Case
from report import Report, progress
from tpch import _harness
from workers import Worker, differs

ORDERS = 10
"""Orders of each query."""
TOLERANCE = 1e-6
ROUNDS_MIN, ROUNDS_MAX, SETTLED_SPREAD = 3, 24, 1.2
"""The least time of an order only falls with further rounds: a wider spread gets more of them."""
REPEATS_MAX, ENOUGH_SECONDS = 20, 0.05
"""A query that takes less runs several times in a round."""
_Q_ERROR = re.compile(r"Rows: \d+ · estimated \d+ · q-error ([\d.]+)")
_NODE = re.compile(r"\s*([A-Z]\w+( \(.*\))?)$")


def q_errors(lines: Sequence[str]) -> list[tuple[float, str]]:
    """Return the q-error of each node of a plan whose rows were counted, and the node."""
    errors, node = [], ""
    for line in lines:
        if found := _Q_ERROR.search(line):
            errors.append((float(found[1]), node))
        elif found := _NODE.match(line):
            node = found[1]
    return errors


def report_estimates(cases: Sequence[Case], worker: Worker, report: Report) -> None:
    """Run each query under EXPLAIN ANALYZE; report the median q-error of all nodes, and the worst."""
    errors: list[tuple[float, str]] = []
    for case in cases:
        progress(f"estimates of {case.name}")
        lines = _explained(worker, case.timed[OLAPDB][0])
        errors += [(error, f"{case.name}, {node}") for error, node in q_errors(lines)]
    if errors:
        numbers = sorted(error for error, _ in errors)
        worst, place = max(errors)
        report.note(
            "estimates",
            f"median q-error {statistics.median(numbers):.2f} of {len(numbers)} nodes, "
            f"nine of ten below {numbers[len(numbers) * 9 // 10]:.1f}, worst {worst:.0f} at {place}",
        )


def report_memory(case: Case, worker: Worker, report: Report) -> None:
    """Report the peak memory of a query of olapdb, and what it wrote to disk."""
    lines = _explained(worker, case.timed[OLAPDB][0])
    facts = [line.strip() for line in lines if re.match(r"\s+(Peak memory|Spilled):", line)]
    report.note(case.name, "; ".join(facts))


def _explained(worker: Worker, query: str) -> list[str]:
    """Return the lines of EXPLAIN ANALYZE."""
    return [str(line) for (line,) in worker.rows(f"EXPLAIN ANALYZE {query}")]


def report_orders(worker: Worker, rounds: int, report: Report, part: str) -> None:
    """Run each query of TPC-H that joins tables in random orders of its tables and conditions;
    report the time of the slowest order over that of the quickest."""
    # The parser of the engine, which no other benchmark needs in this process.
    sys.path.insert(0, str(Path(__file__).parents[2]))
    shuffle = importlib.import_module("tests.harness.shuffle")
    report.group(
        "orders",
        f"TPC-H with the tables of FROM and the conditions of WHERE shuffled, {ORDERS} times: the "
        "slowest order over the quickest, each the least of its rounds.",
        [],
    )
    spread = {}
    for number, query in _harness().queries().items():
        name = f"Q{number}"
        if part.lower() not in name.lower() or not shuffle.has_joins(query):
            continue
        progress(f"orders of {name}")
        spread[name] = _spread(worker, query, shuffle.shuffled, rounds, Random(number))
        report.note(name, f"{spread[name]:.2f}")
    if spread:
        worst = max(spread, key=lambda name: spread[name])
        report.note(
            "all",
            f"geometric mean {statistics.geometric_mean(spread.values()):.2f}, "
            f"worst {worst} with {spread[worst]:.2f}",
        )


def _spread(worker: Worker, query: str, shuffled: object, rounds: int, random: Random) -> float:
    """Return the time of the slowest order over that of the quickest. Ends the run where an order has
    another answer."""
    assert callable(shuffled)
    orders = [str(shuffled(query, random)) for _ in range(ORDERS)]
    expected = worker.rows(query)
    for order in orders:
        difference = differs(expected, worker.rows(order), TOLERANCE)
        if difference:
            raise SystemExit(f"The answer depends on the order: {difference}\n  {order}")
    quickest = min(worker.seconds([order]) for order in orders)
    repeats = min(REPEATS_MAX, math.ceil(ENOUGH_SECONDS / quickest))
    least = [math.inf] * len(orders)
    for done in range(1, ROUNDS_MAX + 1):
        seconds = [worker.seconds([order] * repeats) for order in orders]
        least = [min(times) for times in zip(least, seconds, strict=True)]
        if done >= max(rounds, ROUNDS_MIN) and max(least) <= SETTLED_SPREAD * min(least):
            break
    return max(least) / min(least)

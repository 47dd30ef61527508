"""Runs many definitions, in several processes:

    python -m tests.definitions.soak FIRST COUNT [PROCESSES]

prints the totals, and the shortest script of each finding."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial

from tests.definitions.grammar import draw_script
from tests.definitions.run import Totals, run_script
from tests.definitions.shrink import RUNS_MAX, shrunk

TOLD_EVERY = 500


def run_seed(seed: int, runs_max: int = RUNS_MAX) -> tuple[int, Totals, str]:
    """Run one seed. Return it, its totals, and the finding as the shortest script that `runs_max`
    runs gave, or ""."""
    totals = Totals()
    script = draw_script(seed)
    finding = run_script(script, totals)
    if finding is None:
        return seed, totals, ""
    _, finding = shrunk(script, finding, runs_max)
    return seed, totals, str(finding)


def outcomes(
    seeds: Iterable[int], processes: int, runs_max: int
) -> Iterator[tuple[int, Totals, str]]:
    run = partial(run_seed, runs_max=runs_max)
    if processes == 1:
        yield from map(run, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=500) as pool:
        yield from pool.imap_unordered(run, seeds)


def soak(
    first: int, count: int, processes: int, runs_max: int = RUNS_MAX
) -> tuple[Totals, list[str]]:
    """Run `count` seeds from `first`; return their totals and the findings as texts."""
    totals, findings, started = Totals(), list[str](), time.monotonic()
    for seed, found, finding in outcomes(range(first, first + count), processes, runs_max):
        totals.add(found)
        if finding:
            findings.append(f"seed {seed}:\n{finding}")
            print(findings[-1], flush=True)
        if totals.scripts % TOLD_EVERY == 0 or totals.scripts == count:
            seconds = time.monotonic() - started
            print(f"{seconds:.0f} s, {len(findings)} findings; {totals}", flush=True)
    return totals, findings


def main() -> None:
    first, count, *more = map(int, sys.argv[1:])
    _, findings = soak(first, count, more[0] if more else 1)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()

"""Runs many schedules, in several processes:

    python -m tests.schedules.soak FIRST COUNT [PROCESSES]

prints the totals, and each schedule that failed as the shortest SQL that shows it.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator

from tests.schedules.schedule import Failed, Totals, run_seed

TOLD_EVERY = 100


def run_one(seed: int) -> tuple[int, Totals, str]:
    """Run a seed; return it with its totals and its failure in words ("" for none)."""
    try:
        return seed, run_seed(seed), ""
    except Failed as failure:
        return seed, Totals(schedules=1), str(failure)


def outcomes(seeds: Iterable[int], processes: int) -> Iterator[tuple[int, Totals, str]]:
    """Yield the result of each seed, in the order of completion."""
    if processes == 1:
        yield from map(run_one, seeds)
        return
    # Not daemons, as those of a Pool are: a schedule starts processes that die.
    spawned = multiprocessing.get_context("spawn")
    told = spawned.Queue()
    work = list(seeds)
    workers = [
        spawned.Process(target=_work, args=(work[at::processes], told)) for at in range(processes)
    ]
    for worker in workers:
        worker.start()
    for _ in work:
        yield told.get()
    for worker in workers:
        worker.join()


def _work(seeds: list[int], told: multiprocessing.Queue[tuple[int, Totals, str]]) -> None:
    for seed in seeds:
        told.put(run_one(seed))


def soak(first: int, count: int, processes: int) -> tuple[Totals, list[str]]:
    """Run `count` seeds; return the totals, and the failures in words."""
    totals, failures, started = Totals(), list[str](), time.monotonic()
    for seed, found, failure in outcomes(range(first, first + count), processes):
        totals.add(found)
        if failure:
            failures.append(f"seed {seed}:{failure}")
            print(failures[-1], flush=True)
        if totals.schedules % TOLD_EVERY == 0 or totals.schedules == count:
            seconds = time.monotonic() - started
            print(f"{seconds:.0f} s, {len(failures)} failed; {totals}", flush=True)
    return totals, failures


def main() -> None:
    """Run the soak of the command line; exit with 1 after a failure."""
    first, count, *more = map(int, sys.argv[1:])
    _, failures = soak(first, count, more[0] if more else 1)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

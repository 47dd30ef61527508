"""How time, memory and bytes on disk grow with the rows of a table, in olapdb, chDB and DuckDB.

For each number of rows each engine starts in a process and a folder of its own, loads the table
`hits` from a Parquet file, merges it, and answers the same queries.  The result is a JSON file with
seconds, peak memory of the process, and bytes of the tables, and the head that names the machine;
`--plot` draws it (matplotlib, in the extra `bench`).  The seconds are of that machine alone.

    python tests/benchmarks/scaling.py --rows 100000 1000000 10000000 --json scaling.json --plot scaling.svg
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cases import CHDB, DUCKDB, ENGINES, OLAPDB
from data import write_reads
from reads import QUERIES, reads
from report import TITLES, progress
from workers import Worker, check

ROWS = (100_000, 1_000_000, 10_000_000)
ROUNDS = 3
NAMES = ("sum, avg, min, max", "GROUP BY user, top 10", "GROUP BY url, top 10", "LIKE")
"""Of the reads: a scan, groups of many numbers, groups of many texts, a search in texts."""
LOAD = "load"
COLOURS = {OLAPDB: "#0b6e4f", CHDB: "#c97b00", DUCKDB: "#5b5ea6"}

Measured = dict[str, float]


def measure(engine: str, rows: int, files: Path) -> Measured:
    """Return seconds of the load and of each query (the best of `ROUNDS`, warm), the peak memory of the
    engine's process and the bytes of its tables."""
    group = reads(rows)
    with Worker(engine, "wall", 0, files) as worker:
        measured: Measured = {LOAD: worker.seconds(group.shared[engine])}
        for case in (case for case in group.cases if case.name in NAMES):
            times = [worker.seconds(case.timed[engine]) for _ in range(ROUNDS + 1)]
            measured[case.name] = min(times[1:])
        return measured | worker.facts()


def check_answers(rows: int, files: Path) -> None:
    """End the run unless all engines give the same rows for each query."""
    group = reads(rows)
    workers = {engine: Worker(engine, "wall", 0, files) for engine in ENGINES}
    for engine, worker in workers.items():
        worker.seconds(group.shared[engine])
    tolerances = {query.name: query.tolerance for query in QUERIES}
    for case in (case for case in group.cases if case.name in NAMES):
        check(case.name, case.check, workers, tolerances[case.name])
    for worker in workers.values():
        worker.__exit__(None, None, None)


def measure_all(sizes: Sequence[int]) -> dict[str, dict[int, Measured]]:
    """Return what `measure` gives, by engine and number of rows.  The answers are compared at the
    smallest size."""
    measured: dict[str, dict[int, Measured]] = {engine: {} for engine in ENGINES}
    for rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            progress(f"{rows:,} rows: making them")
            write_reads(Path(folder), rows)
            if rows == min(sizes):
                check_answers(rows, Path(folder))
            for engine in ENGINES:
                progress(f"{rows:,} rows: {TITLES.get(engine, engine)}")
                measured[engine][rows] = measure(engine, rows, Path(folder))
    return measured


def machine() -> dict[str, object]:
    """Return what names the machine: processor, cores, memory, system."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    """Return the processor's name as Linux has it, else the machine's kind."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def plot(measured: Mapping[str, Mapping[int, Measured]], file: Path) -> None:
    """Draw a panel for each measurement, rows and values on logarithmic axes, a line an engine."""
    import matplotlib as mpl  # only plots need it

    mpl.use("agg")
    from matplotlib import pyplot

    units = dict.fromkeys((LOAD, *NAMES), ("seconds", 1.0))
    panels = units | {"peak_bytes": ("GiB", 2.0**30), "disk_bytes": ("GiB", 2.0**30)}
    titles = {"peak_bytes": "peak memory", "disk_bytes": "bytes on disk"}
    across = 4
    down = math.ceil(len(panels) / across)
    figure, axes = pyplot.subplots(down, across, figsize=(3.4 * across, 3.0 * down))
    for axis, (name, (unit, divisor)) in zip(axes.flat, panels.items()):
        for engine, by_rows in measured.items():
            rows = sorted(by_rows)
            values = [by_rows[count][name] / divisor for count in rows]
            title = TITLES.get(engine, engine)
            axis.loglog(rows, values, marker="o", label=title, color=COLOURS[engine])
        axis.set_title(titles.get(name, name), fontsize=10)
        axis.set_ylabel(unit, fontsize=9)
        axis.set_xlabel("rows", fontsize=9)
        axis.grid(visible=True, which="major", alpha=0.3)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    axes.flat[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS), metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw it, as SVG or PNG")
    given = parser.parse_args()
    if min(given.rows) < 1000:
        parser.error("--rows must be at least 1000 each")
    measured = measure_all(given.rows)
    text = json.dumps({"machine": machine(), "queries": NAMES, "measured": measured}, indent=1)
    if given.json:
        given.json.write_text(text + "\n")
    else:
        print(text)
    if given.plot:
        plot(measured, given.plot)


if __name__ == "__main__":
    main()

"""Side by side with chDB (ClickHouse in process) and DuckDB: how many times their time olapdb takes.

The engines are in processes of their own and take turns, statement by statement, in an order that
rotates, so that a noisy machine harms all alike. A round gives a ratio, the first one warms up.
Before the clock counts, the answers of all engines are compared; a difference ends the run.

Groups:
  inserts   100, 10,000 and 1,000,000 rows: VALUES, INSERT SELECT, Arrow tables of Python
  reads     what analysts ask of a table of page views: filters, groups, tops, text, joins, quantiles
  cold      after reads: each query as the first one of a new process
  views     INSERTs with a view, a backfill, a read of the rollup (chDB only)
  marginal  what one more view costs an INSERT (chDB only)
  tpch      the 22 queries of TPC-H (made by tpchgen-cli, which is not installed with the rest)
  orders    after tpch: its queries with tables and conditions shuffled (olapdb only)
  ssb       the Star Schema Benchmark: 13 queries on joins, 13 on a flat table
  clickbench  the shapes of ClickBench's 43 queries
  spill     GROUP BY, JOIN and ORDER BY at a part of the memory they need (DuckDB only)
  merges    FINAL and OPTIMIZE FINAL of a hundred parts (chDB only)
  dbt       runs of a dbt project with 200 models (dbt-duckdb only)
"""

from __future__ import annotations

import argparse
import compileall
import importlib.util
import math
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import cases
from cases import CHDB, DUCKDB, OLAPDB, Case, Group
from clickbench import clickbench, write_clickbench
from data import write_reads
from dbt_projects import run_projects
from explained import report_estimates, report_memory, report_orders
from marginal import measure
from reads import cold, reads
from report import Ratio, Report, progress
from spill import spill
from ssb import ssb, write_ssb
from tpch import GENERATOR, generator, tpch, write_tpch
from workers import Worker, check, started

GROUPS = {
    "inserts": cases.inserts,
    "reads": reads,
    "cold": cold,
    "clickbench": clickbench,
    "views": cases.views,
    "merges": cases.merges,
    "spill": spill,
}
"""By the number of rows."""
SCALED = {"tpch": tpch, "ssb": ssb}
"""By the scale factor."""
ORDER = (
    "inserts",
    "reads",
    "cold",
    "tpch",
    "orders",
    "ssb",
    "clickbench",
    "views",
    "marginal",
    "merges",
    "spill",
    "dbt",
)
ESTIMATED = ("reads", "tpch", "ssb", "clickbench")
SUMMARIZED = (*ESTIMATED, "cold")
TPCH, SPILL = "tpch", "spill"
AFTER = {"orders": TPCH, "cold": "reads"}
"""Groups that read the tables of another one."""
QUICK = {"rounds": 2, "rows": 200_000, "scale": 0.02}
QUICK_GROUPS = ("inserts", "reads", "tpch", "ssb", "clickbench", "views", "merges")
START = ("SELECT 1",)
"""What a new process runs before it is timed: its start is not what `cold` measures."""
WARM_UPS = 3
"""Reads: ClickHouse compiles an expression when it has come three times."""
REPEATS_MAX = 20
NO_GENERATOR = f"{GENERATOR}, which makes its rows, is not installed; pip install {GENERATOR}"
SCALE_MAX = 100
ENOUGH_SECONDS = 0.02
"""Of the quickest engine: what takes less, and may, runs several times in a round."""


def run_group(
    group: Group, workers: Mapping[str, Worker], rounds: int, report: Report, part: str
) -> None:
    wanted = [case for case in group.cases if part.lower() in case.name.lower()]
    if not wanted:
        return
    others = [o for o in report.others if any(o in case.timed for case in wanted)]
    if not others:
        return
    report.group(group.name, group.about, others)
    for engine, statements in group.shared.items():
        if engine in workers:
            progress(f"{group.name}: {engine} makes its tables")
            workers[engine].seconds(statements)
    for number, case in enumerate(wanted, 1):
        progress(f"{group.name} {number} of {len(wanted)}: {case.name}")
        report.row(case.name, run_case(case, workers, rounds))
        if group.name == SPILL:
            report_memory(case, workers[OLAPDB], report)
    if group.name in SUMMARIZED:
        report.summary()
    if group.name in ESTIMATED:
        report_estimates(wanted, workers[OLAPDB], report)


def run_case(case: Case, workers: Mapping[str, Worker], rounds: int) -> dict[str, Ratio]:
    """Run a case; return a ratio for each other engine that takes part."""
    engines = [engine for engine in case.engines if engine in workers]
    queries = {engine: case.check[engine] for engine in engines if engine in case.check}
    for engine in engines:
        workers[engine].seconds(case.prepare.get(engine, ()))
    if case.repeats:
        check(case.name, queries, workers, case.tolerance)
    if case.cold:
        return _ratios([run_cold(case, workers, engines, n) for n in range(rounds)])
    warm_ups = WARM_UPS if case.repeats else 1
    warm = run_round(case, workers, engines, 0, warm_ups)
    if not case.repeats:
        check(case.name, queries, workers, case.tolerance)
    repeats = 1
    if case.repeats:
        quickest = min(warm.values()) / warm_ups
        repeats = min(REPEATS_MAX, max(1, math.ceil(ENOUGH_SECONDS / quickest)))
    return _ratios([run_round(case, workers, engines, n, repeats) for n in range(1, rounds + 1)])


def _ratios(rounds: Sequence[Mapping[str, float]]) -> dict[str, Ratio]:
    """Return olapdb's seconds over those of each other engine, from the seconds of the rounds."""
    return {
        other: Ratio.of([spent[OLAPDB] / spent[other] for spent in rounds])
        for other in rounds[0]
        if other != OLAPDB
    }


def run_round(
    case: Case, workers: Mapping[str, Worker], engines: Sequence[str], number: int, repeats: int
) -> dict[str, float]:
    """Seconds by engine; who begins rotates with the round."""
    turns = _turns(engines, number)

    def filled(statements: Sequence[str]) -> list[str]:
        return [sql.replace("{round}", str(number)) for sql in statements]

    for engine in turns:
        workers[engine].seconds(filled(case.before.get(engine, ())))
    return {
        engine: workers[engine].seconds(filled(case.timed[engine]) * repeats) for engine in turns
    }


def run_cold(
    case: Case, workers: Mapping[str, Worker], engines: Sequence[str], number: int
) -> dict[str, float]:
    """Seconds by engine of the first statement that reads the tables in a new process."""
    spent = {}
    for engine in _turns(engines, number):
        workers[engine].restart()
        workers[engine].seconds(START)
        spent[engine] = workers[engine].seconds(case.timed[engine])
    return spent


def _turns(engines: Sequence[str], number: int) -> list[str]:
    """Return the engines as they take turns in a round: each round another one begins."""
    first = number % len(engines)
    return [*engines[first:], *engines[:first]]


def run_marginal(
    workers: Mapping[str, Worker], rounds: int, rows: int, report: Report, part: str
) -> None:
    if CHDB not in workers:
        return
    report.group(
        "marginal",
        "(time of an INSERT with n views - without one) / n, the difference of each round; views "
        "count and average by two columns, a chain of five reads one after the other.",
        [CHDB],
    )
    for one in measure(workers[OLAPDB], workers[CHDB], rounds, cases.sizes(rows), part):
        report.row(one.name, {CHDB: Ratio(one.ratio, one.low, one.high)})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    _add_what(parser)
    _add_how(parser)
    given = parser.parse_args()
    if given.quick:
        parser.set_defaults(**QUICK)
        given = parser.parse_args()
    if given.only is None:
        given.only = list(QUICK_GROUPS if given.quick else ORDER)
        if generator() is None:
            given.only = [name for name in given.only if TPCH not in (name, AFTER.get(name))]
            progress(f"tpch is left out: {NO_GENERATOR}")
    for name, before in AFTER.items():
        if name in given.only and before not in given.only:
            parser.error(f"{name} has the tables of {before}: --only {before} {name}")
    if TPCH in given.only and generator() is None:
        parser.error(f"tpch cannot run: {NO_GENERATOR}")
    if not 0 < given.scale <= SCALE_MAX:
        parser.error(f"--scale must be above 0 and at most {SCALE_MAX}")
    missing = [module for module in (OLAPDB, *given.beside) if not importlib.util.find_spec(module)]
    if "dbt" in given.only and not importlib.util.find_spec("dbt.adapters.duckdb"):
        missing.append("dbt.adapters.duckdb")
    if missing:
        parser.error(f"{', '.join(missing)} cannot be imported; pip install -e '.[dev]' has all")
    return given


def _add_what(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is measured."""
    add = parser.add_argument
    add(
        "--only",
        nargs="+",
        choices=ORDER,
        default=None,
        metavar="GROUP",
        help="these groups: " + ", ".join(ORDER) + "; default all, tpch if its generator is there",
    )
    add("--case", default="", metavar="TEXT", help="the measurements whose names have this text")
    add(
        "--scale",
        type=float,
        default=0.1,
        metavar="N",
        help="the scale factor of TPC-H and SSB; 1 has six million lines; default 0.1",
    )
    add(
        "--rows",
        type=_rows,
        default=3_000_000,
        metavar="N",
        help="of the tables that are read or backfilled, at least 1,000; larger INSERTs are left out; "
        "default 3,000,000",
    )
    add(
        "--quick",
        action="store_true",
        help="small tables, two rounds, without marginal, spill and dbt: under three minutes",
    )
    add(
        "--beside",
        nargs="+",
        choices=(CHDB, DUCKDB),
        default=(CHDB, DUCKDB),
        metavar="ENGINE",
        help="chdb, duckdb or both, the default",
    )


def _add_how(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how it is measured and written."""
    add = parser.add_argument
    add("--rounds", type=_positive, default=5, metavar="N", help="that count; default 5")
    add(
        "--threads",
        type=int,
        default=0,
        metavar="N",
        help="of each engine; default: as it comes, the number of cores",
    )
    add(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu: processor time of all threads, for a machine that does other things",
    )
    add("--json", type=Path, metavar="FILE", help="write the ratios there too")
    add("--markdown", type=Path, metavar="FILE", help="write the ratios there too, as tables")


def _rows(text: str) -> int:
    """So many that each query has something to find."""
    number = _positive(text)
    if number < 1000:
        raise argparse.ArgumentTypeError("must be at least 1000")
    return number


def _positive(text: str) -> int:
    number = int(text.replace(",", "").replace("_", ""))
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def write_files(folder: Path, given: argparse.Namespace) -> None:
    """Write the Parquet files of the groups that read some."""
    writers = {
        "reads": (write_reads, given.rows),
        "tpch": (write_tpch, given.scale),
        "ssb": (write_ssb, given.scale),
        "clickbench": (write_clickbench, given.rows),
    }
    for name, (write, size) in writers.items():
        if name in given.only:
            progress(f"making the rows of {name}")
            write(folder, size)


def run(
    name: str, workers: Mapping[str, Worker], given: argparse.Namespace, report: Report
) -> None:
    """One group, other than dbt."""
    if name == "marginal":
        run_marginal(workers, given.rounds, given.rows, report, given.case)
        return
    if name == "orders":
        report_orders(workers[OLAPDB], given.rounds, report, given.case)
        return
    group = SCALED[name](given.scale) if name in SCALED else GROUPS[name](given.rows)
    run_group(group, workers, given.rounds, report, given.case)


def compile_engine() -> None:
    """Write the bytecode of olapdb, as its installation from a wheel does: without it a new process
    compiles each module, also where PYTHONDONTWRITEBYTECODE is set."""
    engine = importlib.util.find_spec("olapdb")
    for folder in (engine and engine.submodule_search_locations) or ():
        compileall.compile_dir(folder, quiet=1)


def main() -> None:
    given = arguments()
    others = [engine for engine in (CHDB, DUCKDB) if engine in given.beside]
    compile_engine()
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), given)
        with started([OLAPDB, *others], given.clock, given.threads, Path(folder)) as workers:
            versions = [worker.about for worker in workers.values()]
            head: dict[str, object] = {
                "versions": versions,
                "python": platform.python_version(),
                "cores": os.cpu_count(),
                "threads": given.threads or "as each engine comes",
                "clock": given.clock,
                "rounds": given.rounds,
                "rows": given.rows,
                "scale": given.scale,
            }
            report = Report(others, head)
            report.begin(
                f"{', '.join(versions)}; Python {head['python']}, {head['cores']} cores, threads: "
                f"{head['threads']}; {given.clock} time, {given.rounds} rounds and one to warm up."
            )
            for name in ORDER:
                if name in given.only and name != "dbt":
                    run(name, workers, given, report)
            if "dbt" in given.only and DUCKDB in others:
                run_projects(Path(folder), given.clock, given.rounds, report, given.case)
    if given.json:
        report.write(given.json)
    if given.markdown:
        report.write_markdown(given.markdown)
    if not report.groups:
        sys.exit(
            "Nothing was measured: no measurement of these groups and engines has such a name."
        )


if __name__ == "__main__":
    main()

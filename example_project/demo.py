"""A year of real flights through every layer, from CSV files to a proven answer.

    python example_project/demo.py [--check] [--warehouse FOLDER]

`--check` also compares every number of the closing table with pandas over the CSV files, asserts the
outcome of each step, and ends with an error if one is wrong.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from pipeline import truth
from pipeline.dbt import Dbt, Run
from pipeline.files import csv_files
from pipeline.ingest import ingest
from pipeline.live import live_blocks
from pipeline.screen import Screen

import olapdb
from olapdb.spark import session_scope

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "analytics"
HISTORY = range(1, 10)
LIVE = range(10, 13)
DELETED = truth.Deleted(origin="LGA", carrier="MQ", date="2013-07-04")
PLANTED_HOUR = "2013-11-28"
VIEWS = "config.materialized:incremental_mv"
RECONCILIATIONS = "test_name:reconciled"
YEAR = ("--event-time-start", "2013-01-01", "--event-time-end", "2014-01-01")
"""The batches of the microbatch model; without it dbt runs one for each year up to now."""

QUESTION = """
SELECT origin, toStartOfMonth(flight_date) AS month, {columns}
FROM {table} GROUP BY origin, month ORDER BY origin, month
"""


class DemoFailed(SystemExit):
    """A step had an unexpected outcome."""


@dataclass
class Demo:
    screen: Screen
    spark: SparkSession
    connection: olapdb.Connection
    dbt: Dbt
    files: dict[str, Path]
    check: bool

    def run(self) -> None:
        self.ingest_history()
        self.build()
        self.live()
        self.drift()
        self.answer()

    # --- 1

    def ingest_history(self) -> None:
        self.screen.step(1, "Ingest history on Spark: January to September")
        with self.screen.progress() as bars:
            tasks = {table: bars.add_task(table, total=None) for table in self.files}

            def show(table: str, done: int, total: int) -> None:
                bars.update(tasks[table], completed=done, total=max(total, 1))

            rows = ingest(self.spark, self.connection, self.files, months=HISTORY, on_progress=show)
            for table in tasks:
                bars.update(tasks[table], completed=1, total=1)
        parts = dict(
            self.select(
                "SELECT table, count() FROM system.parts WHERE active AND database = 'raw' "
                "GROUP BY table"
            )
        )
        self.screen.table(
            "Source tables: executors wrote the parts, one commit each",
            ("table", "rows", "parts"),
            [(f"raw.{table}", count, parts.get(table, 0)) for table, count in rows.items()],
        )

    # --- 2

    def build(self) -> None:
        self.screen.step(2, "dbt build: targets, triggers, backfill on Spark, tests")
        run = self.dbt_with_bar("build", *YEAR)
        self.show_results("dbt build", run)
        self.require(run.success, "dbt build failed")
        self.require_proven()

    # --- 3

    def live(self) -> None:
        self.screen.step(3, "Live: October to December as INSERTs; the views fire on each block")
        blocks = list(live_blocks(self.files["flights"], LIVE))
        times: list[float] = []
        with self.screen.progress() as bars:
            task = bars.add_task("INSERT INTO raw.flights", total=len(blocks))
            for block in blocks:
                started = time.perf_counter()
                self.connection.insert("raw.flights", block)
                times.append(time.perf_counter() - started)
                bars.advance(task)
        rows = sum(block.num_rows for block in blocks)
        self.screen.say(
            f"{len(blocks)} INSERTs, {rows:,} rows, six views each: "
            f"{1000 * sum(times) / len(times):.0f} ms an INSERT, {rows / sum(times):,.0f} rows/s."
        )
        run = self.dbt_with_bar("test", "--select", RECONCILIATIONS)
        self.show_results("dbt test", run)
        self.require(run.success, "dbt test failed after live inserts")
        before = self.commits()
        run = self.dbt_with_bar("run", "--select", VIEWS)
        self.require(run.success, "the second dbt run failed")
        self.require(self.commits() == before, "the second dbt run wrote to the warehouse")
        self.screen.say(
            "A second dbt run of the views: no DDL, no rows moved; nothing had changed."
        )

    # --- 4

    def drift(self) -> None:
        self.screen.step(4, "Drift is caught and repaired")
        planted = (
            f"INSERT INTO {SCHEMA}.hourly_departures__target "
            "(origin, flight_date, hour, scheduled, departed, dep_delay_minutes, miles) "
            f"VALUES ('JFK', '{PLANTED_HOUR}', 12, 1000, 1000, 0, 0)"
        )
        deleted = f"DELETE FROM raw.flights WHERE {DELETED.condition}"
        for statement in (planted, deleted):
            self.screen.plain(f"> {statement}", style="dim")
            self.connection.execute(statement)

        run = self.dbt_with_bar("test", "--select", RECONCILIATIONS)
        self.screen.say(f"[bold]dbt test fails[/] for {len(run.failed)} models:")
        self.show_lines(run)
        self.require(not run.success, "dbt test did not notice the drift")
        self.require_named(run)

        self.screen.say(
            "[bold]dbt run-operation repair[/]: stale slices are replayed, and rows "
            "written by hand are listed and left."
        )
        run = self.dbt("run-operation", "repair", macro_arguments={})
        self.show_lines(run)
        self.require(run.success, "repair failed")
        run = self.dbt_with_bar("test", "--select", RECONCILIATIONS)
        self.require(not run.success, "repair discarded the rows written by hand")
        self.screen.say(f"dbt test still fails, for those rows: {', '.join(run.failed)}.")

        self.screen.say("[bold]dbt run-operation repair --args '{discard_bypass: true}'[/]:")
        run = self.dbt("run-operation", "repair", macro_arguments={"discard_bypass": True})
        self.show_lines(run)
        run = self.dbt_with_bar("test", "--select", RECONCILIATIONS)
        self.show_results("dbt test", run)
        self.require(run.success, "dbt test failed after the repair")
        self.require_proven()
        # The ordinary tables still have the rows of the last build.
        run = self.dbt_with_bar("build", "--exclude", VIEWS, *YEAR)
        self.require(run.success, "dbt build of the ordinary models failed")

    # --- 5

    def answer(self) -> None:
        self.screen.step(5, "The answer: the same question of the source and of the model")
        columns_by_table = {
            "raw.flights": "count() AS scheduled, sum(dep_delay) AS dep_delay_minutes",
            f"{SCHEMA}.daily_departures": "sum(scheduled) AS scheduled, sum(dep_delay_minutes) AS dep_delay_minutes",
        }
        answers, rows = [], []
        for table, columns in columns_by_table.items():
            sql = QUESTION.format(columns=columns, table=table)
            self.connection.execute(sql).fetchall()  # warms the caches for the measured run
            started = time.perf_counter()
            cursor = self.connection.execute(sql)
            answers.append([tuple(row) for row in cursor.fetchall()])
            elapsed = 1000 * (time.perf_counter() - started)
            rows.append((table, cursor.statistics.rows_read, f"{elapsed:.1f} ms", len(answers[-1])))
        self.screen.table(
            "Departures and minutes of delay, by airport and month",
            ("table", "rows read", "time", "rows of the answer"),
            rows,
        )
        self.require(answers[0] == answers[1], "source and model disagree")
        self.screen.say("Both answers are the same.")
        flights = truth.read_flights(self.files["flights"], DELETED)
        airlines = pd.read_csv(self.files["airlines"])
        compared = [
            comparison
            for model in truth.models(flights, airlines)
            for comparison in truth.compare(self.connection, SCHEMA, model)
        ]
        self.screen.table(
            "Every model beside pandas over the CSV files, row by row",
            ("model", "figure", "olapdb", "pandas", "all equal"),
            _grouped((c.model, c.figure, c.olapdb, c.pandas, c.equal) for c in compared),
        )
        wrong = [f"{c.model}: {c.figure}" for c in compared if not c.equal]
        self.require(not wrong, f"not equal to pandas: {', '.join(wrong)}")

    # --- helpers

    def select(self, sql: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self.connection.execute(sql).fetchall()]

    def dbt_with_bar(self, *arguments: str) -> Run:
        """Run a dbt command under a progress bar, with a line for each backfilled chunk."""
        with self.screen.progress() as bars:
            task = bars.add_task(f"dbt {arguments[0]}", total=None)

            def show_progress(done: int, total: int) -> None:
                bars.update(task, completed=done, total=total)

            def show_line(line: str) -> None:
                if arguments[0] in ("build", "run"):
                    self.screen.plain(f"  {line}", style="dim")

            run = self.dbt(*arguments, on_finished=show_progress, on_line=show_line)
            bars.update(task, completed=len(run.results), total=max(len(run.results), 1))
        return run

    def show_results(self, title: str, run: Run) -> None:
        """Show the result of each model and seed, and of each failed test."""
        results = list(run.results.values())
        tests = [r for r in results if r.kind == "test"]
        passed = [r for r in tests if r.status == "pass"]
        rows = [(r.name, r.status, r.message) for r in results if r not in passed]
        if rows:
            self.screen.table(title, ("node", "status", "message"), rows)
        self.screen.say(f"{len(passed)} of {len(tests)} tests passed.")
        for line in run.lines if not run.success else ():
            self.screen.plain(f"  {line}", style="red")

    def show_lines(self, run: Run) -> None:
        for line in run.lines:
            self.screen.plain(f"  {line}", style="yellow")

    def commits(self) -> tuple[object, ...]:
        """Return the number of commits, background merges not counted."""
        return self.select("SELECT count() FROM system.snapshots WHERE kind != 'MERGE'")[0]

    def require(self, condition: bool, failure: str) -> None:
        if not condition:
            raise DemoFailed(f"The demo went wrong: {failure}.")

    def require_proven(self) -> None:
        """Require that the tests that just ran have proven every view."""
        verdicts = self.select("SELECT name, verdict FROM system.views ORDER BY name")
        self.screen.table("system.views", ("view", "verdict"), verdicts)
        if self.check:
            unproven = [str(name) for name, verdict in verdicts if verdict != "proven"]
            self.require(not unproven, f"not proven: {', '.join(unproven)}")

    def require_named(self, run: Run) -> None:
        """Require that the failing tests name the model, partition, keys and cause."""
        if not self.check:
            return
        text = "\n".join(run.lines)
        for name in ("hourly_departures", "201311", "201307", "DELETE", DELETED.date):
            self.require(name in text, f"the failing tests do not name {name}")


def main() -> None:
    arguments = _arguments()
    warehouse = arguments.warehouse.resolve()
    screen = Screen()
    started = time.monotonic()
    _delete_warehouse(warehouse)
    with (
        tempfile.TemporaryDirectory(prefix="flights-") as folder,
        session_scope("flights") as spark,
        olapdb.connect(warehouse) as connection,
    ):
        scratch = Path(folder)
        dbt = Dbt(warehouse, scratch / "dbt")
        Demo(screen, spark, connection, dbt, csv_files(scratch), arguments.check).run()
    checked = " Every number was checked." if arguments.check else ""
    screen.say(f"\n[bold green]Done[/] in {time.monotonic() - started:.0f} s.{checked}")
    screen.say(f"The warehouse stays in {warehouse}.")


def _grouped(rows: Iterable[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    """Yield the rows with the first column blank where it repeats."""
    previous: object = None
    for first, *rest in rows:
        yield ("" if first == previous else first, *rest)
        previous = first


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="assert every number; see above")
    parser.add_argument(
        "--warehouse",
        type=Path,
        default=Path(__file__).parent / "warehouse",
        help="the folder of the warehouse, which is deleted first (example_project/warehouse)",
    )
    return parser.parse_args()


def _delete_warehouse(warehouse: Path) -> None:
    """Delete the warehouse of an earlier run; refuse to delete any other folder."""
    if warehouse.exists() and any(warehouse.iterdir()):
        if not (warehouse / "catalog.sqlite").exists():
            raise SystemExit(f"{warehouse} is no warehouse; name another folder with --warehouse.")
        shutil.rmtree(warehouse)


if __name__ == "__main__":
    main()

"""dbt with 200 models that maintain a rollup, beside dbt-duckdb: a whole process of `dbt run`.

Both projects have the same models over the same twenty sources: `incremental_mv` here, `incremental`
with delete+insert in DuckDB, which has no triggers. Before the clock counts, the rows of all models
are compared."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cases import DUCKDB, OLAPDB
from report import Ratio, Report, progress

MODELS = 200
SOURCES = 20
ROWS = 1_000
THREADS = 4
ABOUT = (
    f"dbt run of {MODELS} models over {SOURCES} sources of {ROWS:,} rows, {THREADS} threads, as a "
    "process: each model counts and sums by one column, here as incremental_mv, in DuckDB as "
    "incremental with delete+insert (dbt-duckdb)."
)
UNCHANGED = f"unchanged run of {MODELS} models"
FIRST = f"first run of {MODELS} models"
CONFIG = {
    OLAPDB: "materialized='incremental_mv'",
    DUCKDB: "materialized='incremental', unique_key='k', incremental_strategy='delete+insert'",
}
COMMAND = "import sys; from dbt.cli.main import cli; cli(sys.argv[1:])"


@dataclass(frozen=True)
class Project:
    """A dbt project of one engine, in a folder with its warehouse."""

    engine: str
    folder: Path
    clock: str

    def write(self) -> None:
        """Write the project's files and the sources."""
        path = self.folder / "warehouse"
        database = path if self.engine == OLAPDB else path.with_suffix(".duckdb")
        output = f"{{type: {self.engine}, path: '{database}', schema: main, threads: {THREADS}}}"
        files = {
            "dbt_project.yml": "name: rollups\nversion: 1.0.0\nprofile: rollups\n"
            "flags: {send_anonymous_usage_stats: false}\n",
            "profiles.yml": f"rollups: {{target: dev, outputs: {{dev: {output}}}}}\n",
            "models/sources.yml": "sources: [{name: raw, schema: raw, tables: ["
            + ", ".join(f"{{name: events{n}}}" for n in range(SOURCES))
            + "]}]\n",
        }
        for number in range(MODELS):
            files[f"models/m{number}.sql"] = (
                f"{{{{ config({CONFIG[self.engine]}) }}}}\n"
                f"select (v + {number}) % 50 as k, count(*) as c, sum(v) as s\n"
                f"from {{{{ source('raw', 'events{number % SOURCES}') }}}} group by 1\n"
            )
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        with self._connected() as connection:
            schema = "DATABASE" if self.engine == OLAPDB else "SCHEMA"
            storage = "ENGINE = MergeTree ORDER BY v" if self.engine == OLAPDB else ""
            series = "numbers" if self.engine == OLAPDB else "range"
            column = "number" if self.engine == OLAPDB else "range"
            connection.execute(f"CREATE {schema} raw")
            for number in range(SOURCES):
                connection.execute(f"CREATE TABLE raw.events{number} (v BIGINT NOT NULL) {storage}")
                connection.execute(
                    f"INSERT INTO raw.events{number} SELECT {column} * {number + 1}"
                    f" FROM {series}({ROWS})"
                )

    def seconds(self) -> float:
        """Run dbt; return the time of its process. Exits if dbt fails."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, "--quiet", "run"],
            cwd=self.folder,
            env={**os.environ, "DBT_PROFILES_DIR": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        elapsed = time.perf_counter() - begun
        if done.returncode != 0:
            sys.exit(f"dbt run with {self.engine} failed:\n{done.stdout[-3000:]}{done.stderr}")
        if self.clock == "wall":
            return elapsed
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def answers(self) -> Iterator[list[tuple[int, ...]]]:
        """Yield the rows of each model."""
        schema = "" if self.engine == OLAPDB else "main."
        with self._connected() as connection:
            if self.engine == OLAPDB:
                connection.execute("USE main")
            for number in range(MODELS):
                sql = f"SELECT k, c, s FROM {schema}m{number} ORDER BY k"
                yield [tuple(map(int, row)) for row in connection.execute(sql).fetchall()]

    def _connected(self):  # type: ignore[no-untyped-def]
        path = str(self.folder / "warehouse")
        if self.engine == OLAPDB:
            import olapdb

            return olapdb.connect(path)
        import duckdb

        return duckdb.connect(f"{path}.duckdb")


def run_projects(folder: Path, clock: str, rounds: int, report: Report, part: str) -> None:
    """Measure the first run once, and unchanged runs in turns."""
    wanted = [name for name in (FIRST, UNCHANGED) if part.lower() in name.lower()]
    if not wanted:
        return
    report.group("dbt", ABOUT, [DUCKDB])
    projects = [Project(engine, folder / f"dbt_{engine}", clock) for engine in (OLAPDB, DUCKDB)]
    for project in projects:
        progress(f"dbt: {project.engine} makes its sources")
        project.write()
    times = _in_turn(projects, 0)
    if FIRST in wanted:
        report.row(FIRST, {DUCKDB: Ratio.of([times[OLAPDB] / times[DUCKDB]])})
    pairs = zip(*(project.answers() for project in projects), strict=True)
    for number, (ours, others) in enumerate(pairs):
        if ours != others:
            sys.exit(f"The rows of m{number} differ: {ours[:3]} here, {others[:3]} in DuckDB.")
    if UNCHANGED in wanted:
        _in_turn(projects, 0)
        rows = [_in_turn(projects, number) for number in range(1, rounds + 1)]
        report.row(UNCHANGED, {DUCKDB: Ratio.of([row[OLAPDB] / row[DUCKDB] for row in rows])})


def _in_turn(projects: list[Project], number: int) -> dict[str, float]:
    """Run dbt in each project; who begins rotates with the round."""
    turns = projects if number % 2 == 0 else projects[::-1]
    times = {}
    for project in turns:
        progress(f"dbt: run {number} with {project.engine}")
        times[project.engine] = project.seconds()
    return times

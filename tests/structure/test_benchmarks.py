"""`make bench` at tiny sizes: each measurement runs and agrees on its answers, and ratios come out.

What the ratios are is of no interest here.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import duckdb
import pytest

pytestmark = pytest.mark.feature("house")

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / "run.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=280,
    )


@pytest.mark.parametrize(
    ("groups", "part", "other", "count"),
    [
        (["inserts", "reads"], "", "duckdb", 40),
        (["reads", "cold"], "count()", "duckdb", 2),
        (["views", "merges"], "", "chdb", 4),
        (["marginal"], "1 view, ", "chdb", 1),
        (["spill"], "", "duckdb", 3),
        (["ssb"], "", "duckdb", 26),
        (["clickbench"], "", "chdb", 43),
    ],
    ids=["inserts-reads", "reads-cold", "views-merges", "marginal", "spill", "ssb", "clickbench"],
)
def test_groups_measure_ratios(
    tmp_path: Path, groups: list[str], part: str, other: str, count: int
) -> None:
    file, tables = tmp_path / "ratios.json", tmp_path / "ratios.md"
    sizes = ["--rows", "1000", "--scale", "0.001", "--rounds", "1"]
    files = ["--json", str(file), "--markdown", str(tables)]
    done = ran(*sizes, *files, "--only", *groups, "--case", part)
    assert done.returncode == 0, done.stderr
    told = json.loads(file.read_text())
    assert [group["group"] for group in told["groups"]] == groups
    assert told["rounds"] == 1
    assert len(told["versions"]) == 3
    measured = [one for group in told["groups"] for one in group["measurements"]]
    assert len(measured) >= count
    text = tables.read_text()
    assert [f"## {group}" in text for group in groups] == [True] * len(groups)
    for one in measured:
        assert one["name"] in done.stdout
        assert f"| {one['name']} |" in text
        assert set(one[other]) == {"median", "low", "high"}
        assert groups == ["marginal"] or one[other]["low"] > 0


def test_spills_say_what_memory_and_disk_they_took(tmp_path: Path) -> None:
    file = tmp_path / "ratios.json"
    sizes = ["--rows", "1000", "--rounds", "1", "--beside", "duckdb", "--case", "ORDER BY"]
    done = ran(*sizes, "--only", "spill", "--json", str(file))
    assert done.returncode == 0, done.stderr
    (note,) = json.loads(file.read_text())["groups"][0]["notes"]
    assert note["note"].startswith("Peak memory: ")


def test_estimates_are_reported_with_the_worst(workers: ModuleType) -> None:
    explained = importlib.import_module("explained")
    lines = [
        "Aggregating",
        "    Keys: a",
        "    Rows: 4 · estimated 40 · q-error 10.00 · 32 B in 1 batches",
        "  ReadFromMergeTree (default.t)",
        "      Rows: 9 · stopped early · 72 B in 1 batches",
        "      Rows: 9 · estimated 9 · q-error 1.00 · 72 B in 1 batches",
    ]
    expected = [(10.0, "Aggregating"), (1.0, "ReadFromMergeTree (default.t)")]
    assert explained.q_errors(lines) == expected


def test_orders_need_the_tables_of_tpch() -> None:
    done = ran("--only", "orders")
    assert done.returncode == 2
    assert "--only tpch orders" in done.stderr


def test_growth_with_rows_has_a_figure_for_each_engine(tmp_path: Path) -> None:
    file, plot = tmp_path / "scaling.json", tmp_path / "scaling.png"
    command = [sys.executable, str(BENCHMARKS / "scaling.py"), "--rows", "1000"]
    command += ["--json", str(file)]
    if importlib.util.find_spec("matplotlib"):
        command += ["--plot", str(plot)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    told = json.loads(file.read_text())
    assert set(told["measured"]) == {"olapdb", "chdb", "duckdb"}
    wanted = {"load", *told["queries"], "peak_bytes", "disk_bytes"}
    for by_rows in told["measured"].values():
        assert set(by_rows) == {"1000"}
        assert all(set(one) == wanted and min(one.values()) > 0 for one in by_rows.values())
    assert plot.exists() == bool(importlib.util.find_spec("matplotlib"))


def test_a_part_of_it_beside_one_engine() -> None:
    done = ran(
        "--rows",
        "1000",
        "--rounds",
        "2",
        "--only",
        "inserts",
        "--case",
        "arrow",
        "--beside",
        "duckdb",
        "--threads",
        "1",
        "--clock",
        "cpu",
    )
    assert done.returncode == 0, done.stderr
    assert "to DuckDB" in done.stdout
    assert "chDB" not in done.stdout.split("inserts", 1)[0]
    assert "threads: 1; cpu time, 2 rounds" in " ".join(done.stdout.split())
    assert "VALUES of" not in done.stdout


def test_tpch_without_its_generator_says_so(workers: ModuleType) -> None:
    if importlib.import_module("tpch").generator() is not None:
        pytest.skip("tpchgen-cli is installed")
    done = ran("--only", "tpch")
    assert done.returncode == 2
    assert "pip install tpchgen-cli" in done.stderr


def test_the_tables_of_tpch_are_those_of_each_engine(workers: ModuleType) -> None:
    group = importlib.import_module("tpch").tpch(0.01)
    assert len(group.cases) == 22
    made = [sql for sql in group.shared["duckdb"] if sql.startswith("CREATE")]
    assert len(made) == len(group.shared["olapdb"]) // 2 == 8
    assert not [sql for sql in made if "Int64" in sql or "String" in sql or "Date32" in sql]
    with duckdb.connect() as connection:
        for sql in made:
            connection.execute(sql)


def test_nothing_measured_says_so() -> None:
    done = ran("--rows", "1000", "--only", "reads", "--case", "no such", "--beside", "duckdb")
    assert done.returncode == 1
    assert "Nothing was measured" in done.stderr


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("workers")


class Answers:
    """In place of an engine: rows that are given."""

    def __init__(self, *rows: list[object]) -> None:
        self.given = list(rows)

    def rows(self, query: str) -> list[list[object]]:
        return self.given


@pytest.mark.parametrize(
    ("one", "other", "tolerance"),
    [
        ([1], [2], 1e-9),
        ([1.0], [1.001], 1e-9),
        ([100], [150], 0.1),
        (["a"], ["b"], 1e-9),
        ([None], [0], 1e-9),
        ([1, 2], [1], 1e-9),
        ([10**18], [10**18 + 1], 1e-9),
    ],
)
def test_answers_that_differ_end_the_run(
    workers: ModuleType, one: list[object], other: list[object], tolerance: float
) -> None:
    queries = {"olapdb": "SELECT a", "chdb": "SELECT b"}
    engines = {"olapdb": Answers(["same"], one), "chdb": Answers(["same"], other)}
    with pytest.raises(SystemExit, match=r"Answers differ at LIKE.*row 1(?s:.*)SELECT b"):
        workers.check("LIKE", queries, engines, tolerance)


def test_answers_that_agree(workers: ModuleType) -> None:
    queries = {"olapdb": "SELECT a", "chdb": "SELECT b", "duckdb": "SELECT c"}
    engines = {
        "olapdb": Answers([1, 0.1 + 0.2, None, "a", 100]),
        "chdb": Answers([1, 0.3, None, "a", 100]),
        "duckdb": Answers([1.0, 0.3, None, "a", 100.0]),
    }
    workers.check("sums", queries, engines, 1e-9)
    engines["duckdb"] = Answers([1, 0.3, None, "a", 100], [1, 0.3, None, "a", 100])
    with pytest.raises(SystemExit, match="1 and 2 rows"):
        workers.check("sums", queries, engines, 1e-9)

"""The 22 queries of TPC-H, as the specification writes them, on the rows of its own generator.

`tpchgen-cli` of PyPI makes the rows; it is no requirement of anything else here. The tables have the
keys of the specification as sorting keys; DuckDB's have no index.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from cases import CHDB, DUCKDB, OLAPDB, Case, Group, clickhouse

GENERATOR = "tpchgen-cli"
TOLERANCE = 1e-6
"""Averages of decimals have other digits behind the point in each engine."""
DUCKDB_TYPES = {"Int64": "BIGINT", "Int32": "INTEGER", "String": "VARCHAR", "Date32": "DATE"}
DUCKDB_DIFFERS = (6, 8, 13, 14, 17)
"""Its answers are others by the rules of its SQL: see tests/oracle/test_tpch.py."""


def _harness() -> ModuleType:
    """Import the queries and the tables, which tests use too."""
    path = Path(__file__).parents[1] / "harness" / "tpch.py"
    spec = importlib.util.spec_from_file_location("tpch_harness", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def generator() -> str | None:
    """Return the path of the generator, beside this Python or on PATH; None if it is not installed."""
    beside = Path(sys.executable).with_name(GENERATOR)
    return str(beside) if beside.exists() else shutil.which(GENERATOR)


def write_tpch(folder: Path, scale: float) -> None:
    """Write a Parquet file for each table."""
    program = generator()
    assert program is not None, "main() has looked for it"
    command = [program, "parquet", "-s", f"{scale:g}", "--output-dir", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def tpch(scale: float) -> Group:
    harness = _harness()
    queries: dict[int, str] = harness.queries()
    tables = [
        f"CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY ({harness._KEYS[table]})"
        for table, columns in harness.SCHEMA.items()
    ]
    loads = [f"LOAD {table}" for table in harness.SCHEMA]
    return Group(
        "tpch",
        f"Scale factor {scale:g}: the queries as the specification writes them, answers delivered "
        "as Arrow. The tables are sorted by their primary keys.",
        [_case(number, query) for number, query in queries.items()],
        {
            **clickhouse(*tables, *loads),
            DUCKDB: [
                *(_duckdb_table(name, columns) for name, columns in harness.SCHEMA.items()),
                *loads,
            ],
        },
    )


def _case(number: int, query: str) -> Case:
    checked = (OLAPDB, CHDB) if number in DUCKDB_DIFFERS else (OLAPDB, CHDB, DUCKDB)
    return Case(
        f"Q{number}",
        {**clickhouse(query), DUCKDB: (query,)},
        check=dict.fromkeys(checked, query),
        tolerance=TOLERANCE,
        repeats=True,
    )


def _duckdb_table(table: str, columns: str) -> str:
    for theirs, types in DUCKDB_TYPES.items():
        columns = columns.replace(f" {theirs}", f" {types}")
    return f"CREATE TABLE {table} ({columns})"

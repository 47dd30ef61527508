"""Plans that compute nothing but numbers, dates and times do without the rule for wide values, which would not change them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.optimize.wide_rows import compute_wide_values_apart
from olapdb.plan.nodes import Plan
from olapdb.statements.query import select

pytestmark = pytest.mark.feature("settings")

TABLE = "t (k UInt64, d Date, s String, f FixedString(100), a Array(String)) ENGINE = MergeTree ORDER BY k"
NARROW = (
    "SELECT s, count(), max(k + 1) FROM t WHERE k < 3 AND s LIKE '%a%' GROUP BY s ORDER BY s",
    "SELECT toStartOfMonth(d) AS m, sum(toInt32(k)) FROM t WHERE k IN (1, 2) GROUP BY m",
    "SELECT s, f, a FROM t WHERE length(a) > 1 ORDER BY cityHash64(s) LIMIT 3",
    "SELECT count() FROM t WHERE s <> '' AND has(a, 'x')",
)
OTHERS = (
    "SELECT max(repeat(s, 1000)) FROM t",
    "SELECT count() FROM t WHERE k = length(repeat(s, 9))",
    "SELECT count() FROM t WHERE length(arrayMap(x -> concat(x, s), a)) > 1",
    "SELECT runningDifference(k) FROM t SETTINGS allow_deprecated_error_prone_window_functions = 1",
    "SELECT k, rowNumberInBlock() FROM t WHERE k > 1",
    "SELECT max(toFixedString(s, 100)) FROM t",
    f"SELECT max(concat(s, '{300 * 'x'}')) FROM t",
    "SELECT count() FROM t WHERE k IN (SELECT length(repeat(s, 1000)) FROM t)",
)


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with olapdb.connect() as connection:
        connection.execute(f"CREATE TABLE {TABLE}")
        connection.execute("INSERT INTO t VALUES (1, '2024-01-02', 'ab', 'f', ['x', 'y'])")
        yield connection


@pytest.mark.parametrize("sql", NARROW)
def test_narrow_plans_stay_as_they_are(connection: Connection, sql: str) -> None:
    def not_needed(plan: Plan) -> Plan:
        assert compute_wide_values_apart(plan) is plan, "the rule would change it"
        raise AssertionError("the rule was not needed")

    with patch.object(select, "wide_rows", SimpleNamespace(compute_wide_values_apart=not_needed)):
        connection.execute(sql).fetchall()


@pytest.mark.parametrize("sql", OTHERS)
def test_other_plans_take_the_rule(connection: Connection, sql: str) -> None:
    plans: list[Plan] = []

    def recorded(plan: Plan) -> Plan:
        plans.append(plan)
        return compute_wide_values_apart(plan)

    with patch.object(select, "wide_rows", SimpleNamespace(compute_wide_values_apart=recorded)):
        connection.execute(sql).fetchall()
    assert plans


def test_the_modules_are_not_imported(tmp_path: Path) -> None:
    script = f"""
import sys, olapdb
connection = olapdb.connect({str(tmp_path)!r})
connection.execute("CREATE TABLE {TABLE}")
for sql in {NARROW!r}:
    connection.execute(sql).fetchall()
print([name for name in sys.modules if name.endswith((".wide_rows", ".wide_values"))])
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert answer.stdout.strip() == b"[]"

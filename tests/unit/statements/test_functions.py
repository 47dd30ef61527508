"""CREATE FUNCTION and DROP FUNCTION beyond ClickHouse's form, which tests/sql/user_functions.slt has."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import olapdb
from olapdb import errors

pytestmark = pytest.mark.feature("functions")


@pytest.fixture
def connection() -> Iterator[olapdb.Connection]:
    with olapdb.connect() as opened:
        yield opened


def rows(connection: olapdb.Connection, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(sql).fetchall()]


# --- SQL functions


def test_types_and_defaults(connection: olapdb.Connection) -> None:
    connection.execute(
        "CREATE FUNCTION price(net Decimal(9, 2), rate Float64 DEFAULT 0.5) RETURNS Float32 "
        "IMMUTABLE AS $$ SELECT net * (1 + rate) $$ LANGUAGE SQL"
    )
    assert rows(
        connection,
        "SELECT price('10.00'), toTypeName(price(1)), price(2, rate) FROM (SELECT 1 AS rate)",
    ) == [(15.0, "Float32", 4.0)]
    with pytest.raises(errors.BadArguments, match="takes 1 to 2 argument"):
        connection.execute("SELECT price(1, 2, 3)")
    assert rows(connection, "SELECT create_query FROM system.user_functions") == [
        (
            "CREATE FUNCTION price(net Decimal(9, 2), rate Float64 DEFAULT 0.5) RETURNS Float32 "
            "IMMUTABLE AS net * (1 + rate)",
        )
    ]


def test_what_system_functions_prints_makes_the_function_again(
    connection: olapdb.Connection,
) -> None:
    connection.execute("SET allow_python_functions = 1")
    for statement in (
        "CREATE FUNCTION one AS x -> if(x > 1, 'a\\'b', toString(x))",
        "CREATE FUNCTION none AS () -> 1",
        "CREATE AGGREGATE FUNCTION total(x Int64) AS sum(x)",
        "CREATE FUNCTION `od d`(`a b` Int8 DEFAULT 1 + 1) RETURNS Int8 VOLATILE AS `a b`",
        "CREATE FUNCTION python(x Int8) RETURNS Int8 LANGUAGE python RUNTIME_VERSION = '3.11' "
        "HANDLER = 'f' PACKAGES = ('pyarrow', 'numpy') VECTORIZED AS 'def f(x):\\n  return x'",
    ):
        connection.execute(statement)
    before = rows(connection, "SELECT name, create_query FROM system.user_functions ORDER BY name")
    for _, create_query in before:
        connection.execute(create_query.replace("CREATE", "CREATE OR REPLACE", 1))
    after = rows(connection, "SELECT name, create_query FROM system.user_functions ORDER BY name")
    assert after == before


def test_a_function_of_a_database(connection: olapdb.Connection) -> None:
    connection.execute("CREATE DATABASE shop")
    connection.execute("CREATE FUNCTION f AS x -> x")
    connection.execute("CREATE FUNCTION shop.f(x Int64) AS x * 2")
    connection.execute("CREATE FUNCTION shop.sum AS x -> shop.f(x) + 1")
    connection.execute("CREATE FUNCTION outside AS x -> shop.sum(x)")
    assert rows(connection, "SELECT f(1), shop.f(1), `shop`.sum(1), outside(1)") == [(1, 2, 3, 3)]
    names = rows(connection, "DESCRIBE (SELECT shop.f(1))")
    assert names[0][0] == "shop.f(1)"

    connection.execute("RENAME DATABASE shop TO mall")
    assert rows(connection, "SELECT mall.sum(1), outside(1)") == [(3, 3)]
    with pytest.raises(errors.UnknownFunction, match=r"shop\.f"):
        connection.execute("SELECT shop.f(1)")

    connection.execute("DROP DATABASE mall")
    assert rows(connection, "SELECT database, name FROM system.user_functions") == [
        ("", "f"),
        ("", "outside"),
    ]
    with pytest.raises(errors.UnknownFunction, match=r"mall\.sum"):
        connection.execute("SELECT outside(1)")
    with pytest.raises(errors.UnknownDatabase):
        connection.execute("CREATE FUNCTION mall.f AS x -> x")


@pytest.mark.parametrize(
    ("statement", "error", "text"),
    [
        ("CREATE FUNCTION r AS x -> r(x)", errors.CannotCreateRecursiveFunction, "calls itself"),
        (
            "CREATE OR REPLACE FUNCTION f AS x -> g(x)",
            errors.CannotCreateRecursiveFunction,
            "calls itself",
        ),
        ("CREATE FUNCTION q AS x -> (SELECT x)", errors.NotSupportedError, "contains a query"),
        ("CREATE FUNCTION q(x Int8) AS x + y", errors.UnknownIdentifier, "y"),
        ("CREATE FUNCTION q(x Int8) AS unheard_of(x)", errors.UnknownFunction, "unheard_of"),
        (
            "CREATE FUNCTION q(x Date) AS x + toDate('2024-01-01')",
            errors.IllegalTypeOfArgument,
            "plus",
        ),
        ("CREATE FUNCTION q(x Int8 DEFAULT 1, y Int8) AS x", errors.BadArguments, "DEFAULT"),
        ("CREATE AGGREGATE FUNCTION q(x Int8) AS x + 1", errors.BadArguments, "no aggregate"),
        ("CREATE FUNCTION q(x Int8) AS 'SELECT x FROM t'", errors.BadArguments, "one expression"),
        ("CREATE FUNCTION q(x Int8) LANGUAGE js AS 'x'", errors.SyntaxError, "Python"),
        ("CREATE FUNCTION system.q AS x -> x", errors.IncorrectQuery, "no functions"),
    ],
)
def test_what_is_refused(
    connection: olapdb.Connection, statement: str, error: type[errors.Error], text: str
) -> None:
    connection.execute("CREATE FUNCTION f AS x -> x + 1")
    connection.execute("CREATE FUNCTION g AS x -> f(x)")
    with pytest.raises(error, match=text):
        connection.execute(statement)
    assert rows(connection, "SELECT count() FROM system.user_functions") == [(2,)]


def test_explain_syntax_shows_the_expansion(connection: olapdb.Connection) -> None:
    connection.execute("CREATE FUNCTION f AS x -> x + 1")
    assert rows(connection, "EXPLAIN SYNTAX SELECT f(a) AS c FROM t") == [
        ("SELECT plus(a, 1) AS c\nFROM t",)
    ]


def test_values_mutations_and_indexes(connection: olapdb.Connection) -> None:
    connection.execute("CREATE FUNCTION f AS x -> x + 1")
    connection.execute("CREATE FUNCTION set AS x -> 99")  # also the type of an index
    connection.execute(
        "CREATE TABLE t (a Int64, INDEX i f(a) TYPE set(10)) ENGINE = MergeTree ORDER BY a"
    )
    connection.execute("INSERT INTO t VALUES (f(1)), (f(f(1)))")
    connection.execute("ALTER TABLE t DELETE WHERE f(a) = 4")
    assert rows(connection, "SELECT a, set(a) FROM t") == [(2, 99)]
    with pytest.raises(errors.BadArguments):
        connection.execute("INSERT INTO t VALUES (f(1, 2))")


def test_a_view_over_a_function_stays_provable(connection: olapdb.Connection) -> None:
    connection.execute("CREATE FUNCTION bucket(x Int64) RETURNS Int64 AS intDiv(x, 10)")
    connection.execute("CREATE TABLE s (x Int64) ENGINE = MergeTree ORDER BY x")
    connection.execute(
        "CREATE MATERIALIZED VIEW m ENGINE = SummingMergeTree ORDER BY b AS "
        "SELECT bucket(x) AS b, sum(x) AS n FROM s GROUP BY b"
    )
    connection.execute("INSERT INTO s SELECT number FROM numbers(100)")
    connection.execute("CREATE OR REPLACE FUNCTION bucket(x Int64) RETURNS Int64 AS intDiv(x, 7)")
    connection.execute("INSERT INTO s SELECT number FROM numbers(100)")
    assert rows(connection, "SELECT count() FROM m FINAL") == [(10,)]
    before = rows(connection, "SELECT verdict, reason FROM system.views")
    connection.execute("DROP FUNCTION bucket")
    connection.execute("SYSTEM RECONCILE VIEW m")
    assert rows(connection, "SELECT DISTINCT verdict, differing FROM system.view_checks") == [
        ("equal", 0)
    ]
    assert before[0][1] == ""


def test_other_processes_see_functions(tmp_path: Path) -> None:
    folder = str(tmp_path / "warehouse")
    program = textwrap.dedent(
        f"""
        import olapdb
        with olapdb.connect({folder!r}) as connection:
            assert connection.execute("SELECT f(1)").fetchall() == [(2,)]
            connection.execute("CREATE OR REPLACE FUNCTION f AS x -> x + 2")
        """
    )
    with olapdb.connect(folder) as connection:
        connection.execute("CREATE FUNCTION f AS x -> x + 1")
        assert rows(connection, "SELECT f(1)") == [(2,)]
        subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
        assert rows(connection, "SELECT f(1)") == [(3,)]
        connection.execute(f"SYSTEM BACKUP TO '{tmp_path / 'backup'}'")
        connection.execute("DROP FUNCTION f")
    with olapdb.connect(folder) as connection:
        assert rows(connection, "SELECT count() FROM system.user_functions") == [(0,)]
    with olapdb.connect(tmp_path / "restored") as connection:
        connection.execute(f"SYSTEM RESTORE FROM '{tmp_path / 'backup'}'")
        assert rows(connection, "SELECT f(1)") == [(3,)]


def test_a_read_only_session_creates_none(connection: olapdb.Connection) -> None:
    connection.execute("SET readonly = 1")
    with pytest.raises(errors.ReadOnly):
        connection.execute("CREATE FUNCTION f AS x -> x")
    with pytest.raises(errors.ReadOnly):
        connection.execute("DROP FUNCTION IF EXISTS f")


# --- Python functions of a connection


def test_a_callable_over_arrow_arrays(connection: olapdb.Connection) -> None:
    def scaled(values: pa.Array, by: pa.Array) -> pa.Array:
        return pc.multiply(values, by)

    connection.create_function("scaled", scaled, {"x": "Int64", "by": "Int64"}, "Int64")
    assert rows(connection, "SELECT sum(scaled(number, 3)), scaled(2, 2) FROM numbers(200000)") == [
        (59999700000, 4)
    ]
    assert rows(
        connection, "SELECT number FROM numbers(5) WHERE scaled(number, 2) > 5 ORDER BY number"
    ) == [(3,), (4,)]


def test_a_callable_of_one_row_and_nulls(connection: olapdb.Connection) -> None:
    connection.create_function(
        "label", lambda x: None if x is None else f"<{x}>", {"x": "Nullable(String)"},
        "Nullable(String)", vectorized=False,
    )  # fmt: skip
    assert rows(connection, "SELECT label('a'), label(NULL)") == [("<a>", None)]
    connection.create_function("always", lambda x: None, {"x": "Int8"}, "Int8", vectorized=False)
    with pytest.raises(errors.PythonFunctionFailed, match="not Nullable"):
        connection.execute("SELECT always(number) FROM numbers(2)").fetchall()


def test_an_aggregate_of_a_connection(connection: olapdb.Connection) -> None:
    class Longest:
        def __init__(self) -> None:
            self.text = ""

        def accumulate(self, text: str, suffix: str) -> None:
            self.text = max(self.text, text + suffix, key=len)

        def finish(self) -> str:
            return self.text

    connection.create_function(
        "longest", Longest, {"x": "String", "y": "String"}, "String",
        vectorized=False, aggregate=True,
    )  # fmt: skip
    assert rows(
        connection,
        "SELECT number % 2 AS k, longest(repeat('a', number), '!') FROM numbers(5) GROUP BY k ORDER BY k",
    ) == [(0, "aaaa!"), (1, "aaa!")]


def test_errors_of_a_callable_name_it(connection: olapdb.Connection) -> None:
    connection.create_function("broken", lambda x: x[5], {"x": "Int8"}, "Int8")
    with pytest.raises(errors.PythonFunctionFailed, match="broken failed: IndexError"):
        connection.execute("SELECT broken(number) FROM numbers(2)").fetchall()
    connection.create_function("short", lambda x: [1], {"x": "Int8"}, "Int8")
    with pytest.raises(errors.PythonFunctionFailed, match="1 values for 2 rows"):
        connection.execute("SELECT short(number) FROM numbers(2)").fetchall()
    with pytest.raises(errors.FunctionAlreadyExists):
        connection.create_function("sum", sum, {"x": "Int8"}, "Int8")


def test_a_connection_keeps_its_functions_to_itself(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path) as one, olapdb.connect(tmp_path) as other:
        one.create_function("mine", lambda x: x, {"x": "Int8"}, "Int8")
        assert rows(one, "SELECT mine(1)") == [(1,)]
        with pytest.raises(errors.UnknownFunction):
            other.execute("SELECT mine(1)")
        with pytest.raises(errors.NotSupportedError, match="belongs to this connection"):
            one.execute("CREATE VIEW v AS SELECT mine(1) AS a")


# --- Python functions of the warehouse

PYTHON = (
    "CREATE OR REPLACE FUNCTION twice(x Int64) RETURNS Int64 LANGUAGE python HANDLER = 'f' AS $$\n"
    "def f(x):\n    return x * {}\n$$"
)


def test_stored_python_runs_only_where_it_is_allowed(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path) as connection:
        with pytest.raises(errors.SupportIsDisabled, match="allow_python_functions"):
            connection.execute(PYTHON.format(2))
        connection.execute("SET allow_python_functions = 1")
        connection.execute(PYTHON.format(2))
        connection.execute("CREATE VIEW v AS SELECT twice(number) AS n FROM numbers(3)")
        for _ in range(2):
            assert rows(connection, "SELECT twice(number) FROM numbers(3)") == [(0,), (2,), (4,)]
        connection.execute(PYTHON.format(5))
        assert rows(connection, "SELECT twice(number) FROM numbers(3)") == [(0,), (5,), (10,)]
        assert rows(connection, "SELECT n FROM v") == [(0,), (5,), (10,)]
    with olapdb.connect(tmp_path) as connection:
        for sql in ("SELECT twice(1)", "SELECT n FROM v"):
            with pytest.raises(errors.SupportIsDisabled, match="twice"):
                connection.execute(sql)
        assert rows(connection, "SELECT twice(4) SETTINGS allow_python_functions = 1") == [(20,)]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE u (a Int64, b Int64 DEFAULT twice(a)) ENGINE = MergeTree ORDER BY a",
        "CREATE TABLE u (a Int64) ENGINE = MergeTree ORDER BY twice(a)",
        "CREATE MATERIALIZED VIEW m ENGINE = MergeTree ORDER BY b AS SELECT twice(a) AS b FROM t",
        "ALTER TABLE t ADD COLUMN b Int64 DEFAULT twice(a)",
        "ALTER TABLE t DELETE WHERE twice(a) = 2",
        "DELETE FROM t WHERE twice(a) = 2",
    ],
)
def test_definitions_and_mutations_cannot_call_python(
    connection: olapdb.Connection, statement: str
) -> None:
    connection.execute("SET allow_python_functions = 1")
    connection.execute(PYTHON.format(2))
    connection.execute("CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY a")
    with pytest.raises(errors.NotSupportedError, match="Python function twice"):
        connection.execute(statement)
    connection.execute("INSERT INTO t SELECT twice(number) FROM numbers(3)")
    connection.execute(
        "CREATE TABLE c ENGINE = MergeTree ORDER BY a AS SELECT twice(a) AS a FROM t"
    )
    assert rows(connection, "SELECT a FROM c ORDER BY a") == [(0,), (4,), (8,)]


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        ("HANDLER = 'f'", "def g(x): pass", "defines no function f"),
        ("", "def g(x): pass", "HANDLER"),
        ("HANDLER = 'f'", "def f(x:", "does not parse"),
        ("HANDLER = 'f' PACKAGES = ('no-such-package>=1')", "def f(x): pass", "pip install"),
        ("HANDLER = 'f' RUNTIME_VERSION = '99.1'", "def f(x): pass", "needs Python 99.1"),
    ],
)
def test_python_code_is_checked_when_it_is_stored(
    connection: olapdb.Connection, options: str, code: str, text: str
) -> None:
    connection.execute("SET allow_python_functions = 1")
    with pytest.raises(errors.BadArguments, match=text):
        connection.execute(
            f"CREATE FUNCTION p(x Int8) RETURNS Int8 LANGUAGE python {options} AS $${code}$$"
        )

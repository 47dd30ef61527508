"""`import olapdb` stays light: what is heavy is loaded at first use."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import olapdb

pytestmark = pytest.mark.feature("house")

HEAVY = ("sqlglot", "sqlalchemy", "pandas", "pyspark", "dbt", "numpy", "agate", "rich")


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(chr(10).join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_import_loads_nothing_heavy() -> None:
    loaded = modules_after("import olapdb")
    assert loaded.isdisjoint(HEAVY), sorted(loaded.intersection(HEAVY))


def test_import_builds_no_arrow_object() -> None:
    code = (
        "import olapdb, sys\n"
        "if 'pyarrow' in sys.modules:\n"
        "    import pyarrow\n"
        "    assert pyarrow.total_allocated_bytes() == 0\n"
    )
    modules_after(code)


UNWANTED = {"pandas", "sqlalchemy", "asyncio", "pyspark", "dbt", "agate", "rich"}
QUERIES = (
    "SELECT 1",
    "SELECT a, count(), sum(x), min(s), avg(x) FROM t GROUP BY a ORDER BY a",
    "SELECT count() FROM t WHERE a = 1 AND x > 0.5 AND s IN ('a', 'b')",
    "SELECT toDate('2020-01-01') + a, if(a > 1, 'x', s) FROM t ORDER BY ALL",
    "SELECT count() FROM t WHERE s LIKE '%a%' AND s NOT LIKE 'b%'",
    "SELECT if(a < 50, 'low', s) AS g, avg(length(s)) FROM t GROUP BY g ORDER BY g",
    "SELECT if(a < 50, 'low', s) AS g, max(length(s)) FROM t GROUP BY g ORDER BY g",
    "SELECT sum(a + 1), sum(a + 2), sum(a + 3) FROM t",
    "SELECT s, uniq(a), quantile(0.9)(x), groupArray(a), any(x) FROM t GROUP BY s",
    "SELECT l.a, r.s FROM t AS l LEFT JOIN t AS r ON l.a = r.a + 1 WHERE l.x > 1 LIMIT 3",
    "SELECT max(at), min(d) FROM m WHERE d > '2024-01-01' AND at < '2024-03-01 00:00:00'",
    "SELECT d, at, p FROM m WHERE p > 1.5 ORDER BY at LIMIT 3",
    "SELECT [a, 1], (a, 's'), map('k', a), toDateTime64('2024-01-01 00:00:00', 3) FROM t LIMIT 2",
    "SELECT toIPv4('10.0.0.1'), toDecimal64(1.5, 2), NULL, [1, 2], ('a', 1)",
    "INSERT INTO m VALUES ('2024-02-01', '2024-02-01 00:00:00', 1.5), ('2024-02-02', 0, 2)",
    "SELECT * FROM system.parts",
    "SELECT sum(x) OVER (PARTITION BY s ORDER BY a) FROM t LIMIT 3",
    "CREATE TABLE n (a UInt8, d Date DEFAULT today(), s String DEFAULT 'x') ORDER BY a",
    "INSERT INTO n (a, s) VALUES (1, 'a'), (2, 'b')",
    "ALTER TABLE n UPDATE s = 'c' WHERE a = 2",
    "ALTER TABLE n DELETE WHERE a = 1",
    "SELECT t.s FROM t JOIN n ON t.a = n.a WHERE n.s = 'c'",
    "CREATE TABLE q (p UInt8, a UInt32) PARTITION BY p ORDER BY a",
    "INSERT INTO q SELECT number % 2, number FROM numbers(5000)",
    "SHOW TABLES",
    "SHOW TABLES LIKE 't%'",
)


def test_queries_load_no_surface_and_no_pandas(tmp_path: Path) -> None:
    """pyarrow imports pandas for values of Python and numpy; `types.arrow_values` does not."""
    folder = str(tmp_path / "warehouse")
    with olapdb.connect(folder) as connection:
        connection.execute("CREATE TABLE t (a UInt8, x Float64, s String) ORDER BY a")
        connection.execute("INSERT INTO t SELECT number % 100, number, 'a' FROM numbers(20000)")
        connection.execute("CREATE TABLE m (d Date, at DateTime, p Decimal(9, 2)) ORDER BY d")
        connection.execute(
            "INSERT INTO m SELECT toDate('2024-01-01') + number AS d, d + 1, number / 4 FROM numbers(99)"
        )
    loaded = modules_after(
        f"import olapdb\nconnection = olapdb.connect({folder!r})\n"
        f"for query in {QUERIES!r}:\n    cursor = connection.execute(query)\n"
        "    cursor.description and cursor.fetchall()"
    )
    assert loaded.isdisjoint(UNWANTED), sorted(loaded & UNWANTED)


def test_a_warehouse_without_refreshable_views_loads_nothing_for_them(tmp_path: Path) -> None:
    """The thread of refreshes looks for such views in every process, a second after its start."""
    script = (
        f"import olapdb, sys\nsession = olapdb.connect({str(tmp_path / 'warehouse')!r}).session\n"
        "assert not session.refresh_due(lambda: True)\n"
        "assert not {'olapdb.dml', 'olapdb.formats', 'olapdb.ingest'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_public_names_resolve() -> None:
    import olapdb

    for name in olapdb.__all__:
        assert getattr(olapdb, name) is not None


MODULES_MAX = 450
"""758 modules were imported before statements other than queries were deferred (`olapdb.lazy`)."""


def test_a_first_query_imports_few_modules_of_the_engine() -> None:
    script = (
        "import olapdb, sys\nolapdb.connect().execute('SELECT 1').fetchall()\n"
        "print(sum(name.partition('.')[0] == 'olapdb' for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) <= MODULES_MAX


def test_the_hint_for_an_unknown_name_loads_no_module_of_functions() -> None:
    script = """
import sys
import olapdb
connection = olapdb.connect()
try:
    connection.execute("SELECT nme FROM system.one")
except olapdb.Error as error:
    assert "nme" in str(error)
assert "olapdb.functions.strings.similarity" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_dataclasses_compile_their_methods_at_the_first_call() -> None:
    """`olapdb.records` says why. In a file that fails, import `dataclass` from there."""
    root = Path(__file__).parents[2] / "olapdb"
    eager = [
        path.relative_to(root)
        for path in root.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ImportFrom)
        if node.module == "dataclasses" and any(name.name == "dataclass" for name in node.names)
    ]
    assert not eager


def deferred_modules(source: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return what a file defers, as type checkers see it and as it runs: full names of modules by
    the names that they are bound to."""
    declared: dict[str, str] = {}
    deferred: dict[str, str] = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.If) or not node.orelse:
            continue
        for imported in node.body:
            assert isinstance(imported, ast.ImportFrom)
            for name in imported.names:
                declared[name.asname or name.name] = f"{imported.module}.{name.name}"
        for assigned in node.orelse:
            assert isinstance(assigned, ast.Assign)
            (target,), call = assigned.targets, assigned.value
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            assert isinstance(call, ast.Call)
            first, *rest = (ast.literal_eval(argument) for argument in call.args)
            modules = [f"{first}.{name}" for name in rest] or [first]
            deferred.update(zip(map(ast.unparse, targets), modules, strict=True))
    return declared, deferred


def test_deferred_modules_are_those_that_type_checkers_see() -> None:
    files = [
        path
        for path in (Path(__file__).parents[2] / "olapdb").rglob("*.py")
        if re.search("from olapdb.lazy import .*(LazyModule|lazy_modules)", path.read_text())
    ]
    assert files
    for path in files:
        declared, deferred = deferred_modules(path.read_text())
        assert deferred, path
        assert deferred.items() <= declared.items(), path
        for module in deferred.values():
            assert importlib.util.find_spec(module) is not None, (path, module)

"""`import olapdb` stays light: what is heavy is loaded at first use."""

import subprocess
import sys

import pytest

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


def test_a_query_loads_no_surface_it_does_not_need() -> None:
    loaded = modules_after("import olapdb\nolapdb.connect().execute('SELECT 1').fetchall()")
    assert loaded.isdisjoint({"pyspark", "dbt", "agate", "rich", "sqlalchemy", "asyncio"})


def test_public_names_resolve() -> None:
    import olapdb

    for name in olapdb.__all__:
        assert getattr(olapdb, name) is not None

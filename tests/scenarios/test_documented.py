"""Runs the code blocks of the pages that promise to be runnable."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.views import ViewHandle

pytestmark = pytest.mark.feature("views")

DOCS = Path(__file__).parents[2] / "docs"


def blocks_of(page: Path, language: str) -> list[str]:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)
    assert blocks
    return blocks


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_every_block_of_python_runs(page: str, tmp_path: Path) -> None:
    blocks = blocks_of(DOCS.parent / page, "python")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_block_of_the_page_of_tables_runs() -> None:
    """The statements run, and give the results shown beside them."""
    with olapdb.connect() as connection:
        for block in blocks_of(DOCS / "tables.md", "sql"):
            connection.execute(block)
        assert connection.execute("SELECT * FROM stock FINAL").fetchall() == [("nut", 3)]
        plan = "\n".join(
            line
            for (line,) in connection.execute(
                "EXPLAIN indexes = 1 SELECT count() FROM orders"
                " WHERE customer = 'c7' AND placed >= '2024-02-01 00:00:00'"
            ).fetchall()
        )
        assert "Parts: 2/3" in plan
        assert "PrimaryKey" in plan
        kept = connection.execute("SELECT count() FROM orders WHERE customer = 'c3'").fetchone()
        assert kept == (0,)


def test_the_readmes_view_is_proven(tmp_path: Path) -> None:
    (script,) = blocks_of(DOCS.parent / "README.md", "sql")[1:]
    with olapdb.connect(tmp_path / "w") as connection:
        assert connection.execute(script).fetchall() == [("by_hour_mv", "proven", "", "")]


def test_every_block_of_the_page_of_functions_runs(tmp_path: Path) -> None:
    in_sql, stored = blocks_of(DOCS / "functions.md", "sql")
    (in_python,) = blocks_of(DOCS / "functions.md", "python")
    with olapdb.connect(tmp_path / "w") as connection:
        connection.execute("CREATE TABLE articles (title String) ENGINE = MergeTree ORDER BY title")
        connection.execute("INSERT INTO articles VALUES ('A b')")
        assert connection.execute(in_sql).fetchall() == [(12.0, 6)]
        exec(in_python, {"connection": connection})
        connection.execute(stored)
        slugs = connection.execute("SELECT slug(title), shop.slug(title) FROM articles").fetchall()
        assert slugs == [("a b", "a-b")]


def test_every_block_of_the_page_of_deliveries_runs() -> None:
    (keyed,) = blocks_of(DOCS / "deliveries.md", "sql")
    (by_offsets,) = blocks_of(DOCS / "deliveries.md", "python")
    with olapdb.connect() as connection:
        connection.execute(keyed)
        for _ in range(2):
            connection.execute("INSERT INTO events VALUES ('a', 'm', 1)")
        assert connection.execute("SELECT count() FROM events").fetchone() == (1,)
        connection.execute("CREATE TABLE orders (n UInt8) ENGINE = MergeTree ORDER BY n")
        for _ in range(2):
            exec(by_offsets, {"connection": connection, "batch": {"n": [1, 2]}})
        assert connection.execute("SELECT count() FROM orders").fetchone() == (2,)


def test_the_refreshed_view_of_the_page_of_views_is_created() -> None:
    (block,) = blocks_of(DOCS / "views.md", "sql")
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE flights (origin String, dest String) ENGINE = MergeTree ORDER BY origin"
        )
        connection.execute("INSERT INTO flights VALUES ('AAA', 'BBB'), ('AAA', 'BBB')")
        connection.execute(block)
        connection.execute("SYSTEM WAIT VIEW top_routes")
        rows = connection.execute("SELECT * FROM top_routes").fetchall()
    assert rows == [("AAA-BBB", 2)]


def test_a_view_has_the_methods_that_its_page_calls() -> None:
    """Each call of the block in docs/views.md fits the parameters of the method."""
    (block,) = blocks_of(DOCS / "views.md", "python")
    calls = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)]
    methods = [call for call in calls if isinstance(call.func, ast.Attribute)]
    assert len(methods) >= 15
    for call in methods:
        assert isinstance(call.func, ast.Attribute)
        words = {word.arg: None for word in call.keywords if word.arg}
        method = getattr(ViewHandle, call.func.attr)
        inspect.signature(method).bind(None, *call.args, **words)


def test_the_readme_names_every_page() -> None:
    readme = (DOCS.parent / "README.md").read_text()
    assert {page.name for page in DOCS.glob("*.md")} <= set(
        re.findall(r"docs/([\w-]+\.md)", readme)
    )

"""Runs the code blocks of the pages that promise to be runnable."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import olapdb

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


def test_the_readme_names_every_page() -> None:
    readme = (DOCS.parent / "README.md").read_text()
    assert {page.name for page in DOCS.glob("*.md")} <= set(
        re.findall(r"docs/([\w-]+\.md)", readme)
    )

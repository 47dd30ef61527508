"""Files, pages and methods that the docs name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.feature("house")

ROOT = Path(__file__).parents[2]
DOCS = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
_PATH = re.compile(r"`((?:olapdb/|tests/)?[a-z_]+(?:/[a-z_]+)*/(?:[a-z_0-9]+\.py)?)`")
_LINK = re.compile(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_paths_and_links_exist(page: Path) -> None:
    text = page.read_text()
    homes = (ROOT, ROOT / "olapdb")
    paths = [name for name in _PATH.findall(text) if name.count("/") > 1 or name.endswith(".py")]
    missing = [name for name in paths if not any((home / name).exists() for home in homes)]
    missing += [link for link in _LINK.findall(text) if not (page.parent / link).exists()]
    assert not missing


_METHOD = re.compile(r"`(_?[A-Z]\w*)\.(\w+)`")
_OF_OTHERS = frozenset({"DataFrame"})
"""Classes of libraries that the docs name."""


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_methods_exist(page: Path) -> None:
    """A page names methods as `Class.method`: a rename must reach it."""
    named = {pair for pair in _METHOD.findall(page.read_text()) if pair[0] not in _OF_OTHERS}
    sources = [*ROOT.glob("olapdb/**/*.py"), *ROOT.glob("tests/**/*.py")] if named else []
    texts = [path.read_text() for path in sources]
    missing = [
        (owner, method)
        for owner, method in sorted(named)
        if not any(
            re.search(rf"\bclass {owner}\b", text) and re.search(rf"\b{method}\b", text)
            for text in texts
        )
    ]
    assert not missing

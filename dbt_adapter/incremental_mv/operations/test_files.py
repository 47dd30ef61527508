"""The data tests that `generate_reconciliation_tests` writes, one for each model, and keeps current.

Each file begins with a line that says who wrote it. Only files with that line, in the folder of
the operation, are ever rewritten or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from .project import is_model

TEST_NAMES = ("reconciled", "reconciles_with_source")
TEST_MACRO = "olapdb_reconciled"
MARK = "-- Written by `dbt run-operation generate_reconciliation_tests`"
HEAD = f"{{#{MARK}, which keeps it current; a file without this line is left alone. #}}"


def untested(nodes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the `incremental_mv` models that no test reconciles."""
    return _without_tests(list(nodes), generated=frozenset())


def _without_tests(
    nodes: list[Mapping[str, Any]], generated: frozenset[str]
) -> list[Mapping[str, Any]]:
    """Return the models that no test reconciles, the tests of the files `generated` apart."""
    tests = [n for n in nodes if n.get("resource_type") == "test"]
    tests = [n for n in tests if n.get("original_file_path") not in generated]
    tested = {model for test in tests for model in _reconciled_models(test)}
    return [n for n in nodes if is_model(n) and n["unique_id"] not in tested]


def _reconciled_models(test: Mapping[str, Any]) -> list[str]:
    """Return the unique ids of the models that a dbt test reconciles."""
    metadata = test.get("test_metadata") or {}
    by_macro = TEST_MACRO in str(test.get("raw_code", ""))
    if metadata.get("name") not in TEST_NAMES and not by_macro:
        return []
    return list((test.get("depends_on") or {}).get("nodes", []))


def write_tests(
    nodes: Iterable[Mapping[str, Any]], root: str, folder: str, project: str
) -> list[str]:
    """Bring the generated tests in `folder` up to date; return a line for each changed file.

    Each model of the project `project` that no other test reconciles gets a file. Generated files
    of models that are gone, or have a test of their own by now, are removed; a file of the same
    name that a person wrote stays. Raises DbtRuntimeError for a folder outside of the project."""
    listed = list(nodes)
    home = Path(root) / folder
    if not home.resolve().is_relative_to(Path(root).resolve()):
        raise DbtRuntimeError(
            f"generate_reconciliation_tests: the folder {folder} is outside of the project {root}. "
            "Give one of its test-paths, or a folder in one."
        )
    generated = {path for path in sorted(home.glob("*.sql")) if _is_generated(path)}
    paths = frozenset(path.relative_to(root).as_posix() for path in generated)
    expected = {
        home / f"reconciled_{node['name']}{_version(node)}.sql": _text(node)
        for node in _without_tests(listed, paths)
        if node.get("package_name", project) == project
    }
    lines: list[str] = []
    for path in sorted(generated - expected.keys()):
        path.unlink()
        lines.append(f"Removed {path.relative_to(root)}")
    for path, text in sorted(expected.items()):
        if path.exists() and path not in generated:
            lines.append(f"Left {path.relative_to(root)} as it is: it was not written by this.")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            lines.append(f"{'Rewrote' if path.exists() else 'Wrote'} {path.relative_to(root)}")
            path.write_text(text, encoding="utf-8")
    return lines


def _is_generated(path: Path) -> bool:
    """Return whether the operation wrote this file."""
    return MARK in path.read_text(encoding="utf-8").partition("\n")[0]


def _version(node: Mapping[str, Any]) -> str:
    """Return `_v2` for version 2 of a model, "" for a model without versions."""
    version = node.get("version")
    return f"_v{version}" if version is not None else ""


def _text(node: Mapping[str, Any]) -> str:
    """Return the text of a model's test; a version of a model is referred to by its number."""
    version = node.get("version")
    argument = f"'{node['name']}'" + (f", v={version!r}" if version is not None else "")
    return f"{HEAD}\n{{{{ olapdb_reconciled(ref({argument})) }}}}\n"

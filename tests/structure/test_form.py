"""The form of the code: names, imports and parameters that a reader can rely on."""

from __future__ import annotations

import ast
import re
import runpy
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from olapdb.config import tuning

pytestmark = pytest.mark.feature("house")

ROOT = Path(__file__).parents[2]
LOCAL_IMPORTS_MAX = 40
FORMATTER_OFF_MAX = 20
PARAMETERS_MAX = 7
WIDE = {
    "CatalogReader.__init__": "a constructor",
    "ViewHandle.replay": "the clauses of SYSTEM REPLAY VIEW, by keyword",
    "OlapImpl.alter_column": "Alembic's signature",
    "define": "a record of a function, by keyword",
}
"""The functions of more parameters, and why each may have them."""
NO_VERBS = re.compile(
    r"`|(A|An|The|This|That|These|Those|It|If|What|Which|Whether|Where|When|Why|How|Who|Whom|As|At|By|For|From|In|Of"
    r"|On|To|With|Without|All|Any|Each|No|None|Not|Nothing)\b"
)
BOUND_FORMS = ("olapdb/plan/", "olapdb/bind/")


def _modules(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the path from the root and the syntax tree of each module."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def _functions(
    node: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield all functions in a tree with their names, which begin with their class's."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", child
            yield from _functions(child)
        else:
            own = f"{child.name}." if isinstance(child, ast.ClassDef) else prefix
            yield from _functions(child, own)


def test_no_two_public_classes_have_one_name() -> None:
    """A syntax node (`sql.Join`) may be called like what the binder makes of it (`plan.Join`), and
    the plan node Aggregate like the function; both are the field's words."""
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in _modules("olapdb", "dbt_adapter"):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path)
    twice = {name: paths for name, paths in homes.items() if len(paths) > 1}
    bound = {
        name
        for name, (first, *others) in ((n, sorted(p)) for n, p in twice.items())
        if len(others) == 1
        and first.startswith(BOUND_FORMS)
        and others[0].startswith("olapdb/sql/nodes/")
    }
    assert {name: twice[name] for name in twice.keys() - bound - {"Aggregate"}} == {}


def test_few_imports_are_inside_functions() -> None:
    found = {
        (path, statement.lineno)
        for path, tree in _modules("olapdb", "dbt_adapter")
        for _, function in _functions(tree)
        for statement in ast.walk(function)
        if isinstance(statement, ast.Import | ast.ImportFrom)
    }
    assert len(found) <= LOCAL_IMPORTS_MAX, sorted(found)


def test_few_lines_are_kept_from_the_formatter() -> None:
    off = [
        (str(path.relative_to(ROOT)), number)
        for folder in ("olapdb", "dbt_adapter", "macros", "tests", "example_project")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "# fmt: skip" in line or "# fmt: off" in line
    ]
    assert len(off) <= FORMATTER_OFF_MAX, off


def test_functions_take_few_parameters() -> None:
    wide = {
        name
        for _, tree in _modules("olapdb", "dbt_adapter")
        for name, function in _functions(tree)
        if len(_parameters(function)) > PARAMETERS_MAX
    }
    assert wide == set(WIDE)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the names of the parameters without `self` and `cls`."""
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    """A property names what it is; any other function says what it does."""
    bad = [
        (path, name, docstring.partition("\n")[0])
        for path, tree in _modules("olapdb", "dbt_adapter")
        for name, function in _functions(tree)
        if (docstring := ast.get_docstring(function))
        and NO_VERBS.match(docstring)
        and not name.endswith(".__init__")
        and not any("property" in ast.unparse(d) for d in function.decorator_list)
    ]
    assert not bad


def test_measured_sizes_exist() -> None:
    cases = runpy.run_path(str(ROOT / "tests/benchmarks/thresholds.py"))["CASES"]
    named = {name for case in cases.values() for values in case.values.values() for name in values}
    assert [name for name in named | set(cases) if not hasattr(tuning, name)] == []


ONE_HOME = {
    r"\bwrite_part\(": {"commit/staging.py", "ingest/block_writer.py", "storage/writer.py"},
    r"\bcatalog\.apply\(": {
        "commit/draft.py",
        "maintenance/rebuild_catalog.py",  # there is no statement
        "statements/temporary_tables.py",  # a catalog of the session's own
    },
    r"(?i)range\((?!READ_)[\w.]*attempts_max": {
        "commit/retry.py",
        "views/jobs/backfill_pass.py",  # its rounds keep the chunks that are computed
    },
    r"The target of view .* does not exist": {"model/snapshot.py"},
    r"cast\(\"?Snapshot\b": set[str](),
    r"isinstance\([^)]*Sqlite": set[str](),
    r"int\(str\(\w*\.?settings": set[str](),
    r"268_402_944": {"config/write_settings.py"},
    r"statement\[:": {"commit/origin.py"},
}
"""What had been written several times and had drifted, and the files that may have it now."""


@pytest.mark.parametrize("pattern", ONE_HOME)
def test_a_mechanism_has_one_home(pattern: str) -> None:
    homes = {
        str(path.relative_to(ROOT / "olapdb"))
        for path in (ROOT / "olapdb").rglob("*.py")
        if re.search(pattern, path.read_text())
    }
    assert homes == ONE_HOME[pattern]

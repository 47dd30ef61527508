"""The form of the code: names, imports and parameters that a reader can rely on."""

from __future__ import annotations

import ast
import re
import runpy
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
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


@dataclass(frozen=True)
class _Function:
    """A function of the code: where it stands and what its head says. `imports` are the lines of imports inside it."""

    path: str
    name: str
    parameters: int
    docstring: str
    is_property: bool
    imports: frozenset[int]


@cache
def _code() -> tuple[tuple[_Function, ...], Mapping[str, Sequence[str]]]:
    """Return all functions of the package and the adapter, and the paths that define each public class."""
    functions = []
    classes: defaultdict[str, list[str]] = defaultdict(list)
    for folder in ("olapdb", "dbt_adapter"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            path, tree = str(file.relative_to(ROOT)), ast.parse(file.read_text())
            functions += [_described(path, name, node) for name, node in _functions(tree)]
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    classes[node.name].append(path)
    return tuple(functions), classes


def _described(path: str, name: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> _Function:
    """Return what the tests ask of a function."""
    lines = (
        part.lineno for part in ast.walk(node) if isinstance(part, ast.Import | ast.ImportFrom)
    )
    properties = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    docstring = ast.get_docstring(node) or ""
    return _Function(path, name, len(_parameters(node)), docstring, properties, frozenset(lines))


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


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the names of the parameters without `self` and `cls`."""
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def test_no_two_public_classes_have_one_name() -> None:
    """A syntax node (`sql.Join`) may be called like what the binder makes of it (`plan.Join`), and
    the plan node Aggregate like the function; both are the field's words."""
    _, classes = _code()
    twice = {name: paths for name, paths in classes.items() if len(paths) > 1}
    bound = {
        name
        for name, (first, *others) in ((n, sorted(p)) for n, p in twice.items())
        if len(others) == 1
        and first.startswith(BOUND_FORMS)
        and others[0].startswith("olapdb/sql/nodes/")
    }
    assert {name: twice[name] for name in twice.keys() - bound - {"Aggregate"}} == {}


def test_few_imports_are_inside_functions() -> None:
    functions, _ = _code()
    local = {(function.path, line) for function in functions for line in function.imports}
    assert len(local) <= LOCAL_IMPORTS_MAX, sorted(local)


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
    functions, _ = _code()
    wide = {function.name for function in functions if function.parameters > PARAMETERS_MAX}
    assert wide == set(WIDE)


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    """A property names what it is; any other function says what it does."""
    functions, _ = _code()
    bad = [
        (function.path, function.name, function.docstring.partition("\n")[0])
        for function in functions
        if NO_VERBS.match(function.docstring)
        and not function.name.endswith(".__init__")
        and not function.is_property
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

"""The features of olapdb and the test files of each; `tests/README.md` is made from them.

    python -m tests.features        writes the README anew

A test file names its features once:

    pytestmark = pytest.mark.feature("replay", "joins in views")
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

TESTS = Path(__file__).parent
README = TESTS / "README.md"
FEATURES: Mapping[str, str] = {
    # what users ask for
    "select": "queries: joins, groups, windows, subqueries, order, limits",
    "functions": "scalar functions, casts, lambdas",
    "aggregates": "aggregate functions, their states and combinators",
    "types": "data types, literals, stored values and their conversions",
    "sql": "the parser, the formatter, errors of syntax",
    "insert": "INSERT in every form, blocks, defaults, constraints, deduplication",
    "engines": "MergeTree engines, FINAL, merges, sorting and partition keys, skip indexes",
    "changes": "DELETE, UPDATE, mutations, TRUNCATE, TTL, partition commands",
    "schema": "CREATE, ALTER, RENAME, EXCHANGE, DROP and UNDROP of tables and databases",
    "formats": "formats of input and output, files",
    "introspection": "system tables, information_schema, SHOW, DESCRIBE, EXPLAIN",
    "settings": "settings, limits, read-only mode, memory, cancelling",
    # materialized views
    "views": "CREATE and ALTER of materialized views, triggers, chains, shared targets",
    "provability": "what makes a view provable, verdicts, EXPLAIN VIEW",
    "dimensions": "views that join tables, and what changes of these mean",
    "backfill": "SYSTEM BACKFILL VIEW, chunks, jobs",
    "replay": "SYSTEM REPLAY VIEW, stale and retained slices",
    "reconcile": "SYSTEM RECONCILE VIEW, bypassed rows, ADOPT, mend",
    "rebuild": "SYSTEM REBUILD VIEW, ROLLBACK, versions",
    # what holds it together
    "commits": "the catalog, commits, conflicts, leases, snapshots, the protocol's model",
    "crashes": "kill -9, failing system calls, torn writes, full disks",
    "upkeep": "merges in the background, vacuum, backup, CHECK, damaged parts, rebuild of a catalog",
    "storage": "part files, inline parts, checksums, statistics",
    "concurrency": "several threads and processes, load, fairness",
    # the ways in
    "python": "the PEP 249 connection, Arrow, pandas, parameters",
    "sqlalchemy": "the SQLAlchemy dialect",
    "dbt": "the dbt adapter",
    "spark": "PySpark: reading, writing, jobs",
    "house": "the structure of the code, packaging, the harness of the tests themselves",
}
HEAD = """# Tests

Which files test a feature. This page is made from the `feature` markers of the test files by
`python -m tests.features`; a test checks that it is current.

| folder | what is in it |
|---|---|
| `unit` | one module or statement at a time; `make check` runs these |
| `sql` | `*.slt`: statements with ClickHouse's answers, under six configurations |
| `oracle` | comparisons with ClickHouse (chDB) that need more than a file of statements |
| `property`, `definitions`, `schedules` | examples drawn at random, against models of their own |
| `protocol` | an exhaustive model of the commit protocol, replayed on the engine; planted faults |
| `faults` | processes that are killed, system calls that fail |
| `load` | many writers and readers at once |
| `scenarios` | stories of users |
| `contract` | public suites: DB-API, dbt, SQLAlchemy, Spark |
| `structure` | imports, packaging |

There are four models, each as fine as what it judges: `protocol/model.py` knows commits and
requirements, `schedules/` statements of several sessions, `property/tables_model.py` the rows of one
table, `definitions/truth.py` what any view should hold.
"""


def files_of_tests() -> Iterator[Path]:
    """Find every test file, in order."""
    yield from sorted(TESTS.rglob("test_*.py"))


def features_of(path: Path) -> Sequence[str]:
    """Read the features that a test file names; none where it has no marker."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            for call in ast.walk(node.value):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.feature":
                    return [str(ast.literal_eval(argument)) for argument in call.args]
    return ()


def readme() -> str:
    """Write out the README: for each feature the files that name it, by folder."""
    files: defaultdict[str, list[Path]] = defaultdict(list)
    for path in files_of_tests():
        for feature in features_of(path):
            files[feature].append(path.relative_to(TESTS))
    lines = [HEAD]
    for feature, subject in FEATURES.items():
        folders: defaultdict[str, list[str]] = defaultdict(list)
        for path in files[feature]:
            folders[str(path.parent)].append(path.stem.removeprefix("test_"))
        listed = [f"- `{folder}`: {', '.join(names)}" for folder, names in sorted(folders.items())]
        lines += [f"## {feature}", "", f"{subject[0].upper()}{subject[1:]}.", "", *listed, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    README.write_text(readme())

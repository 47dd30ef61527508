"""Functions that read the moment, the query or chance declare it: a view with one is not provable."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import olapdb.functions
from olapdb.functions import resolve_scalar
from olapdb.functions.base import Argument, Environment
from olapdb.types import STRING, UINT64

VOLATILE_FIELDS = {
    "now_seconds",
    "query_id",
    "database",
    "random_seed",
    "opened_seconds",
    "warehouse_id",
}
HOMES = {"misc.py", "date_moments.py"}
"""Where functions of these are; the test below asks each of them."""

VOLATILE = [
    "now",
    "now64",
    "today",
    "yesterday",
    "rand",
    "rand64",
    "generateUUIDv4",
    "queryID",
    "initialQueryID",
    "uptime",
    "serverUUID",
    "currentDatabase",
    "currentUser",
    "hostName",
]


def test_the_environment_is_read_in_two_modules_only() -> None:
    """`zone` is frozen in a view; what else an environment holds is another one each time."""
    fields = set(Environment.__dataclass_fields__)
    assert fields == VOLATILE_FIELDS | {"zone"}
    folder = Path(olapdb.functions.__file__).parent
    found = {
        path.name
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in VOLATILE_FIELDS
    }
    assert found == HOMES


@pytest.mark.parametrize("name", VOLATILE)
def test_what_reads_it_is_not_pure(name: str) -> None:
    assert resolve_scalar(name, []).volatility != "pure"


@pytest.mark.parametrize(
    ("name", "arguments"), [("now", 1), ("rand", 1), ("generateUUIDv4", 1), ("now64", 1)]
)
def test_arguments_do_not_make_it_pure(name: str, arguments: int) -> None:
    import pyarrow as pa

    kind = {"now": (STRING, "UTC"), "now64": (UINT64, 3)}.get(name, (UINT64, 1))
    given = [Argument(kind[0], pa.scalar(kind[1], kind[0].arrow))] * arguments
    assert resolve_scalar(name, given).volatility != "pure"

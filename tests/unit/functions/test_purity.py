"""Functions that read the clock, the query or random numbers declare it: no view with one is provable."""

from __future__ import annotations

import ast
from pathlib import Path

import pyarrow as pa
import pytest

import olapdb.functions
from olapdb.functions import resolve_scalar
from olapdb.functions.base import Argument, Environment
from olapdb.types import FLOAT64, STRING, UINT64

pytestmark = pytest.mark.feature("functions")

VOLATILE_FIELDS = {
    "now_seconds",
    "query_id",
    "database",
    "random_seed",
    "opened_seconds",
    "warehouse_id",
}
READERS = {
    "datetime/construction.py",
    "introspection/blocks.py",
    "introspection/environment.py",
    "numeric/random.py",
}
"""The modules that read these fields; `VOLATILE` has a function of each."""

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
    "blockNumber",
    "nowInBlock64",
    "UTCTimestamp",
    "currentQueryID",
    "initialQueryStartTime",
    "tid",
]


def test_only_four_modules_read_the_environment() -> None:
    """A view freezes `zone`, and is refused under `stored_zone`, which its own class alone reads; `changed` is
    part of the call itself; all other fields of an environment differ from run to run."""
    fields = set(Environment.__dataclass_fields__)
    assert fields == VOLATILE_FIELDS | {"zone", "stored_zone", "changed"}
    folder = Path(olapdb.functions.__file__).parent
    readers = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in VOLATILE_FIELDS | {"stored_zone"}
    }
    assert readers - {"base.py"} == READERS


@pytest.mark.parametrize("name", VOLATILE)
def test_functions_that_read_the_environment_are_not_pure(name: str) -> None:
    assert resolve_scalar(name, []).volatility != "pure"


@pytest.mark.parametrize(
    ("name", "arguments"), [("now", 1), ("rand", 1), ("generateUUIDv4", 1), ("now64", 1)]
)
def test_arguments_do_not_make_them_pure(name: str, arguments: int) -> None:
    kind = {"now": (STRING, "UTC"), "now64": (UINT64, 3)}.get(name, (UINT64, 1))
    given = [Argument(kind[0], pa.scalar(kind[1], kind[0].arrow))] * arguments
    assert resolve_scalar(name, given).volatility != "pure"


def test_flipped_bits_are_drawn_for_each_row() -> None:
    share = Argument(FLOAT64, pa.scalar(0.5))
    assert resolve_scalar("fuzzBits", [Argument(STRING), share]).volatility == "row"

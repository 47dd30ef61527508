"""Functions that an ALTER to a wider integer leaves as they are: the same result for each width.

A function that is not listed makes the views that apply it to the column stale."""

from __future__ import annotations

import re

import pytest

import olapdb
from olapdb.lineage.type_change import _AGGREGATES_BY_VALUE, _BY_VALUE

pytestmark = pytest.mark.feature("schema")

WIDTHS = {
    "[0, 7, 200]": ("UInt8", "UInt16", "UInt32", "UInt64"),
    "[0, 7, -5, -128]": ("Int8", "Int16", "Int32", "Int64"),
}
CALLS = (
    "f(x)",
    "f(x, 3)",
    "f(3, x)",
    "f(x, x)",
    "f(x, -3)",
    "f('abcdef', x)",
    "f('abcdef', 2, x)",
    "f([x, 3], x)",
    "f(x, [x, 2])",
    "f(x > 3, x, 5)",
    "f(x > 3, x, -1.5)",
    "f(x, toUInt64(18446744073709551615))",
    "f(x, toInt64(-9000000000000000000))",
    "f(toDateTime(0), x)",
    "f(x, 2, '.')",
)
AGGREGATES = ("f(x)", "f(x, x)", "f([x], [x])", "fIf(x, x > 500)", "f(0.5)(x)")


def results(
    connection: olapdb.Connection, name: str, call: str, values: str
) -> list[tuple[str, ...]]:
    """Return the texts of the call of the function, for each value one of each width of x; [] where
    it is refused."""
    types = WIDTHS[values]
    texts = [re.sub(r"\bx\b", f"x{at}", call) for at in range(len(types))]
    calls = ", ".join(f"toString({re.sub(r'^f', name, text)})" for text in texts)
    casts = ", ".join(f"CAST(v AS {kind}) AS x{at}" for at, kind in enumerate(types))
    try:
        return connection.execute(
            f"SELECT {calls} FROM (SELECT {casts} FROM (SELECT arrayJoin({values}) AS v))"
        ).fetchall()
    except olapdb.Error:
        return []


@pytest.mark.timeout(900)
@pytest.mark.parametrize("values", WIDTHS)
def test_listed_functions_give_the_same_for_each_width(values: str) -> None:
    calls = [(name, call) for name in sorted(_BY_VALUE) for call in CALLS]
    calls += [(name, call) for name in sorted(_AGGREGATES_BY_VALUE) for call in AGGREGATES]
    answered, different = set[str](), list[str]()
    with olapdb.connect() as connection:
        for name, call in calls:
            for row in results(connection, name, call, values):
                answered.add(name)
                if len(set(row)) > 1:
                    different.append(f"{name}: {call}: {row}")
    assert not different, "\n".join(different)
    assert len(answered) > len(_BY_VALUE) * 0.8

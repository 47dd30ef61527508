"""Aggregates of ClickHouse that olapdb lacks are refused by their names, with a reason."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.functions import aggregate_names
from olapdb.functions.aggregates.names import REFUSED

pytestmark = pytest.mark.feature("functions")


@pytest.mark.parametrize("name", sorted(REFUSED))
@pytest.mark.parametrize("call", ["{}(1)", "{}If(1, 1)", "{}State(1)", "{}(1) OVER ()"])
def test_a_refused_aggregate_is_named(name: str, call: str) -> None:
    previews = "enable_time_series_aggregate_functions = 1"
    statement = f"SELECT {call.format(name)} SETTINGS {previews}"
    with olapdb.connect() as connection, pytest.raises(olapdb.NotSupportedError) as error:
        connection.execute(statement)
    assert name in str(error.value)
    assert REFUSED[name] in str(error.value)


def test_no_refused_aggregate_is_there() -> None:
    assert not {name.lower() for name in REFUSED} & {name.lower() for name in aggregate_names()}

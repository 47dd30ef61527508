"""Scalar functions of ClickHouse that olapdb lacks are refused by their names, with a reason."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.functions import function_names
from olapdb.functions.refused import REFUSED

pytestmark = pytest.mark.feature("functions")


def test_a_refused_function_is_named() -> None:
    with olapdb.connect() as connection:
        for name, reason in REFUSED.items():
            with pytest.raises(olapdb.NotSupportedError) as error:
                connection.execute(f"SELECT {name}(1)")
            assert f"{name} is not supported: {reason}." in str(error.value)


def test_no_refused_function_is_there() -> None:
    assert not set(REFUSED) & set(function_names())


def test_an_unknown_function_stays_unknown() -> None:
    with olapdb.connect() as connection, pytest.raises(olapdb.ProgrammingError) as error:
        connection.execute("SELECT no_such_function(1)")
    assert "does not exist" in str(error.value)


@pytest.mark.parametrize("name", ["toStartOfInterval", "date_bin", "time_bucket"])
def test_a_setting_that_a_function_does_not_know_is_refused(name: str) -> None:
    query = f"SELECT {name}(toDate32('1930-05-06'), INTERVAL 1 WEEK)"
    with olapdb.connect() as connection:
        connection.execute(query)
        with pytest.raises(olapdb.NotSupportedError, match=f"is not supported for {name}"):
            connection.execute(
                f"{query} SETTINGS enable_extended_results_for_datetime_functions = 1"
            )

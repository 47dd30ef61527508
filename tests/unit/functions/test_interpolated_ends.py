"""Interpolated quantiles at the ends of integer types, where ClickHouse wraps around."""

from __future__ import annotations

import warnings

import pytest

import olapdb

pytestmark = pytest.mark.feature("aggregates")

ENDS = (
    ("toInt64(9223372036854775807)", 9223372036854775807),
    ("toInt64(-9223372036854775808)", -9223372036854775808),
    ("toUInt64(18446744073709551615)", 18446744073709551615),
    ("toUInt8(255)", 255),
    ("toInt32(-2147483648)", -2147483648),
)


@pytest.mark.parametrize(("value", "answer"), ENDS)
def test_the_median_of_the_greatest_number_is_this_number(value: str, answer: int) -> None:
    with olapdb.connect() as connection, warnings.catch_warnings():
        warnings.simplefilter("error")
        query = f"SELECT medianInterpolatedWeighted({value}, number + 1) FROM numbers(3)"
        assert connection.execute(query).fetchall() == [(answer,)]


def test_an_average_of_an_endless_half_life_warns_of_nothing() -> None:
    query = "SELECT exponentialMovingAverage(18446744073709551615)(0, number) FROM numbers(3)"
    with olapdb.connect() as connection, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert connection.execute(query).fetchall() == [(0.0,)]

"""Errors about a clause of CREATE TABLE name the clause."""

from __future__ import annotations

import pickle

import pytest

import olapdb

pytestmark = pytest.mark.feature("schema")


@pytest.mark.parametrize(
    ("element", "clauses", "expected"),
    [
        ("", "PARTITION BY toYYYYMM(q) ORDER BY d", "PARTITION BY toYYYYMM(q): Unknown column"),
        ("", "ORDER BY (d, q)", "ORDER BY q: Unknown column"),
        ("", "ORDER BY d TTL q + INTERVAL 1 DAY", "TTL q + toIntervalDay(1): Unknown column"),
        (", PROJECTION p (SELECT q ORDER BY q)", "ORDER BY d", "PROJECTION p: Unknown column"),
        (", INDEX i q TYPE minmax", "ORDER BY d", "INDEX i: Unknown column"),
        (", CONSTRAINT c CHECK q > 0", "ORDER BY d", "CONSTRAINT c: Unknown column"),
    ],
)
def test_an_error_names_its_clause(element: str, clauses: str, expected: str) -> None:
    text = f"CREATE TABLE t (d Date{element}) ENGINE = MergeTree {clauses}"
    with olapdb.connect() as connection, pytest.raises(olapdb.Error) as caught:
        connection.execute(text)
    error = caught.value
    assert error.message.startswith(expected)
    assert error.name == "UNKNOWN_IDENTIFIER"
    # A position is a place in the statement, or there is none.
    assert error.position is None or text[error.position.offset :].startswith("q")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)

"""DROP of several tables and views is one commit: all of them are dropped, or none."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.errors import HaveDependentObjects, UnknownTable

pytestmark = pytest.mark.feature("schema")


def warehouse() -> olapdb.Connection:
    connection = olapdb.connect()
    for statement in (
        "create table s (a UInt32) engine = MergeTree order by a",
        "create table t (a UInt32) engine = MergeTree order by a",
        "create materialized view mv to t as select a from s",
        "create view r as select a from t",
    ):
        connection.execute(statement)
    return connection


def names(connection: olapdb.Connection) -> set[str]:
    rows = connection.execute("select name from system.tables where database = 'default'")
    return {name for (name,) in rows.fetchall()}


def commits(connection: olapdb.Connection) -> int:
    return int(connection.execute("select max(number) from system.snapshots").fetchall()[0][0])


def test_a_view_and_its_target_in_one_commit_in_any_order() -> None:
    connection = warehouse()
    before = commits(connection)
    connection.execute("drop table t, r, mv")
    assert commits(connection) == before + 1
    assert names(connection) == {"s"}
    connection.execute("undrop table t")
    assert names(connection) == {"s", "t"}


def test_nothing_is_dropped_if_one_cannot_be() -> None:
    connection = warehouse()
    with pytest.raises(UnknownTable):
        connection.execute("drop table mv, missing")
    connection.execute("create table u (a UInt32) engine = MergeTree order by a")
    connection.execute("create materialized view mv2 to u as select a from t")
    with pytest.raises(HaveDependentObjects, match="mv2"):
        connection.execute("drop table r, mv, t")
    assert names(connection) == {"s", "t", "u", "mv", "mv2", "r"}
    connection.execute("drop table if exists mv2, missing, mv, t")
    assert names(connection) == {"s", "r", "u"}


def test_versions_of_a_view_go_along() -> None:
    connection = warehouse()
    connection.execute("system rebuild view mv as select a + 1 as a from s")
    connection.execute("drop table mv, mv__v1, t, r")
    assert names(connection) == {"s"}

"""Orphans whose targets have one name in several databases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from dbt.adapters.olapdb.incremental_mv.operations.orphans import find_orphans
from dbt.adapters.olapdb.incremental_mv.warehouse import COMMENT_KEY, Warehouse

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("dbt")


class RawWarehouse(Warehouse):
    """A warehouse that asks a connection of its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, sql: str) -> list[dict[str, Any]]:
        cursor = self._connection.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


class EmptyProject:
    """The project `shop`, whose models are all gone."""

    def models(self) -> dict[str, object]:
        return {}

    def relations(self) -> set[tuple[str, str]]:
        return set()

    def packages(self) -> set[str]:
        return {"shop"}

    def materialized_as(self, unique_id: str) -> None:
        return None


@pytest.fixture
def connection() -> Iterator[Connection]:
    """Give two databases with a target `visits__target` each, and a source."""
    with olapdb.connect() as opened:
        opened.execute("CREATE TABLE s (k UInt8) ENGINE = MergeTree ORDER BY k")
        for database in ("a", "b"):
            opened.execute(f"CREATE DATABASE {database}")
            opened.execute(
                f"CREATE TABLE {database}.visits__target (k UInt8) ENGINE = MergeTree ORDER BY k"
            )
        yield opened


def trigger(connection: Connection, name: str, target: str, source: str = "default.s") -> None:
    """Create a trigger as dbt does, with its model in the comment."""
    comment = json.dumps({COMMENT_KEY: {"model": f"model.shop.{name.replace('.', '_')}"}})
    connection.execute(
        f"CREATE MATERIALIZED VIEW {name} TO {target} AS SELECT k FROM {source} COMMENT '{comment}'"
    )


def orphans(connection: Connection) -> list[tuple[str, tuple[str, ...]]]:
    """Return the triggers and relations of the orphans, in the order of their drop."""
    found = find_orphans(RawWarehouse(connection), EmptyProject(), ["a", "b"])  # type: ignore[arg-type]
    return [(f"{orphan.database}.{orphan.trigger}", orphan.relations) for orphan in found]


def test_a_target_in_another_database_does_not_take_one_of_its_name_along(
    connection: Connection,
) -> None:
    trigger(connection, "a.visits__mv", "b.visits__target")
    connection.execute(
        "CREATE MATERIALIZED VIEW a.own TO a.visits__target AS SELECT k FROM default.s"
    )
    assert orphans(connection) == [("a.visits__mv", ("visits__mv",))]


def test_a_reader_of_another_database_goes_first(connection: Connection) -> None:
    trigger(connection, "a.visits__mv", "a.visits__target")
    trigger(connection, "b.visits__mv", "b.visits__target", "a.visits__target")
    relations = ("visits__mv", "visits__target")
    assert orphans(connection) == [("b.visits__mv", relations), ("a.visits__mv", relations)]

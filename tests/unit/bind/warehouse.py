"""A small catalog that the tests of binder and optimizer share."""

from __future__ import annotations

import datetime

from olapdb.bind import BindScope, bind_query
from olapdb.bind.scope import Parameters
from olapdb.functions.base import Environment
from olapdb.model.schema import Column, MaterializedView, View
from olapdb.plan.nodes import Field, Plan
from olapdb.sql.parser import parse_query
from olapdb.types import DATE, DATETIME, FLOAT64, INT32, STRING, UINT32, UINT64
from tests.harness.fake_snapshot import FakeSnapshot, table

FLIGHTS = table(
    "flights",
    {"day": DATE, "carrier": STRING, "origin": STRING, "delay": INT32, "distance": FLOAT64},
    order_by=["carrier", "day"],
)
CARRIERS = table("carriers", {"carrier": STRING, "name": STRING}, order_by=["carrier"])
COMPUTED = table(
    "computed",
    [
        Column(1, "t", DATETIME),
        Column(2, "day", DATE, "MATERIALIZED", "toDate(t)"),
        Column(3, "next", DATE, "ALIAS", "day + 1"),
        Column(4, "after_next", DATE, "ALIAS", "next + 1"),
        Column(5, "input", STRING, "EPHEMERAL", "''"),
    ],
    order_by=["t"],
)
TARGET = table(
    "target",
    {"carrier": STRING, "n": UINT64, "extra": UINT32},
    engine="SummingMergeTree",
    order_by=["carrier"],
)
VIEW = View(
    "view",
    "default",
    "late",
    (Column(1, "carrier", STRING), Column(2, "minutes", INT32)),
    "SELECT carrier, delay FROM default.flights WHERE delay > 0",
)
MATERIALIZED = MaterializedView(
    "mv",
    "default",
    "counts",
    (Column(1, "carrier", STRING), Column(2, "n", UINT64)),
    "SELECT carrier, count() AS n FROM default.flights GROUP BY carrier",
    FLIGHTS.id,
    TARGET.id,
)
DICTIONARY = View(
    "dictionary",
    "default",
    "named",
    (Column(1, "carrier", STRING), Column(2, "name", STRING)),
    "SELECT carrier, name FROM default.carriers",
    dictionary="CREATE DICTIONARY named (carrier String, name String) PRIMARY KEY carrier"
    " SOURCE(CLICKHOUSE(TABLE 'carriers')) LAYOUT(COMPLEX_KEY_HASHED()) LIFETIME(0)",
)
OTHER = table("flights", {"id": UINT32}, order_by=["id"], database="other")
SNAPSHOT = FakeSnapshot(FLIGHTS, CARRIERS, COMPUTED, TARGET, VIEW, MATERIALIZED, DICTIONARY, OTHER)


def system_tables(database: str, name: str) -> tuple[Field, ...] | None:
    if (database, name) == ("system", "tables"):
        return (Field("database", STRING), Field("name", STRING), Field("total_rows", UINT64))
    return None


def scope(parameters: Parameters = (), **settings: bool | int | str) -> BindScope:
    now = datetime.datetime(2013, 6, 1, tzinfo=datetime.UTC).timestamp()
    return BindScope(
        SNAPSHOT, "default", settings, Environment(now_seconds=now), parameters, system_tables
    )


def bind(query: str, parameters: Parameters = (), **settings: bool | int | str) -> Plan:
    return bind_query(parse_query(query), scope(parameters, **settings))

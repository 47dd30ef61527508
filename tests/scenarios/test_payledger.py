"""The story of PayLedger: balances of merchants that always equal a replay of all events.

Captures, refunds, payouts and chargebacks arrive twice, late and out of order; each counts once.
Reserves follow policies by the merchants' segment, with effective dates. When a policy changes from
10 % to 15 %, starting three days ago, only the balances of those merchants on those days become
stale, by name. They are replayed while readers see the old or the new balances, never a mix."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import OffsetHole
from olapdb.maintenance.check import check_database
from olapdb.result import InsertedRows

pytestmark = pytest.mark.feature("views")

TABLES = (
    """
    CREATE TABLE payment_events (
        event_id String, merchant_id String, currency String, kind String, amount Int64,
        event_time DateTime, position UInt64
    ) ENGINE = MergeTree PARTITION BY toYYYYMM(event_time) ORDER BY (merchant_id, event_time)
    SETTINGS deduplicate_by = 'event_id', deduplicate_window = 604800
    """,
    """
    CREATE TABLE merchants (merchant_id String, segment String)
    ENGINE = MergeTree ORDER BY merchant_id
    """,
    """
    CREATE TABLE reserve_policies (
        segment String, effective_from Date, effective_to Date, percent UInt8
    ) ENGINE = MergeTree ORDER BY (segment, effective_from)
    """,
    """
    CREATE TABLE merchant_balance_daily (
        segment String, day Date, merchant_id String, currency String,
        available SimpleAggregateFunction(sum, Int64),
        pending SimpleAggregateFunction(sum, Int64),
        reserve_hold SimpleAggregateFunction(sum, Int64),
        last_event_time SimpleAggregateFunction(max, DateTime),
        watermark SimpleAggregateFunction(max, UInt64)
    ) ENGINE = AggregatingMergeTree PARTITION BY (segment, day)
    ORDER BY (segment, day, merchant_id, currency)
    """,
    """
    CREATE MATERIALIZED VIEW merchant_balance_mv TO merchant_balance_daily AS
    SELECT
        m.segment AS segment, toDate(e.event_time) AS day,
        e.merchant_id AS merchant_id, e.currency AS currency,
        sum(multiIf(e.kind = 'funds_released', e.amount,
                    e.kind IN ('refund_posted', 'payout_sent', 'chargeback_opened'), -e.amount,
                    0)) AS available,
        sum(multiIf(e.kind = 'capture_settled', e.amount,
                    e.kind = 'funds_released', -e.amount, 0)) AS pending,
        sum(multiIf(e.kind = 'capture_settled', intDiv(e.amount * p.percent, 100),
                    e.kind = 'chargeback_opened', e.amount, 0)) AS reserve_hold,
        max(e.event_time) AS last_event_time, max(e.position) AS watermark
    FROM payment_events AS e
    INNER JOIN merchants AS m ON e.merchant_id = m.merchant_id
    INNER JOIN reserve_policies AS p
        ON m.segment = p.segment
        AND toDate(e.event_time) >= p.effective_from AND toDate(e.event_time) < p.effective_to
    GROUP BY segment, day, merchant_id, currency
    """,
    """
    CREATE VIEW merchant_balance_current AS
    SELECT merchant_id, currency, sum(available) AS available_balance,
           sum(pending) AS pending_balance, sum(reserve_hold) AS reserve_hold,
           max(last_event_time) AS last_event_time, max(watermark) AS watermark
    FROM merchant_balance_daily GROUP BY merchant_id, currency
    """,
)
MERCHANTS = {"m_017": "retail", "m_200": "retail", "m_482": "marketplace", "m_483": "marketplace"}
TODAY = date(2024, 3, 9)
FOREVER = date(2149, 1, 1)
BACK = TODAY - timedelta(days=3)
POLICIES = [
    ("retail", date(2024, 1, 1), FOREVER, 5),
    ("marketplace", date(2024, 1, 1), FOREVER, 10),
]
REVISED = [
    POLICIES[0],
    ("marketplace", date(2024, 1, 1), BACK, 10),
    ("marketplace", BACK, FOREVER, 15),
]
"""The policies once the reserve of marketplaces is 15 %, starting three days ago."""
NEW_POLICY = f"""
    CREATE OR REPLACE TABLE reserve_policies (
        segment String, effective_from Date, effective_to Date, percent UInt8
    ) ENGINE = MergeTree ORDER BY (segment, effective_from) AS
    SELECT segment, effective_from,
           if(segment = 'marketplace', toDate('{BACK}'), effective_to) AS effective_to, percent
    FROM reserve_policies
    UNION ALL
    SELECT 'marketplace', toDate('{BACK}'), toDate('{FOREVER}'), 15
"""
KINDS = (
    "capture_settled",
    "capture_settled",
    "capture_settled",
    "funds_released",
    "refund_posted",
    "payout_sent",
    "chargeback_opened",
)
BALANCES = "SELECT * FROM merchant_balance_current ORDER BY merchant_id, currency"
INVALIDATED = """
    SELECT keys, cause, rows, since > now() - 60 AS recent, statement
    FROM system.view_invalidations WHERE view = 'merchant_balance_mv' ORDER BY keys
"""


@dataclass(frozen=True)
class Event:
    id: str
    merchant: str
    currency: str
    kind: str
    amount: int
    time: datetime


def stream() -> list[Event]:
    """Draw the log that a consumer reads: eight days of events, roughly in the order of their
    times, some late by days, one in eight delivered twice."""
    chance = random.Random(482)
    start = datetime(2024, 3, 2)
    arrivals: list[tuple[float, Event]] = []
    for number in range(240):
        time = start + timedelta(minutes=chance.randrange(8 * 24 * 60))
        event = Event(
            f"evt_{number}",
            chance.choice(list(MERCHANTS)),
            chance.choice(["EUR", "USD"]),
            chance.choice(KINDS),
            chance.randrange(100, 10_000),
            time,
        )
        late = timedelta(days=3) if number % 20 == 0 else timedelta(minutes=chance.randrange(300))
        arrivals.append(((time + late).timestamp(), event))
        if number % 8 == 0:
            again = time + late + timedelta(minutes=chance.randrange(2_000))
            arrivals.append((again.timestamp(), event))
    return [event for _, event in sorted(arrivals, key=lambda one: one[0])]


def deliver(connection: Connection, log: Sequence[Event], first: int, after: int) -> InsertedRows:
    """Insert positions `first` to `after` (exclusive) of the log, with one INSERT."""
    batch = list(enumerate(log))[first:after]
    data = {
        "event_id": [e.id for _, e in batch],
        "merchant_id": [e.merchant for _, e in batch],
        "currency": [e.currency for _, e in batch],
        "kind": [e.kind for _, e in batch],
        "amount": [e.amount for _, e in batch],
        "event_time": [e.time for _, e in batch],
        "position": [position for position, _ in batch],
    }
    return connection.insert("payment_events", data, offsets={"payments-0": (first, after)})


def folded(
    log: Sequence[Event], policies: Sequence[tuple[str, date, date, int]]
) -> list[tuple[Any, ...]]:
    """Compute the balances by replaying all events, one by one, in plain Python."""
    rows: dict[tuple[str, str], list[Any]] = defaultdict(lambda: [0, 0, 0, datetime.min, 0])
    seen: set[str] = set()
    for position, event in enumerate(log):
        if event.id in seen:
            continue
        seen.add(event.id)
        row = rows[event.merchant, event.currency]
        percent = next(
            rate
            for segment, since, until, rate in policies
            if segment == MERCHANTS[event.merchant] and since <= event.time.date() < until
        )
        match event.kind:
            case "capture_settled":
                row[1] += event.amount
                row[2] += event.amount * percent // 100
            case "funds_released":
                row[0] += event.amount
                row[1] -= event.amount
            case "chargeback_opened":
                row[0] -= event.amount
                row[2] += event.amount
            case _:
                row[0] -= event.amount
        row[3] = max(row[3], event.time)
        row[4] = max(row[4], position)
    return [
        (*key, available, pending, hold, time.replace(tzinfo=None), watermark)
        for key, (available, pending, hold, time, watermark) in sorted(rows.items())
    ]


def ask(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(query).fetchall()]


def balances(connection: Connection) -> list[tuple[Any, ...]]:
    return [
        tuple(v.replace(tzinfo=None) if isinstance(v, datetime) else v for v in row)
        for row in ask(connection, BALANCES)
    ]


def verdict(connection: Connection) -> str:
    return str(ask(connection, "SELECT verdict FROM system.views")[0][0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    where = tmp_path / "payledger"
    with olapdb.connect(where) as connection:
        for text in TABLES:
            connection.execute(text)
        segments = ", ".join(f"('{m}', '{s}')" for m, s in MERCHANTS.items())
        connection.execute(f"INSERT INTO merchants VALUES {segments}")
        rules = ", ".join(f"('{s}', '{a}', '{b}', {p})" for s, a, b, p in POLICIES)
        connection.execute(f"INSERT INTO reserve_policies VALUES {rules}")
    return where


@pytest.fixture
def connection(folder: Path) -> Iterator[Connection]:
    with olapdb.connect(folder) as opened:
        opened.execute("SYSTEM STOP MERGES")
        yield opened


def test_events_that_come_twice_late_and_out_of_order_count_once(connection: Connection) -> None:
    log = stream()
    dropped = 0
    for first in range(0, len(log), 35):
        done = deliver(connection, log, first, min(first + 35, len(log)))
        dropped += done.duplicates_dropped
        assert balances(connection) == folded(log[: first + 35], POLICIES)
    assert dropped == 30
    assert ask(connection, "SELECT count(), uniqExact(event_id) FROM payment_events") == [
        (240, 240)
    ]
    assert ask(connection, "SELECT keys_held, rows_dropped FROM system.deduplication") == [
        (240, 30)
    ]
    assert verdict(connection) == "covered"
    connection.execute("SYSTEM RECONCILE VIEW merchant_balance_mv")
    assert verdict(connection) == "proven"


def test_a_consumer_that_starts_again_goes_on_where_the_table_stands(folder: Path) -> None:
    """The consumer stopped after an INSERT, before it stored its position. It asks, or sends
    again."""
    log = stream()
    with olapdb.connect(folder) as connection:
        deliver(connection, log, 0, 60)
        deliver(connection, log, 60, 100)
    with olapdb.connect(folder) as connection:
        connection.execute("SET max_insert_block_size = 7")
        again = deliver(connection, log, 60, 100)
        assert (again, again.duplicate) == (0, True)
        with pytest.raises(
            OffsetHole,
            match=r"Stream payments-0 of default\.payment_events stands at"
            r" 100, the INSERT begins at 120: 20 are missing",
        ):
            deliver(connection, log, 120, 150)
        position = ask(connection, "SELECT position FROM system.source_offsets")[0][0]
        deliver(connection, log, int(position), len(log))
        assert balances(connection) == folded(log, POLICIES)
        newest = max(row[-1] for row in balances(connection))
        offsets = ask(connection, "SELECT stream, position FROM system.source_offsets")
        assert offsets == [("payments-0", len(log))]
        assert newest < len(log)  # no balance counts an event that the table lacks


def test_a_policy_of_three_days_ago_reaches_just_those_merchants_and_days(
    connection: Connection,
) -> None:
    log = stream()
    deliver(connection, log, 0, len(log))
    before, after = folded(log, POLICIES), folded(log, REVISED)
    assert before != after
    connection.execute(NEW_POLICY)

    # One query lists which balances are stale and why.
    stale = ask(connection, INVALIDATED)
    assert {(cause, recent, statement) for _, cause, _, recent, statement in stale} == {
        ("DIMENSION CHANGE", True, NEW_POLICY)
    }
    captures = {
        (event.time.date(), event.merchant, event.currency)
        for event in log
        if event.kind == "capture_settled" and MERCHANTS[event.merchant] == "marketplace"
    }
    expected = {f"(marketplace, {d}, {m}, {c})" for d, m, c in captures if d >= BACK}
    assert {key for keys, *_ in stale for key in keys} == expected
    assert len(stale) == len({d for d, _, _ in captures if d >= BACK})
    assert verdict(connection) == "stale"
    assert balances(connection) == before

    # Other slices keep their parts, and readers see the old balances or the new ones.
    parts = "SELECT partition, name FROM system.parts WHERE table = 'merchant_balance_daily'"
    untouched = {p for p in ask(connection, parts) if not _reached(p[0])}
    seen = _balances_read_during(connection, "SYSTEM REPLAY VIEW merchant_balance_mv STALE")
    assert all(one in (before, after) for one in seen)
    assert seen[0] == before
    assert seen[-1] == after
    assert untouched <= set(ask(connection, parts))

    assert ask(connection, INVALIDATED) == []
    connection.execute("SYSTEM RECONCILE VIEW merchant_balance_mv")
    assert verdict(connection) == "proven"
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []


def test_events_that_arrive_while_balances_are_stale(connection: Connection) -> None:
    """New events fire with the new policy; the replay computes the rest afterwards."""
    log = stream()
    deliver(connection, log, 0, 150)
    connection.execute(NEW_POLICY)
    deliver(connection, log, 150, len(log))
    assert verdict(connection) == "stale"
    connection.execute("SYSTEM REPLAY VIEW merchant_balance_mv STALE")
    assert balances(connection) == folded(log, REVISED)
    assert verdict(connection) == "covered"


def test_a_policy_that_says_the_same_makes_nothing_stale(connection: Connection) -> None:
    """A dbt run replaces the policy table by equal rows."""
    log = stream()
    deliver(connection, log, 0, 100)
    connection.execute(
        "CREATE OR REPLACE TABLE reserve_policies (segment String, effective_from Date,"
        " effective_to Date, percent UInt8) ENGINE = MergeTree ORDER BY (segment, effective_from)"
        " AS SELECT * FROM reserve_policies ORDER BY percent DESC"
    )
    assert ask(connection, INVALIDATED) == []
    assert verdict(connection) == "covered"


def _reached(partition: str) -> bool:
    """Return whether the policy reaches a partition, given as system.parts prints it."""
    segment, day = partition.strip("()").replace("'", "").replace(" ", "").split(",")
    return segment == "marketplace" and date.fromisoformat(day) >= BACK


def _balances_read_during(connection: Connection, statement: str) -> list[list[tuple[Any, ...]]]:
    """Run the statement; return all answers that a concurrent reader got, one before and one after
    too."""
    seen = [balances(connection)]
    done = threading.Event()
    failures: list[olapdb.Error] = []

    def read() -> None:
        try:
            while not done.is_set():
                seen.append(balances(connection))
        except olapdb.Error as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        connection.execute(statement)
    finally:
        done.set()
        reader.join()
    assert failures == []
    return [*seen, balances(connection)]

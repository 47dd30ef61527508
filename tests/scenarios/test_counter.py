"""The story of `counter` and `counter_daily`: readings of ten devices, summarized by day.

The published table holds a billion readings, ten a second from 2015 on, and ten million of 2019.
Here each reading represents a thousand: a million and ten thousand of them, over the same days, of
the same devices and values, so that the published answers result."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import Aborted, BypassRows, UnknownTable

COUNTER = """CREATE TABLE counter (
  when DateTime DEFAULT now(),
  device UInt32,
  value Float32
) ENGINE=MergeTree
ORDER BY (device, when)"""

COUNTER_DAILY = """CREATE TABLE counter_daily (
  day DateTime,
  device UInt32,
  count UInt64,
  max_value_state AggregateFunction(max, Float32),
  min_value_state AggregateFunction(min, Float32),
  avg_value_state AggregateFunction(avg, Float32)
)
ENGINE = SummingMergeTree()
ORDER BY (device, day)"""

DAILY_STATES = """SELECT
    toStartOfDay(when) as day,
    device,
    count(*) as count,
    maxState(value) AS max_value_state,
    minState(value) AS min_value_state,
    avgState(value) AS avg_value_state
FROM {source}
{where}
GROUP BY device, day
ORDER BY device, day"""

CUTOFF = "WHERE when >= toDate('2019-01-01 00:00:00')"
BEFORE_CUTOFF = "WHERE when < toDateTime('2019-01-01 00:00:00')"

SOURCE_BY_DEVICE = """SELECT
    device,
    count(*) AS count,
    max(value) AS max,
    min(value) AS min,
    avg(value) AS avg
FROM {source}
GROUP BY device
ORDER BY device"""

DAILY_BY_DEVICE = """SELECT
  device,
  sum(count) AS count,
  maxMerge(max_value_state) AS max,
  minMerge(min_value_state) AS min,
  avgMerge(avg_value_state) AS avg
FROM {target}
GROUP BY device
ORDER BY device ASC"""

PUBLISHED = [
    (1, 101000000, 100008.17, 3.008, 49515.50042561026),
    (2, 101000000, 100011.164, 6.0031, 49518.500627177054),
    (3, 101000000, 100014.17, 9.0062, 49521.50087863756),
    (4, 101000000, 100017.04, 12.0333, 49524.5006612177),
    (5, 101000000, 100020.19, 15.0284, 49527.50092650661),
    (6, 101000000, 100023.15, 18.0025, 49530.50098047898),
    (7, 101000000, 100026.195, 21.0326, 49533.50099656529),
    (8, 101000000, 100029.18, 24.0297, 49536.50119239665),
    (9, 101000000, 100031.984, 27.0258, 49539.50119958179),
    (10, 101000000, 100035.17, 30.0229, 49542.501308345716),
]
DAYS = 1158 + 12
"""Days with readings: 100,000,000 seconds from 2015 on, and 1,000,000 of 2019."""


def _rows(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


def _create_view(connection: Connection, source: str = "counter", where: str = "") -> None:
    states = DAILY_STATES.format(source=source, where=where)
    connection.execute(f"CREATE MATERIALIZED VIEW counter_daily_mv\nTO counter_daily\nAS {states}")


def _load(connection: Connection, start: str, readings: int, table: str = "counter") -> None:
    """Insert a reading every 100 seconds, of one device after the other."""
    connection.execute(
        f"""INSERT INTO {table} SELECT
            toDateTime('{start}') + toInt64(number * 100) AS when,
            (number % 10) + 1 AS device,
            (device * 3) +  (number / 10) + (rand() % 53) * 0.1 AS value
          FROM system.numbers LIMIT {readings}"""
    )


def _load_history(connection: Connection) -> None:
    _load(connection, "2015-01-01 00:00:00", 1_000_000)


def _load_2019(connection: Connection) -> None:
    _load(connection, "2019-01-01 00:00:00", 10_000)


def _view(connection: Connection) -> dict[str, object]:
    cursor = connection.execute("SELECT * FROM system.views WHERE name = 'counter_daily_mv'")
    (row,) = cursor.fetchall()
    return dict(zip([c[0] for c in cursor.description], row, strict=True))


def _assert_same(found: Sequence[Sequence[object]], expected: Sequence[Sequence[object]]) -> None:
    """Require equal rows; only averages, which add floats in another order, may differ slightly."""
    assert len(found) == len(expected) > 0
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[:-1] == theirs[:-1]
        assert ours[-1] == pytest.approx(theirs[-1], rel=1e-12)


def _assert_daily_equals_source(connection: Connection, source: str = "counter") -> None:
    _assert_same(
        _rows(connection, DAILY_BY_DEVICE.format(target="counter_daily")),
        _rows(connection, SOURCE_BY_DEVICE.format(source=source)),
    )


pytestmark = [
    pytest.mark.warehouse(COUNTER, COUNTER_DAILY, on_disk=True),
    pytest.mark.feature("views"),
]


# --- as published: a cutoff in the view, and the older rows by hand -------------------------------


def test_the_hand_made_backfill_as_published_is_named_and_then_adopted(
    connection: Connection,
) -> None:
    _load_history(connection)
    _create_view(connection, where=CUTOFF)
    assert _rows(connection, "SELECT count() FROM counter_daily") == [(0,)]

    # Data from 2019 on enters the view through its trigger; an INSERT by hand adds the older rows.
    _load_2019(connection)
    assert _rows(connection, "SELECT count(), sum(count) FROM counter_daily") == [(120, 10_000)]
    states = DAILY_STATES.format(source="counter", where=BEFORE_CUTOFF)
    connection.execute(f"INSERT INTO counter_daily {states}")

    # The query reads 11.70 thousand rows and summarizes all data, including the new rows.
    daily = connection.execute(DAILY_BY_DEVICE.format(target="counter_daily"))
    answers = daily.fetchall()
    assert daily.statistics.rows_read == DAYS * 10 == 11_700
    for ours, published in zip(answers, PUBLISHED, strict=True):
        assert ours[0] == published[0]
        assert ours[1] * 1000 == published[1]
        assert ours[2:4] == pytest.approx(published[2:4], abs=10)  # rand() of few readings
        assert ours[4] == pytest.approx(published[4], abs=1.5)
    _assert_daily_equals_source(connection)

    # Bypass rows are named: the view's WHERE excludes them, whatever they contain.
    view = _view(connection)
    assert (view["verdict"], view["bypass_rows"]) == ("bypassed", 11_580)
    assert (view["covered_rows"], view["gap_rows"]) == (10_000, 1_000_000)
    assert view["mend"] == "SYSTEM ADOPT VIEW default.counter_daily_mv"
    reconciled = connection.execute("SYSTEM RECONCILE VIEW counter_daily_mv")
    columns = [c[0] for c in reconciled.description]
    (found,) = [dict(zip(columns, row, strict=True)) for row in reconciled.fetchall()]
    assert (found["missing"], found["extra"], found["differing"]) == (0, 11_580, 0)
    assert found["verdict"] == "different"
    with pytest.raises(BypassRows, match="WHERE"):
        connection.execute("SYSTEM ADOPT VIEW counter_daily_mv")
    assert _view(connection)["bypass_rows"] == 11_580

    # The published schema migration, statement by statement. The new view has no cutoff.
    connection.execute("-- Delete view prior to schema change.\nDROP TABLE counter_daily_mv")
    connection.execute("-- Rename source table.\nRENAME TABLE counter TO counter_replicated")
    _create_view(connection, source="counter_replicated")
    view = _view(connection)
    assert (view["verdict"], view["bypass_rows"]) == ("bypassed", 11_700)
    assert view["gap_rows"] == 1_010_000

    # ADOPT proves that the new definition makes these rows of all readings.
    connection.execute(str(view["mend"]))
    view = _view(connection)
    assert (view["verdict"], view["bypass_rows"], view["gap_rows"]) == ("proven", 0, 0)
    _load(connection, "2019-01-12 18:00:00", 10_000, table="counter_replicated")
    assert _view(connection)["verdict"] == "covered"
    _assert_daily_equals_source(connection, "counter_replicated")
    reconciled = connection.execute("SYSTEM RECONCILE VIEW counter_daily_mv")
    assert {row[columns.index("verdict")] for row in reconciled.fetchall()} == {"equal"}


def test_a_million_rows_to_get_started_word_for_word(connection: Connection) -> None:
    """'If you are trying these out you can just put in a million rows': ten a second, so two days."""
    _create_view(connection)
    connection.execute(
        """INSERT INTO counter SELECT
    toDateTime('2015-01-01 00:00:00') + toInt64(number/10) AS when,
    (number % 10) + 1 AS device,
    (device * 3) +  (number/10000) + (rand() % 53) * 0.1 AS value
  FROM system.numbers LIMIT 1000000"""
    )
    assert _rows(connection, "SELECT count() FROM counter_daily") == [(20,)]
    _assert_daily_equals_source(connection)
    assert [row[1] for row in _rows(connection, SOURCE_BY_DEVICE.format(source="counter"))] == [
        100_000
    ] * 10


def test_rows_that_slip_between_cutoff_and_backfill_are_not_adopted(connection: Connection) -> None:
    """A late reading of 2018 arrives after the INSERT by hand: the view's WHERE drops it."""
    _load_history(connection)
    _create_view(connection, where=CUTOFF)
    states = DAILY_STATES.format(source="counter", where=BEFORE_CUTOFF)
    connection.execute(f"INSERT INTO counter_daily {states}")
    connection.execute("INSERT INTO counter VALUES ('2016-02-29 12:00:00', 7, 1e6)")
    connection.execute("DROP TABLE counter_daily_mv")
    _create_view(connection)

    with pytest.raises(BypassRows, match=r"7, 2016-02-29") as refused:
        connection.execute("SYSTEM ADOPT VIEW counter_daily_mv")
    assert "DISCARD BYPASS" in refused.value.hint
    assert _view(connection)["verdict"] == "bypassed"

    # Run the repair that the error names; then the late reading counts.
    connection.execute("SYSTEM REPLAY VIEW counter_daily_mv DISCARD BYPASS")
    connection.execute("SYSTEM BACKFILL VIEW counter_daily_mv")
    _assert_daily_equals_source(connection)
    connection.execute("SYSTEM RECONCILE VIEW counter_daily_mv")
    assert _view(connection)["verdict"] == "proven"


# --- the same in olapdb's way: no cutoff, no rows by hand -----------------------------------------


def test_a_backfill_needs_no_cutoff_while_readings_arrive(connection: Connection) -> None:
    _load_history(connection)
    _create_view(connection)
    view = _view(connection)
    assert (view["verdict"], view["gap_rows"]) == ("partial", 1_000_000)
    assert view["mend"] == "SYSTEM BACKFILL VIEW default.counter_daily_mv"

    arrived: list[str] = []

    def readings_arrive(event: object) -> None:
        arrived.append(event.phase)  # type: ignore[attr-defined]
        _load(connection, "2018-12-31 12:00:00", 1_000)

    connection.system(str(view["mend"]), progress=readings_arrive)
    assert {"planned", "computed", "published"} <= set(arrived)
    _load_2019(connection)

    _assert_daily_equals_source(connection)
    view = _view(connection)
    assert (view["verdict"], view["gap_rows"], view["bypass_rows"]) == ("covered", 0, 0)
    assert view["covered_rows"] == 1_010_000 + 1_000 * len(arrived)
    connection.execute("SYSTEM RECONCILE VIEW counter_daily_mv")
    assert _view(connection)["verdict"] == "proven"


def test_the_source_is_renamed_while_inserts_keep_arriving(connection: Connection) -> None:
    """There is no DROP and no moment in which rows are missed: the view follows the table, not its
    name."""
    _create_view(connection)
    _load_2019(connection)
    renamed, batches = threading.Event(), 120

    def device_sends() -> None:
        for batch in range(batches):
            if batch == batches // 2:
                renamed.wait(timeout=30)
            values = f"VALUES (toDateTime('2019-02-01 00:00:00') + {batch} * 3600, 1, {batch})"
            try:
                connection.execute(f"INSERT INTO counter {values}")
            except (UnknownTable, Aborted):  # Aborted: "Nothing was inserted; run it again."
                connection.execute(f"INSERT INTO counter_replicated {values}")

    sender = threading.Thread(target=device_sends)
    sender.start()
    connection.execute("RENAME TABLE counter TO counter_replicated")
    renamed.set()
    sender.join(timeout=60)

    assert not sender.is_alive()
    assert _rows(connection, "SELECT count() FROM counter_replicated") == [(10_000 + batches,)]
    view = _view(connection)
    assert view["source_table"] == "counter_replicated"
    assert "FROM default.counter_replicated" in str(view["as_select"])
    assert (view["verdict"], view["covered_rows"]) == ("covered", 10_000 + batches)
    _assert_daily_equals_source(connection, "counter_replicated")
    connection.execute("SYSTEM RECONCILE VIEW counter_daily_mv")
    assert _view(connection)["verdict"] == "proven"


# --- one view, many questions ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """Insert all readings in ten INSERTs, with a daily view. Tests only read this warehouse."""
    with olapdb.connect(tmp_path_factory.mktemp("counter") / "warehouse") as opened:
        opened.execute(COUNTER)
        opened.execute(COUNTER_DAILY)
        _create_view(opened)
        for year in range(5):
            _load(opened, f"{2014 + year}-12-30 00:00:00", 100_000)
            _load(opened, f"{2014 + year}-06-28 07:00:00", 100_000)
        yield opened


@pytest.mark.parametrize(
    "interval",
    [
        "toStartOfDay",
        "toStartOfWeek",
        "toMonday",
        "toStartOfMonth",
        "toStartOfQuarter",
        "toStartOfYear",
    ],
)
def test_the_daily_view_answers_for_longer_intervals(warehouse: Connection, interval: str) -> None:
    daily = _rows(
        warehouse,
        f"""SELECT {interval}(day) AS since, device, sum(count), maxMerge(max_value_state),
              minMerge(min_value_state), avgMerge(avg_value_state)
            FROM counter_daily GROUP BY since, device ORDER BY since, device""",
    )
    source = _rows(
        warehouse,
        f"""SELECT {interval}(when) AS since, device, count(), max(value), min(value), avg(value)
            FROM counter GROUP BY since, device ORDER BY since, device""",
    )
    _assert_same(daily, source)


def test_the_daily_view_answers_for_the_whole_interval(warehouse: Connection) -> None:
    daily = warehouse.execute(
        """SELECT sum(count), maxMerge(max_value_state), minMerge(min_value_state),
             avgMerge(avg_value_state) FROM counter_daily"""
    )
    source = _rows(warehouse, "SELECT count(), max(value), min(value), avg(value) FROM counter")
    _assert_same(daily.fetchall(), source)
    assert source[0][0] == 1_000_000
    assert daily.statistics.rows_read < 20_000


def test_there_is_no_difference_between_selecting_from_target_and_view(
    warehouse: Connection,
) -> None:
    assert _rows(warehouse, DAILY_BY_DEVICE.format(target="counter_daily_mv")) == _rows(
        warehouse, DAILY_BY_DEVICE.format(target="counter_daily")
    )


def test_the_sizes_of_source_target_and_view(warehouse: Connection) -> None:
    sizes = {
        str(row[0]): row
        for row in _rows(
            warehouse,
            """SELECT
              table,
              formatReadableSize(sum(data_compressed_bytes)) AS tc,
              formatReadableSize(sum(data_uncompressed_bytes)) AS tu,
              sum(data_compressed_bytes) / sum(data_uncompressed_bytes) AS ratio,
              sum(data_compressed_bytes)
            FROM system.columns
            WHERE database = currentDatabase()
            GROUP BY table""",
        )
    }
    assert set(sizes) == {"counter", "counter_daily", "counter_daily_mv"}
    assert str(sizes["counter"][1]).endswith(" MiB")
    assert str(sizes["counter_daily"][1]).endswith(" KiB")
    assert 0 < sizes["counter"][3] <= 1
    assert sizes["counter_daily_mv"][1:3] == ("0.00 B", "0.00 B")
    assert str(sizes["counter_daily_mv"][3]) == "nan"
    # A thousandth of the readings with as many rows by day: a factor of thirty, not thirty
    # thousand.
    assert sizes["counter"][4] > 10 * sizes["counter_daily"][4]


def test_an_aggregating_target_takes_the_count_as_a_state(connection: Connection) -> None:
    """As the story says of AggregatingMergeTree: countState in the view, countMerge in SELECT."""
    connection.execute(
        """CREATE TABLE counter_counted (day DateTime, device UInt32,
             count AggregateFunction(count)) ENGINE = AggregatingMergeTree
           ORDER BY (device, day)"""
    )
    connection.execute(
        """CREATE MATERIALIZED VIEW counter_counted_mv TO counter_counted AS
           SELECT toStartOfDay(when) AS day, device, countState() AS count
           FROM counter GROUP BY device, day"""
    )
    _load_2019(connection)
    _load_2019(connection)
    assert _rows(
        connection,
        "SELECT device, countMerge(count) FROM counter_counted GROUP BY device ORDER BY device",
    ) == [(device, 2_000) for device in range(1, 11)]

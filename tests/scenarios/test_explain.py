"""EXPLAIN of a query of one month shows the parts and granules that were pruned, and agrees with
the query's statistics."""

import pytest

import olapdb

pytestmark = pytest.mark.feature("views", "introspection")


@pytest.fixture
def flights(tmp_path):
    with olapdb.connect(tmp_path / "warehouse") as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute(
            "CREATE TABLE flights (day Date, carrier String, delay Int32) ENGINE = MergeTree "
            "PARTITION BY toYYYYMM(day) ORDER BY (day, carrier) SETTINGS index_granularity = 1000, inline_bytes_max = 0"
        )
        for start in (0, 36_500):
            connection.execute(
                "INSERT INTO flights SELECT toDate('2013-01-01') + intDiv(number, 100) % 365, "
                f"['AA', 'UA', 'DL'][number % 3 + 1], number % 60 FROM numbers({start}, 36500)"
            )
        yield connection


def test_a_month_reads_its_parts_only(flights):
    query = (
        "SELECT count(), sum(delay) FROM flights WHERE day >= '2013-03-01' AND day < '2013-04-01'"
    )
    lines = [row[0].strip() for row in flights.execute(f"EXPLAIN indexes = 1 {query}").fetchall()]
    assert "Parts: 2/24" in lines
    cursor = flights.execute(query)
    assert cursor.fetchone()[0] == 2 * 31 * 100
    assert cursor.statistics.parts_total == 24
    assert cursor.statistics.parts_read == 2


def test_a_day_reads_its_granules_only(flights):
    query = "SELECT count() FROM flights WHERE day = '2013-03-02' AND delay >= 0"
    cursor = flights.execute(query)
    assert cursor.fetchone() == (200,)
    assert cursor.statistics.parts_read == 2
    assert cursor.statistics.granules_read == 2
    assert cursor.statistics.rows_read <= 2000
    lines = [row[0].strip() for row in flights.execute(f"EXPLAIN indexes = 1 {query}").fetchall()]
    assert any(line.startswith("Granules: 2/") for line in lines), lines


def test_an_absent_month_reads_nothing(flights):
    cursor = flights.execute("SELECT count() FROM flights WHERE day >= '2014-01-01' AND delay > 5")
    assert cursor.fetchone() == (0,)
    assert cursor.statistics.parts_read == 0
    assert cursor.statistics.rows_read == 0

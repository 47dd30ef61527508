"""The story of sessions: a view on the target of a view, from events to sessions to days."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import IllegalAggregation, IllegalTypeOfArgument, ViewNotProvable

pytestmark = pytest.mark.feature("views")


def _rows(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


SESSIONS = """CREATE MATERIALIZED VIEW session_mv_to_table
    to session_table
    AS SELECT lp_id,
    toDate(toInt64OrZero(splitByChar('_', session_id )[1])) as date,
    session_id,
    argMinState(visitor_id, event_at) as visitor_id,
    minState(event_at) AS started_at,
    maxState(event_at) as last_event_at,
    countIfState(event = 'ButtonClick') as num_clicks,
    maxState(visitParamExtractInt(params, 'scrollPercent')) as scroll_rate
    FROM raw_events
    GROUP BY lp_id, date, session_id;"""


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Connection]:
    """Insert 20,000 events of 2,000 sessions, in four INSERTs that each hold some of every
    session."""
    with olapdb.connect(tmp_path / "warehouse") as opened:
        opened.execute(
            """CREATE TABLE raw_events (lp_id UInt32, session_id String, visitor_id String,
                 event_at DateTime, event LowCardinality(String), params String)
               ENGINE = MergeTree ORDER BY (lp_id, session_id, event_at);
               CREATE TABLE session_table (lp_id UInt32, date Date, session_id String,
                 visitor_id AggregateFunction(argMin, String, DateTime),
                 started_at AggregateFunction(min, DateTime),
                 last_event_at AggregateFunction(max, DateTime),
                 num_clicks AggregateFunction(countIf, UInt8),
                 scroll_rate AggregateFunction(max, Int64))
               ENGINE = AggregatingMergeTree ORDER BY (lp_id, date, session_id)"""
        )
        opened.execute(SESSIONS)
        opened.execute(
            """CREATE TABLE daily_table (lp_id UInt32, date Date,
                 num_clicks AggregateFunction(countIf, UInt8),
                 scroll_max AggregateFunction(max, Int64),
                 first_event_at AggregateFunction(min, DateTime))
               ENGINE = AggregatingMergeTree ORDER BY (lp_id, date);
               CREATE TABLE daily_scroll (lp_id UInt32, date Date,
                 scroll_rate AggregateFunction(avg, Int64))
               ENGINE = AggregatingMergeTree ORDER BY (lp_id, date)"""
        )
        yield opened


def _send_events(connection: Connection) -> None:
    for part in range(4):
        connection.execute(
            f"""INSERT INTO raw_events SELECT
                  1 + session % 3 AS lp_id,
                  concat(toString(start), '_', toString(session)) AS session_id,
                  concat('visitor-', toString(session % 700)) AS visitor_id,
                  toDateTime(start + intDiv(number, 2000) * 60) AS event_at,
                  ['PageView', 'ButtonClick', 'Scroll'][intHash64(number) % 3 + 1] AS event,
                  concat('{{"url":"/lp","scrollPercent":', toString(intHash64(number + 7) % 101), '}}')
                FROM (SELECT number, number % 2000 AS session, 1546300800 + session * 300 AS start
                      FROM numbers({part * 5_000}, 5_000))"""
        )


DAILY_FROM_SESSIONS = """CREATE MATERIALIZED VIEW daily_mv TO daily_table AS
    SELECT lp_id, date,
      {clicks} AS num_clicks,
      maxMergeState(scroll_rate) AS scroll_max,
      minMergeState(started_at) AS first_event_at
    FROM session_table GROUP BY lp_id, date"""


def test_sessions_chain_to_days_by_merge_state(sessions: Connection) -> None:
    sessions.execute(DAILY_FROM_SESSIONS.format(clicks="countIfMergeState(num_clicks)"))
    _send_events(sessions)
    expected = _rows(
        sessions,
        """SELECT lp_id, toDate(toInt64OrZero(splitByChar('_', session_id)[1])) AS date,
             countIf(event = 'ButtonClick'),
             max(visitParamExtractInt(params, 'scrollPercent')), min(event_at)
           FROM raw_events GROUP BY lp_id, date ORDER BY lp_id, date""",
    )
    daily = """SELECT lp_id, date, countIfMerge(num_clicks), maxMerge(scroll_max),
                 minMerge(first_event_at)
               FROM daily_table GROUP BY lp_id, date ORDER BY lp_id, date"""
    assert _rows(sessions, daily) == expected
    assert len(expected) == 3 * 7
    assert sum(int(str(row[2])) for row in expected) > 6_000

    for view in ("session_mv_to_table", "daily_mv"):
        sessions.execute(f"SYSTEM RECONCILE VIEW {view}")
    verdicts = _rows(sessions, "SELECT name, verdict FROM system.views ORDER BY name")
    assert verdicts == [("daily_mv", "proven"), ("session_mv_to_table", "proven")]


def test_an_average_over_session_maxima_cannot_be_chained(sessions: Connection) -> None:
    """A reader's question: 'num_clicks should be something like sumMergeState, and for scroll_rate
    I want to use avgMergeState'. The error of each form states the reason."""

    def create(selected: str, source: str = "session_table", name: str = "scroll_mv") -> None:
        sessions.execute(
            f"CREATE MATERIALIZED VIEW {name} TO daily_scroll AS SELECT lp_id, date, "
            f"{selected} AS scroll_rate FROM {source} GROUP BY lp_id, date"
        )

    with pytest.raises(IllegalTypeOfArgument, match="sumMerge cannot read the states of countIf"):
        sessions.execute(DAILY_FROM_SESSIONS.format(clicks="sumMergeState(num_clicks)"))
    with pytest.raises(IllegalTypeOfArgument, match="avgMerge cannot read the states of max") as no:
        create("avgMergeState(scroll_rate)")
    assert "Use maxMerge." in no.value.hint
    assert "a state that comes in is not yet the value it merges to" in no.value.hint
    with pytest.raises(IllegalAggregation, match="maxMerge is found inside another"):
        create("avgState(maxMerge(scroll_rate))")
    with pytest.raises(ViewNotProvable, match="inner GROUP BY sees one block at a time") as no:
        create(
            "avgState(scroll)",
            "(SELECT lp_id, date, session_id, maxMerge(scroll_rate) AS scroll"
            " FROM session_table GROUP BY lp_id, date, session_id)",
        )
    assert "belongs in the query that reads" in no.value.hint

    # Finalizing each block's state counts a session once for each INSERT that it spans.
    create("avgState(finalizeAggregation(scroll_rate))", name="scroll_of_blocks_mv")
    _send_events(sessions)
    named = "SELECT verdict, reason FROM system.views WHERE name = 'scroll_of_blocks_mv'"
    ((verdict, reason),) = _rows(sessions, named)
    assert verdict == "unproven"
    assert "counts the unmerged rows of default.session_table" in str(reason)

    # The average belongs in the query that reads.
    by_day = """SELECT lp_id, date, avg(scroll) FROM (
                  SELECT lp_id, date, session_id, {maximum} AS scroll FROM {source}
                  GROUP BY lp_id, date, session_id)
                GROUP BY lp_id, date ORDER BY lp_id, date"""
    from_sessions = by_day.format(maximum="maxMerge(scroll_rate)", source="session_table")
    events = (
        "(SELECT *, toDate(toInt64OrZero(splitByChar('_', session_id)[1])) AS date FROM raw_events)"
    )
    from_events = by_day.format(
        maximum="max(visitParamExtractInt(params, 'scrollPercent'))", source=events
    )
    right = _rows(sessions, from_sessions)
    assert right == _rows(sessions, from_events)
    wrong = "SELECT lp_id, date, avgMerge(scroll_rate) FROM daily_scroll GROUP BY lp_id, date ORDER BY lp_id, date"
    assert _rows(sessions, wrong) != right

"""Join filters: which rows they drop where they are read, and that no answer changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import olapdb
from olapdb.config import tuning
from olapdb.execute.join_filters import JoinFilter

pytestmark = pytest.mark.feature("select")

ROWS = 40_000
GRANULE = 1_000


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with olapdb.connect(tmp_path_factory.mktemp("joins") / "warehouse") as made:
        made.execute(
            "CREATE TABLE facts (id UInt32, day Nullable(Date), name String, other Int64) ENGINE ="
            f" MergeTree ORDER BY id SETTINGS index_granularity = {GRANULE}, inline_bytes_max = 0"
        )
        made.execute(
            "INSERT INTO facts SELECT number, if(number % 5 = 0, NULL, toDate('2024-01-01') +"
            " number % 90), concat('n', toString(number % 300)), number % 11 - 5"
            f" FROM numbers({ROWS})"
        )
        made.execute(
            "CREATE TABLE few (id UInt32, day Nullable(Date), name String, other Int64)"
            " ENGINE = MergeTree ORDER BY id"
        )
        made.execute(
            "INSERT INTO few SELECT 2000 + number * 7, if(number = 3, NULL, toDate('2024-01-05') +"
            " number), concat('n', toString(number)), -number FROM numbers(12)"
        )
        made.execute(
            "CREATE TABLE latest (id UInt32, version UInt32, kind String) ENGINE ="
            " ReplacingMergeTree(version) ORDER BY id SETTINGS inline_bytes_max = 0"
        )
        for version in (1, 2):
            made.execute(
                f"INSERT INTO latest SELECT number, {version}, concat('v', toString({version}))"
                f" FROM numbers({ROWS // 2})"
            )
        yield made


def rows(connection: Any, query: str, **settings: object) -> list[Any]:
    written = ", ".join(f"{name} = {value!r}" for name, value in settings.items())
    return connection.execute(f"{query} SETTINGS {written}").fetchall()


QUERIES = [
    "SELECT facts.id, few.name FROM facts JOIN few ON facts.id = few.id",
    "SELECT facts.id FROM facts WHERE id IN (SELECT id FROM few)",
    "SELECT facts.id, few.id FROM facts JOIN few ON facts.day = few.day WHERE facts.id < 500",
    "SELECT count(), sum(facts.id) FROM facts JOIN few USING (day)",
    "SELECT count(), sum(facts.id) FROM facts JOIN few ON facts.name = few.name",
    "SELECT count(), sum(facts.id) FROM facts JOIN few ON facts.other = few.other AND facts.name = few.name",
    "SELECT facts.id, few.id FROM facts ANY JOIN few ON facts.name = few.name WHERE facts.id < 700",
    "SELECT facts.id FROM facts LEFT SEMI JOIN few ON facts.day = few.day WHERE facts.id < 900",
    "SELECT count() FROM facts LEFT ANTI JOIN few ON facts.name = few.name",
    "SELECT count(), countIf(few.id = 0) FROM facts LEFT JOIN few ON facts.id = few.id",
    "SELECT facts.id, few.id FROM facts RIGHT JOIN few ON facts.id = few.id",
    "SELECT count(), sum(facts.id) FROM facts FULL JOIN few ON facts.id = few.id",
    "SELECT id, n FROM (SELECT id, count() AS n FROM facts GROUP BY id) AS g JOIN few USING (id)",
    "SELECT f.id, few.name FROM (SELECT id, name FROM facts UNION ALL SELECT id, name FROM facts) AS f"
    " JOIN few ON f.id = few.id",
    "SELECT a.id, b.id FROM facts AS a JOIN facts AS b ON a.id = b.id JOIN few ON few.id = b.id",
    "SELECT latest.id, version, kind FROM latest FINAL JOIN few ON latest.id = few.id",
    "SELECT facts.id FROM facts JOIN few ON facts.id = few.id WHERE few.name = 'none'",
    "SELECT facts.id, facts.day FROM facts JOIN few USING (id) WHERE facts.day > '2024-01-20' AND facts.other < 4",
    "SELECT facts.id FROM facts JOIN few USING (id) WHERE (facts.name IN ('n200', 'n207', 'n214') AND facts.other > -4)"
    " OR (facts.name = 'n221' AND facts.day > '2024-01-02')",
    "SELECT facts.id, few.id FROM facts JOIN few ON facts.other = few.other AND facts.id = few.id + 40"
    " WHERE facts.name != 'n9'",
    "SELECT few.name, facts.other FROM facts JOIN few USING (id, other) WHERE facts.name != 'n9'",
    "SELECT facts.id, (SELECT max(few.name) FROM few WHERE few.id = facts.id) AS m FROM facts"
    " WHERE facts.id BETWEEN 1990 AND 2030",
]


@pytest.mark.parametrize("query", QUERIES)
def test_answers_and_their_order_stay(connection: Any, query: str, monkeypatch) -> None:
    monkeypatch.setattr(tuning, "JOIN_FILTER_ROWS_MIN", 0)
    monkeypatch.setattr(tuning, "JOIN_FILTER_PASS_PERCENT_MAX", 1 << 60)
    without = rows(connection, query, enable_join_runtime_filters=0)
    assert rows(connection, query, enable_join_runtime_filters=1) == without
    if "none" not in query:
        assert without


@pytest.mark.parametrize(
    ("condition", "is_first"),
    [
        ("facts.day > '2024-01-20'", True),
        ("facts.day > '2024-01-20' OR facts.name = 'n1' AND facts.other < 0", True),
        ("intDiv(100, facts.other + 6) > 8", False),  # may fail on a row that the join drops
    ],
)
def test_keys_of_few_rows_are_looked_up_first(
    connection: Any, condition: str, is_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "JOIN_FILTER_ROWS_MIN", 0)
    query = f"SELECT facts.id, few.name FROM facts JOIN few ON facts.id = few.id WHERE {condition}"
    plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN ANALYZE {query}").fetchall())
    assert "Join filter: id IN" in plan
    assert (", before the other conditions" in plan) == is_first
    without = rows(connection, query, enable_join_runtime_filters=0)
    assert rows(connection, query, enable_join_runtime_filters=1) == without


LEFT_FIRST = [
    "few LEFT JOIN (SELECT id, row_number() OVER (ORDER BY id) AS n FROM facts) AS w"
    " ON few.id = w.id",
    "few LEFT SEMI JOIN facts ON few.id = facts.id",
    "few LEFT ANTI JOIN facts ON few.id = facts.id",
    "few LEFT JOIN facts ON few.id = facts.id",
    "few LEFT ANY JOIN facts ON few.name = facts.name AND few.id = facts.id",
    "few WHERE EXISTS (SELECT 1 FROM facts WHERE few.id = facts.id AND few.other < facts.other)",
    "few WHERE NOT EXISTS (SELECT 1 FROM facts WHERE few.id = facts.id AND few.other < facts.other)",
    "few LEFT JOIN (SELECT id, count() AS n FROM facts GROUP BY id) AS g ON few.id = g.id",
    "few LEFT JOIN (SELECT id, name FROM facts UNION ALL SELECT id, name FROM facts) AS u"
    " ON few.id = u.id",
    "(SELECT id, day FROM few WHERE day IS NULL) AS f LEFT JOIN facts ON f.day = facts.day",
    "(SELECT id FROM few WHERE name = 'none') AS f LEFT ANTI JOIN facts ON f.id = facts.id",
]


@pytest.mark.parametrize("held_bytes_max", [tuning.HELD_LEFT_BYTES_MAX, 0])
@pytest.mark.parametrize("joined", LEFT_FIRST)
def test_a_small_left_side_changes_no_answer(
    connection: Any, joined: str, held_bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "JOIN_FILTER_ROWS_MIN", 0)
    monkeypatch.setattr(tuning, "LEFT_FIRST_FACTOR", 0)
    monkeypatch.setattr(tuning, "JOIN_FILTER_PASS_PERCENT_MAX", 1 << 60)
    monkeypatch.setattr(tuning, "HELD_LEFT_BYTES_MAX", held_bytes_max)
    query = f"SELECT * FROM {joined}"
    without = rows(connection, query, enable_join_runtime_filters=0)
    assert rows(connection, query, enable_join_runtime_filters=1) == without
    assert without or "ANTI" in joined


@pytest.mark.parametrize(
    ("joined", "drops"),
    [
        ("few LEFT SEMI JOIN facts ON few.id = facts.id", True),
        ("few LEFT ANTI JOIN facts ON few.id = facts.id", True),
        ("(SELECT * FROM facts LIMIT 2 BY id) AS f JOIN few ON few.id = f.id", True),
        ("(SELECT * FROM facts LIMIT 2 BY name) AS f JOIN few ON few.id = f.id", False),
        ("few LEFT JOIN facts ON few.id = facts.id", True),
        ("few LEFT JOIN (SELECT id, max(name) FROM facts GROUP BY id) AS g ON few.id = g.id", True),
        ("few FULL JOIN facts ON few.id = facts.id", False),
        ("few LEFT JOIN facts ON few.id + 0 = facts.id", False),
        ("few LEFT JOIN facts ON few.id = facts.id + 0", False),
        ("few ASOF LEFT JOIN facts ON few.name = facts.name AND few.id >= facts.id", False),
        ("few LEFT JOIN (SELECT id FROM facts LIMIT 30000) AS l ON few.id = l.id", False),
    ],
)
def test_a_small_left_side_drops_rows_that_would_be_held(
    connection: Any, joined: str, drops: bool
) -> None:
    read = connection.execute(f"SELECT count() FROM {joined}").statistics.rows_read
    assert (read <= GRANULE + 12) is drops


def test_explain_analyze_names_the_filter_of_a_small_left_side(connection: Any) -> None:
    query = "EXPLAIN ANALYZE SELECT few.id FROM few LEFT SEMI JOIN facts ON few.id = facts.id"
    lines = [row[0].strip() for row in connection.execute(query).fetchall()]
    assert "Join filter: id IN 12 keys of the join's left side" in lines


@pytest.mark.parametrize(
    ("query", "drops"),
    [
        ("facts JOIN few ON facts.id = few.id", True),
        ("facts LEFT SEMI JOIN few ON facts.id = few.id", True),
        ("facts RIGHT JOIN few ON facts.id = few.id", True),
        ("facts LEFT JOIN few ON facts.id = few.id", False),
        ("facts LEFT ANTI JOIN few ON facts.id = few.id", False),
        ("facts FULL JOIN few ON facts.id = few.id", False),
        ("facts JOIN few ON facts.id + 0 = few.id", False),
        ("facts JOIN few ON facts.other = few.other", False),  # most of its values are there
    ],
)
def test_granules_without_a_key_are_not_read(connection: Any, query: str, drops: bool) -> None:
    statement = f"SELECT count(facts.name) FROM {query}"
    read = connection.execute(statement).statistics.rows_read
    whole = connection.execute(f"{statement} SETTINGS enable_join_runtime_filters = 0")
    assert whole.statistics.rows_read >= ROWS
    assert (read <= GRANULE + 12) is drops


def test_one_of_two_keys_may_decide_that_the_filter_pays(connection: Any) -> None:
    # The 12,000 pairs seem to be most of 40,000 numbers; but they have only 40 of these.
    query = (
        "SELECT count(), sum(facts.id) FROM facts JOIN (SELECT toUInt32(number % 40) AS id,"
        " toNullable(toDate('2024-01-01') + intDiv(number, 40)) AS day FROM numbers(12000)) AS held"
        " ON facts.id = held.id AND facts.day = held.day"
    )
    plan = connection.execute(f"EXPLAIN ANALYZE {query}").fetchall()
    filters = [line.strip() for (line,) in plan if "Join filter" in line]
    assert filters == ["Join filter: id, day IN 12000 keys of the join's right side"]
    off = connection.execute(f"{query} SETTINGS enable_join_runtime_filters = 0").fetchall()
    assert connection.execute(query).fetchall() == off
    assert off[0][0] == 32


def test_explain_analyze_names_the_filter(connection: Any) -> None:
    query = "EXPLAIN ANALYZE SELECT facts.name FROM facts JOIN few ON facts.id = few.id"
    lines = [row[0].strip() for row in connection.execute(query).fetchall()]
    assert "Join filter: id IN 12 keys of the join's right side" in lines
    assert "Parts: 1/1 | Granules: 1/40" in lines
    off = connection.execute(f"{query} SETTINGS enable_join_runtime_filters = 0").fetchall()
    assert not any("Join filter" in row[0] for row in off)


def test_a_join_that_spills_has_no_filter(connection: Any) -> None:
    query = "SELECT count() FROM facts JOIN few ON facts.id = few.id"
    spilled = rows(connection, query, max_bytes_before_external_join=1, max_block_size=5)
    assert spilled == connection.execute(query).fetchall() == [(12,)]


def test_a_block_of_a_view_is_not_filtered(connection: Any, monkeypatch) -> None:
    monkeypatch.setattr(tuning, "JOIN_FILTER_ROWS_MIN", 0)
    monkeypatch.setattr(tuning, "JOIN_FILTER_PASS_PERCENT_MAX", 1 << 60)
    made: list[object] = []
    before = JoinFilter._left_rows
    monkeypatch.setattr(
        JoinFilter, "_left_rows", lambda self, start: (made.append(self), before(self, start))[1]
    )
    connection.execute("CREATE TABLE source (id UInt32) ENGINE = MergeTree ORDER BY id")
    connection.execute(
        "CREATE MATERIALIZED VIEW joined ENGINE = MergeTree ORDER BY id AS"
        " SELECT source.id AS id, few.name AS name FROM source JOIN few ON source.id = few.id"
    )
    connection.execute("INSERT INTO source SELECT number FROM numbers(2000, 100)")
    assert connection.execute("SELECT count() FROM joined").fetchone() == (12,)
    assert not made


def test_sets_of_numbers_are_tables(connection: Any) -> None:
    query = (
        "SELECT count(), sum(other) FROM facts WHERE other IN (SELECT other FROM few) AND"
        " day IN (SELECT day FROM few)"
    )
    found = rows(connection, query, max_threads=1)
    assert found == rows(
        connection,
        "SELECT count(), sum(other) FROM facts WHERE other <= 0 AND other >= -11 AND day IS NOT NULL"
        " AND day BETWEEN '2024-01-05' AND '2024-01-16' AND day != '2024-01-08'",
        max_threads=1,
    )

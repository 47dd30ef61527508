"""CREATE MATERIALIZED VIEW that creates its target and a plain view that reads it, in one commit."""

from __future__ import annotations

from typing import Any

import pytest

import olapdb
from olapdb import errors
from olapdb.dbapi.connection import Connection
from olapdb.runtime.failpoints import watching
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("views")

TARGET = (
    "(day Date, s SimpleAggregateFunction(sum, Int64), CONSTRAINT c CHECK day > '2000-01-01')"
    " ENGINE = AggregatingMergeTree PARTITION BY day ORDER BY day COMMENT 'of clicks'"
)
READ = "READ VIEW daily AS (SELECT day, sum(s) AS total FROM target GROUP BY day)"
QUERY = "SELECT day, sum(n) AS s FROM clicks GROUP BY day"
STATEMENT = f"CREATE MATERIALIZED VIEW mv TO target {TARGET} {READ} POPULATE AS {QUERY}"
OF_NUMBERS = "(n Int64) ENGINE = MergeTree ORDER BY n"
NAMES = "SELECT name, engine, comment FROM system.tables WHERE database = 'default' ORDER BY name"


@pytest.fixture
def connection() -> Connection:
    connection = olapdb.connect()
    connection.execute(
        "CREATE TABLE clicks (day Date, n Int64) ENGINE = MergeTree PARTITION BY day ORDER BY n"
    )
    connection.execute(
        "INSERT INTO clicks SELECT toDate('2024-01-01') + number % 3, number FROM numbers(90)"
    )
    return connection


def commits(connection: Connection) -> int:
    return connection.database.services.catalog.snapshot().number


def totals(connection: Connection) -> list[int]:
    return [total for _, total in rows(connection, "SELECT * FROM daily ORDER BY day")]


def test_target_view_and_read_view_are_one_commit(connection: Connection) -> None:
    before = commits(connection)
    connection.execute(STATEMENT.replace("POPULATE ", ""))
    assert commits(connection) == before + 1
    assert rows(connection, NAMES) == [
        ("clicks", "MergeTree", ""),
        ("daily", "View", ""),
        ("mv", "MaterializedView", "of clicks"),
        ("target", "AggregatingMergeTree", ""),
    ]
    assert totals(connection) == []
    connection.execute("INSERT INTO clicks VALUES ('2024-01-01', 1)")
    assert totals(connection) == [1]
    with pytest.raises(errors.ViolatedConstraint):
        connection.execute("INSERT INTO clicks VALUES ('1999-01-01', 1)")


def test_the_read_view_comes_with_the_last_chunk(connection: Connection) -> None:
    seen: list[tuple[str, bool]] = []

    def note(event: Any) -> None:
        found = connection.database.services.catalog.snapshot().find("default", "daily")
        seen.append((event.phase, found is not None))

    connection.execute("SET backfill_threads = 1")
    connection.system(STATEMENT, note)
    published = [there for phase, there in seen if phase == "published"]
    assert published == [False, False, True]
    assert totals(connection) == [1305, 1335, 1365]


def test_a_failed_chunk_leaves_no_read_view(connection: Connection) -> None:
    connection.execute("INSERT INTO clicks VALUES ('2024-01-09', 9223372036854775807)")
    with pytest.raises(errors.BackfillIncomplete):
        connection.execute(
            STATEMENT.replace("sum(n) AS s", "sum(throwIf(n > 1000)::Int64 + n) AS s")
        )
    assert ("daily", "View", "") not in rows(connection, NAMES)
    assert rows(connection, "SELECT gap_rows FROM system.views") == [(1,)]


def test_an_empty_source_has_the_read_view_too(connection: Connection) -> None:
    connection.execute("TRUNCATE TABLE clicks")
    connection.execute(STATEMENT)
    assert totals(connection) == []


def test_a_new_target_may_have_more_columns(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW mv TO target (n Int64, twice Int64 DEFAULT n * 2)"
        " ENGINE = MergeTree ORDER BY n AS SELECT n FROM clicks"
    )
    connection.execute("INSERT INTO clicks VALUES ('2024-01-04', 7)")
    assert rows(connection, "SELECT n, twice FROM target") == [(7, 14)]


@pytest.mark.parametrize(
    ("clauses", "error"),
    [
        (f"TO clicks {OF_NUMBERS} AS SELECT n FROM clicks", errors.TableAlreadyExists),
        (f"TO other_mv {OF_NUMBERS} AS SELECT n FROM clicks", errors.TableAlreadyExists),
        (f"TO nowhere.other {OF_NUMBERS} AS SELECT n FROM clicks", errors.UnknownDatabase),
        (
            f"TO other {OF_NUMBERS} READ VIEW clicks AS (SELECT 1) AS SELECT n FROM clicks",
            errors.TableAlreadyExists,
        ),
        (
            f"TO other {OF_NUMBERS} READ VIEW other AS (SELECT 1) AS SELECT n FROM clicks",
            errors.TableAlreadyExists,
        ),
        (
            f"TO other {OF_NUMBERS} READ VIEW other_read AS (SELECT nothing FROM other)"
            " POPULATE AS SELECT n FROM clicks",
            errors.UnknownIdentifier,
        ),
        (
            "TO other (n AggregateFunction(sum, Int64)) ENGINE = AggregatingMergeTree"
            " ORDER BY tuple() AS SELECT avg(n) AS n FROM clicks",
            errors.TypeMismatch,
        ),
        (
            "TO other (n Int64, CONSTRAINT c CHECK n > 0) AS SELECT n FROM clicks",
            errors.SyntaxError,
        ),
        ("TO other ENGINE = MergeTree ORDER BY n AS SELECT n FROM clicks", errors.SyntaxError),
        (f"REFRESH EVERY 1 HOUR TO other {OF_NUMBERS} AS SELECT n FROM clicks", errors.SyntaxError),
        (
            "REFRESH EVERY 1 HOUR TO clicks READ VIEW other_read AS (SELECT 1) AS SELECT * FROM clicks",
            errors.SyntaxError,
        ),
    ],
)
def test_what_is_refused_leaves_nothing_behind(
    connection: Connection, clauses: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        connection.execute(f"CREATE MATERIALIZED VIEW other_mv {clauses}")
    assert rows(connection, NAMES) == [("clicks", "MergeTree", "")]


def test_the_statement_is_formatted_as_it_is_read(connection: Connection) -> None:
    text = (
        "CREATE MATERIALIZED VIEW m TO t (`k` Int64, CONSTRAINT a CHECK k > 0) ENGINE = MergeTree"
        " ORDER BY k COMMENT 'x' READ VIEW r AS (SELECT k FROM t) POPULATE AS SELECT v AS k FROM s"
    )
    quoted = text.replace("'", "''")
    assert rows(connection, f"SELECT formatQuerySingleLine('{quoted}')") == [(text,)]
    ((lines,),) = rows(connection, f"SELECT formatQuery('{quoted}')")
    assert rows(connection, "SELECT formatQuerySingleLine('" + lines.replace("'", "''") + "')") == [
        (text,)
    ]


def test_a_target_altered_during_the_fill_is_read_as_it_is_then(connection: Connection) -> None:
    altered: list[str] = []

    def alter(name: str) -> None:
        if name == "backfill.chunk_computed" and not altered:
            altered.append(name)
            connection.execute("ALTER TABLE target COMMENT COLUMN s 'the sum'")

    with watching(alter):
        connection.execute(STATEMENT)
    assert altered
    assert totals(connection) == [1305, 1335, 1365]
    assert len(rows(connection, NAMES)) == 4

"""The story of `daily_sales` and `monthly_stats`: which aggregates add up, and which do not.

A view sees one block at a time, so its stored rows must merge to the right answer. Sums do, in a
SummingMergeTree; averages and distinct counts do as states, in an AggregatingMergeTree. Finished
averages and counts do not: two blocks of 8,432 and 7,891 users would become 16,323."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BypassRows, CannotConvertType, ViewNotProvable
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("views")

SALES = """CREATE TABLE sales (created_at DateTime, product_id UInt32, price Float64)
ENGINE = MergeTree PARTITION BY toYYYYMM(created_at) ORDER BY (product_id, created_at)"""

DAILY_SALES = """-- Create the target table explicitly
  CREATE TABLE daily_sales (
      day Date,
      product_id UInt32,
      total_revenue Float64
  ) ENGINE = SummingMergeTree()
  ORDER BY (day, product_id);"""

DAILY_SALES_MV = """-- MV using TO syntax
  CREATE MATERIALIZED VIEW daily_sales_mv
  TO daily_sales
  AS SELECT
      toDate(created_at) AS day,
      product_id,
      sum(price) AS total_revenue
  FROM sales
  GROUP BY day, product_id;"""

BACKFILL_OF_A_MONTH = """-- Backfill one month at a time
  INSERT INTO daily_sales
  SELECT
      toDate(created_at) AS day,
      product_id,
      sum(price) AS total_revenue
  FROM sales
  WHERE toYYYYMM(created_at) = {month}
  GROUP BY day, product_id;"""

ORDERS = """CREATE TABLE orders
(created_at DateTime, user_id UInt64, product_id UInt32, order_value Float64)
ENGINE = MergeTree PARTITION BY toYYYYMM(created_at) ORDER BY (user_id, created_at)"""

MONTHLY_STATS = """CREATE TABLE monthly_stats (
      month Date,
      user_id UInt64,
      unique_products AggregateFunction(uniq, UInt32),
      avg_order_value AggregateFunction(avg, Float64)
  ) ENGINE = AggregatingMergeTree()
  ORDER BY (month, user_id);"""

MONTHLY_STATS_MV = """CREATE MATERIALIZED VIEW monthly_stats_mv
  TO monthly_stats
  AS SELECT
      toStartOfMonth(created_at) AS month,
      user_id,
      uniqState(product_id) AS unique_products,
      avgState(order_value) AS avg_order_value
  FROM orders
  GROUP BY month, user_id;"""

READ_MONTHLY_STATS = """-- Query:
  SELECT month, user_id, uniqMerge(unique_products), avgMerge(avg_order_value)
  FROM monthly_stats GROUP BY month, user_id{order};"""

FIRST_BLOCK_USERS = 8_432
SECOND_BLOCK_USERS = 7_891
IN_BOTH_BLOCKS = 3_000
USERS = FIRST_BLOCK_USERS + SECOND_BLOCK_USERS - IN_BOTH_BLOCKS


def _rows(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


def _view(connection: Connection, name: str) -> tuple[object, ...]:
    """Return the view's (verdict, rows in the gap, bypass rows)."""
    (found,) = _rows(
        connection, f"SELECT verdict, gap_rows, bypass_rows FROM system.views WHERE name = '{name}'"
    )
    return found


def _sell(connection: Connection, day: str, rows: int) -> None:
    """Insert one sale a minute. Prices are multiples of a quarter, so their sums are exact."""
    connection.execute(
        f"""INSERT INTO sales SELECT toDateTime('{day} 00:00:00') + number * 60,
              1 + intHash64(number) % 40, (1 + number % 400) * 0.25 FROM numbers({rows})"""
    )


def _order(connection: Connection, day: str, rows: int) -> None:
    connection.execute(
        f"""INSERT INTO orders SELECT toDateTime('{day} 00:00:00') + number * 20,
              1 + intHash64(number) % 500, intHash64(number + 1) % 60, (number % 400) * 0.25
            FROM numbers({rows})"""
    )


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with olapdb.connect(tmp_path / "warehouse") as opened:
        for statement in (SALES, DAILY_SALES, ORDERS, MONTHLY_STATS):
            opened.execute(statement)
        yield opened


# --- sums -----------------------------------------------------------------------------------------

REVENUE = "SELECT day, product_id, sum(total_revenue) FROM daily_sales GROUP BY day, product_id ORDER BY day, product_id"
REVENUE_OF_SALES = "SELECT toDate(created_at) AS day, product_id, sum(price) FROM sales GROUP BY day, product_id ORDER BY day, product_id"


def test_sales_add_up_merged_or_not(connection: Connection) -> None:
    connection.execute("SYSTEM STOP MERGES")
    connection.execute(DAILY_SALES_MV)
    for _ in range(4):
        _sell(connection, "2024-01-30", 4_000)

    # A key has several partial sums until a merge adds them up, so readers use GROUP BY or FINAL.
    ((parts_rows,),) = _rows(connection, "SELECT count() FROM daily_sales")
    expected = _rows(connection, REVENUE_OF_SALES)
    assert parts_rows == 4 * len(expected)
    assert _rows(connection, REVENUE) == expected
    final = "SELECT * FROM daily_sales FINAL ORDER BY day, product_id"
    assert _rows(connection, final) == expected
    connection.execute("SYSTEM START MERGES")
    connection.execute("OPTIMIZE TABLE daily_sales FINAL")
    merged = "SELECT * FROM daily_sales ORDER BY day, product_id"
    assert _rows(connection, merged) == expected


def test_a_large_insert_fires_once_a_block(connection: Connection) -> None:
    """A 3-million-row INSERT arrives as three blocks, the view fires three times, and source and
    target are still one commit."""
    connection.execute("SYSTEM STOP MERGES")
    connection.execute("CREATE TABLE firings (rows UInt64) ENGINE = MergeTree ORDER BY rows")
    connection.execute(
        "CREATE MATERIALIZED VIEW firings_mv TO firings AS SELECT count() AS rows FROM sales"
    )
    newest_commit = "SELECT max(number) FROM system.snapshots"
    ((before,),) = _rows(connection, newest_commit)
    connection.execute(
        """INSERT INTO sales SELECT toDateTime('2024-01-01 00:00:00') + intDiv(number, 2),
             number % 40, 1 FROM numbers(3000000)"""
    )
    fired = _rows(connection, "SELECT rows FROM firings ORDER BY rows")
    assert fired == [(902_848,), (1_048_576,), (1_048_576,)]
    assert _rows(connection, newest_commit) == [(before + 1,)]  # type: ignore[operator]


def test_target_and_view_must_agree_on_the_key(connection: Connection) -> None:
    """Merges combine rows by the target's ORDER BY, so the view must GROUP BY the same key."""
    for grouped, selected in (
        ("day", "toDate(created_at) AS day"),
        ("day, product_id, toHour(created_at)", "toDate(created_at) AS day, product_id"),
    ):
        with pytest.raises(ViewNotProvable, match="ORDER BY") as refused:
            connection.execute(
                f"CREATE MATERIALIZED VIEW wrong_mv TO daily_sales AS SELECT {selected}, "
                f"sum(price) AS total_revenue FROM sales GROUP BY {grouped}"
            )
        assert "Group by just the columns of ORDER BY (day, product_id)" in refused.value.hint


def test_the_target_outlives_its_view_and_an_inner_table_does_not(connection: Connection) -> None:
    connection.execute(DAILY_SALES_MV)
    select = DAILY_SALES_MV[DAILY_SALES_MV.index("SELECT") :]
    connection.execute(
        f"""CREATE MATERIALIZED VIEW implicit_mv ENGINE = SummingMergeTree
            ORDER BY (day, product_id) AS {select}"""
    )
    _sell(connection, "2024-01-30", 4_000)
    expected = _rows(connection, REVENUE)
    assert _rows(connection, REVENUE.replace("daily_sales", "implicit_mv")) == expected
    connection.execute("DROP VIEW daily_sales_mv; DROP VIEW implicit_mv")
    assert _rows(connection, REVENUE) == expected
    tables = [
        row[0]
        for row in _rows(
            connection,
            "SELECT name FROM system.tables WHERE database = currentDatabase() ORDER BY name",
        )
    ]
    assert tables == ["daily_sales", "monthly_stats", "orders", "sales"]


# --- the backfill, a month at a time --------------------------------------------------------------


def _sell_three_months(connection: Connection) -> None:
    for month in ("01", "02", "03"):
        _sell(connection, f"2024-{month}-05", 20_000)


def test_a_backfill_by_hand_month_by_month_is_adopted(connection: Connection) -> None:
    _sell_three_months(connection)
    connection.execute(DAILY_SALES_MV)
    for month in (202401, 202402):
        connection.execute(BACKFILL_OF_A_MONTH.format(month=month))

    with pytest.raises(BypassRows, match="missing") as incomplete:
        connection.execute("SYSTEM ADOPT VIEW daily_sales_mv")
    assert "202403" in incomplete.value.hint
    connection.execute(BACKFILL_OF_A_MONTH.format(month=202403))
    connection.execute("SYSTEM ADOPT VIEW daily_sales_mv")
    assert _view(connection, "daily_sales_mv") == ("proven", 0, 0)
    assert _rows(connection, REVENUE) == _rows(connection, REVENUE_OF_SALES)


def test_a_month_backfilled_by_hand_while_sales_go_on_is_counted_twice_and_named(
    connection: Connection,
) -> None:
    """The trigger saw the late sale of January, and the INSERT SELECT by hand counts it again."""
    _sell(connection, "2024-01-05", 20_000)
    connection.execute(DAILY_SALES_MV)
    connection.execute("INSERT INTO sales VALUES ('2024-01-10 12:00:00', 7, 1000)")
    connection.execute(BACKFILL_OF_A_MONTH.format(month=202401))

    with pytest.raises(BypassRows, match=r"differing \(2024-01-10, 7\)"):
        connection.execute("SYSTEM ADOPT VIEW daily_sales_mv")
    connection.execute("SYSTEM REPLAY VIEW daily_sales_mv DISCARD BYPASS")
    connection.execute("SYSTEM BACKFILL VIEW daily_sales_mv")
    assert _rows(connection, REVENUE) == _rows(connection, REVENUE_OF_SALES)


def test_the_same_backfill_our_way_counts_nothing_twice(connection: Connection) -> None:
    _sell_three_months(connection)
    connection.execute(DAILY_SALES_MV)
    connection.execute("INSERT INTO sales VALUES ('2024-01-10 12:00:00', 7, 1000)")
    for month, left in ((202401, 40_000), (202402, 20_000), (202403, 0)):
        assert _view(connection, "daily_sales_mv") == ("partial", left + 20_000, 0)
        ((partition, rows, status),) = [
            (row[1], row[3], row[5])
            for row in _rows(connection, f"SYSTEM BACKFILL VIEW daily_sales_mv PARTITION {month}")
        ]
        assert (partition, rows, status) == (str(month), 20_000, "published")
    assert _rows(connection, REVENUE) == _rows(connection, REVENUE_OF_SALES)
    connection.execute("SYSTEM RECONCILE VIEW daily_sales_mv")
    assert _view(connection, "daily_sales_mv") == ("proven", 0, 0)


# --- states ---------------------------------------------------------------------------------------


def test_monthly_stats_as_published_answer_as_clickhouse_does(
    connection: Connection, oracle: Oracle
) -> None:
    connection.execute(MONTHLY_STATS_MV)
    for day in ("2024-01-01", "2024-01-20", "2024-03-28"):
        _order(connection, day, 30_000)
    found = _rows(connection, READ_MONTHLY_STATS.format(order=" ORDER BY month, user_id"))

    direct = """SELECT toStartOfMonth(created_at) AS month, user_id, uniqExact(product_id),
                  avg(order_value) FROM orders GROUP BY month, user_id ORDER BY month, user_id"""
    expected = _rows(connection, direct)
    assert [row[:3] for row in found] == [row[:3] for row in expected]
    assert [row[3] for row in found] == pytest.approx([row[3] for row in expected], rel=1e-12)

    prefixed = "stats_story_orders"
    oracle.execute(ORDERS.replace("orders", prefixed))
    for day in ("2024-01-01", "2024-01-20", "2024-03-28"):
        oracle.execute(
            f"""INSERT INTO {prefixed} SELECT toDateTime('{day} 00:00:00') + number * 20,
                  1 + intHash64(number) % 500, intHash64(number + 1) % 60, (number % 400) * 0.25
                FROM numbers(30000)"""
        )
    theirs = oracle.query(
        direct.replace("FROM orders", f"FROM {prefixed}").replace("uniqExact", "uniq")
    ).rows
    assert [(str(m), str(u), str(n)) for m, u, n, _ in found] == [row[:3] for row in theirs]
    averages = [float(str(row[3])) for row in theirs]
    assert [row[3] for row in found] == pytest.approx(averages, rel=1e-12)

    connection.execute("SYSTEM RECONCILE VIEW monthly_stats_mv")
    assert _view(connection, "monthly_stats_mv") == ("proven", 0, 0)


VISITS = """CREATE TABLE visits (at DateTime, user_id UInt64) ENGINE = MergeTree ORDER BY at"""


def _two_blocks(connection: Connection) -> None:
    """Insert 100,000 visits of 8,432 users, then as many of 7,891 users, 3,000 of them seen
    before."""
    for first, users in (
        (0, FIRST_BLOCK_USERS),
        (FIRST_BLOCK_USERS - IN_BOTH_BLOCKS, SECOND_BLOCK_USERS),
    ):
        connection.execute(
            f"""INSERT INTO visits SELECT toDateTime('2024-01-01 00:00:00') + number % 80000,
                  {first} + number % {users} FROM numbers(100000)"""
        )


@pytest.mark.parametrize(
    ("engine", "count"),
    [
        ("SummingMergeTree", "uniq"),
        ("SummingMergeTree", "uniqExact"),
        ("AggregatingMergeTree", "uniq"),
    ],
)
def test_a_finished_count_of_users_is_refused_where_blocks_are_added_up(
    connection: Connection, engine: str, count: str
) -> None:
    connection.execute(VISITS)
    type_name = "UInt64" if engine == "SummingMergeTree" else "SimpleAggregateFunction(sum, UInt64)"
    connection.execute(
        f"CREATE TABLE daily_users (day Date, users {type_name}) ENGINE = {engine} ORDER BY day"
    )
    with pytest.raises(ViewNotProvable) as refused:
        connection.execute(
            f"""CREATE MATERIALIZED VIEW daily_users_mv TO daily_users AS
                SELECT toDate(at) AS day, {count}(user_id) AS users FROM visits GROUP BY day"""
        )
    assert (
        f"column users is a finished {count}(…), but default.daily_users merges it by sum"
        in str(refused.value)
    )
    assert refused.value.hint == (
        f"Store {count}State in a column AggregateFunction({count}, UInt64) of an"
        f" AggregatingMergeTree, and read it with {count}Merge."
    )
    assert _rows(connection, "SELECT count() FROM system.views") == [(0,)]


@pytest.mark.parametrize("count", ["uniq", "uniqExact"])
def test_two_blocks_of_overlapping_users_do_not_become_16323(
    connection: Connection, count: str
) -> None:
    """Follows the fix that the refusal names, statement by statement."""
    connection.execute("SYSTEM STOP MERGES")
    connection.execute(VISITS)
    connection.execute(
        f"""CREATE TABLE daily_users (day Date, users AggregateFunction({count}, UInt64))
            ENGINE = AggregatingMergeTree ORDER BY day"""
    )
    connection.execute(
        f"""CREATE MATERIALIZED VIEW daily_users_mv TO daily_users AS
            SELECT toDate(at) AS day, {count}State(user_id) AS users FROM visits GROUP BY day"""
    )
    _two_blocks(connection)
    assert _rows(connection, "SELECT count() FROM daily_users") == [(2,)]
    ((merged,),) = _rows(connection, f"SELECT {count}Merge(users) FROM daily_users")
    ((direct,),) = _rows(connection, f"SELECT {count}(user_id) FROM visits")
    assert merged == direct == USERS
    assert FIRST_BLOCK_USERS + SECOND_BLOCK_USERS == 16_323 != merged

    connection.execute("SYSTEM START MERGES")
    connection.execute("OPTIMIZE TABLE daily_users FINAL")
    assert _rows(connection, "SELECT count() FROM daily_users") == [(1,)]
    assert _rows(connection, f"SELECT {count}Merge(users) FROM daily_users") == [(merged,)]


def test_into_a_plain_table_each_block_is_counted_and_the_view_says_so(
    connection: Connection,
) -> None:
    """A target without merges allows what ClickHouse allows; the view is marked unproven."""
    connection.execute(VISITS)
    connection.execute(
        "CREATE TABLE daily_users (day Date, users UInt64) ENGINE = MergeTree ORDER BY day"
    )
    connection.execute(
        """CREATE MATERIALIZED VIEW daily_users_mv TO daily_users AS
           SELECT toDate(at) AS day, uniqExact(user_id) AS users FROM visits GROUP BY day"""
    )
    _two_blocks(connection)
    assert _rows(connection, "SELECT users FROM daily_users ORDER BY users DESC") == [
        (FIRST_BLOCK_USERS,),
        (SECOND_BLOCK_USERS,),
    ]
    assert _rows(connection, "SELECT sum(users) FROM daily_users") == [(16_323,)]
    assert _rows(connection, "SELECT verdict, reason FROM system.views") == [
        (
            "unproven",
            "default.daily_users is a MergeTree: each block adds its own groups, which nothing joins.",
        )
    ]


@pytest.mark.parametrize("finished", ["avg(price)", "quantile(0.9)(price)", "median(price)"])
def test_an_average_of_averages_is_refused(connection: Connection, finished: str) -> None:
    with pytest.raises(ViewNotProvable, match="finished") as refused:
        connection.execute(
            f"""CREATE MATERIALIZED VIEW wrong_mv TO daily_sales AS
                SELECT toDate(created_at) AS day, product_id, {finished} AS total_revenue
                FROM sales GROUP BY day, product_id"""
        )
    assert "State" in refused.value.hint
    assert "AggregateFunction(" in refused.value.hint


def test_states_of_one_function_are_not_taken_for_another_s(connection: Connection) -> None:
    with pytest.raises(CannotConvertType, match="states of different functions"):
        connection.execute(MONTHLY_STATS_MV.replace("uniqState", "uniqExactState"))


# --- the other table of a JOIN --------------------------------------------------------------------


def test_a_changed_lookup_table_makes_the_view_stale_by_name(connection: Connection) -> None:
    """The trigger fires on the leftmost table only, but a change of the lookup table is
    recorded."""
    connection.execute(
        """CREATE TABLE products (product_id UInt32, category String) ENGINE = MergeTree
           ORDER BY product_id;
           INSERT INTO products SELECT number, 'tools' FROM numbers(1, 40);
           CREATE TABLE sales_by_category (day Date, category String, revenue Float64)
           ENGINE = SummingMergeTree ORDER BY (day, category)"""
    )
    select = """SELECT toDate(s.created_at) AS day, p.category AS category, sum(s.price) AS revenue
                FROM sales AS s INNER JOIN products AS p ON s.product_id = p.product_id
                GROUP BY day, category"""
    connection.execute(f"CREATE MATERIALIZED VIEW by_category_mv TO sales_by_category AS {select}")
    _sell(connection, "2024-01-05", 20_000)
    assert _view(connection, "by_category_mv")[0] == "covered"

    moved = "DELETE FROM products WHERE product_id <= 5"
    connection.execute(moved)
    connection.execute("INSERT INTO products SELECT number, 'toys' FROM numbers(1, 5)")
    assert _view(connection, "by_category_mv")[0] == "stale"
    causes = _rows(
        connection, "SELECT statement FROM system.view_invalidations WHERE view = 'by_category_mv'"
    )
    assert (moved,) in causes

    connection.execute("SYSTEM REPLAY VIEW by_category_mv STALE")
    assert _rows(
        connection,
        "SELECT day, category, sum(revenue) FROM sales_by_category GROUP BY day, category ORDER BY day, category",
    ) == _rows(connection, f"{select} ORDER BY day, category")
    connection.execute("SYSTEM RECONCILE VIEW by_category_mv")
    assert _view(connection, "by_category_mv")[0] == "proven"

"""The queries that analysts run, on a log of page views (see `data`), in two dialects.

The shapes are those of ClickBench: filters, groups of few and of many keys, tops, text, distinct
counts, joins, buckets of time, quantiles. Each has an ORDER BY that leaves no choice, so that the
answers can be compared row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cases import CHDB, DUCKDB, ENGINES, OLAPDB, Case, Group, clickhouse
from data import CLICKHOUSE_TYPES, DUCKDB_TYPES, MERGE_TREES, frequent_user

LOAD = "LOAD {table}"
"""Not SQL: `worker` fills the table from the Parquet file of that name."""


@dataclass(frozen=True)
class Query:
    """`duckdb` where its dialect needs other words; `tolerance`: of floats, relative."""

    name: str
    sql: str
    duckdb: str | None = None
    tolerance: float = 1e-9


FREQUENT_USER = frequent_user()
WIDTHS = ", ".join(f"sum(width + {n})" for n in range(30))

QUERIES: Sequence[Query] = (
    Query("SELECT 1", "SELECT 1"),
    Query("count()", "SELECT count() FROM hits"),
    Query("count with a filter", "SELECT count() FROM hits WHERE width <> 0 AND duration > 30"),
    Query("sum, avg, min, max", "SELECT sum(duration), avg(score), min(day), max(ts) FROM hits"),
    Query("sum of a decimal", "SELECT sum(price), max(price) FROM hits WHERE region < 100"),
    Query("30 sums of expressions", f"SELECT {WIDTHS} FROM hits"),
    Query(
        "sums with conditions",
        "SELECT site, countIf(duration > 60), sumIf(width, phrase = ''), avgIf(duration, width > 900)"
        " FROM hits GROUP BY site ORDER BY site",
        "SELECT site, count(*) FILTER (duration > 60), coalesce(sum(width) FILTER (phrase = ''), 0),"
        " avg(duration) FILTER (width > 900) FROM hits GROUP BY site ORDER BY site",
    ),
    Query(
        "GROUP BY a number, 250 keys",
        "SELECT region, count() AS c, avg(width) FROM hits GROUP BY region ORDER BY region",
    ),
    Query(
        "GROUP BY a text, 25 keys",
        "SELECT country, count(), sum(duration) FROM hits GROUP BY country ORDER BY country",
    ),
    Query(
        "GROUP BY three columns",
        "SELECT country, site, day, count() AS c FROM hits GROUP BY country, site, day"
        " ORDER BY c DESC, country, site, day LIMIT 10",
    ),
    Query(
        "GROUP BY user, top 10",
        "SELECT user, count() AS c, sum(duration) FROM hits GROUP BY user"
        " ORDER BY c DESC, user LIMIT 10",
    ),
    Query(
        "GROUP BY url, top 10",
        "SELECT url, count() AS c FROM hits GROUP BY url ORDER BY c DESC, url LIMIT 10",
    ),
    Query(
        "GROUP BY user and phrase, top 10",
        "SELECT user, phrase, count() AS c FROM hits WHERE phrase <> '' GROUP BY user, phrase"
        " ORDER BY c DESC, user, phrase LIMIT 10",
    ),
    Query(
        "GROUP BY an expression, HAVING",
        "SELECT if(width < 600, 'narrow', country) AS w, count() AS c, avg(length(url)) FROM hits"
        " GROUP BY w HAVING c > 10 ORDER BY w",
        "SELECT if(width < 600, 'narrow', country) AS w, count() AS c, avg(strlen(url)) FROM hits"
        " GROUP BY w HAVING c > 10 ORDER BY w",
    ),
    Query(
        "SELECT DISTINCT", "SELECT DISTINCT site, region FROM hits ORDER BY site, region LIMIT 100"
    ),
    Query("count DISTINCT user", "SELECT count(DISTINCT user) FROM hits"),
    Query("count DISTINCT phrase", "SELECT count(DISTINCT phrase) FROM hits"),
    Query(
        "count DISTINCT by site",
        "SELECT site, count(DISTINCT user) AS u FROM hits GROUP BY site ORDER BY u DESC, site"
        " LIMIT 10",
    ),
    Query(
        "uniq, approximate",
        "SELECT country, uniq(user) FROM hits GROUP BY country ORDER BY country",
        "SELECT country, approx_count_distinct(user) FROM hits GROUP BY country ORDER BY country",
        tolerance=0.3,
    ),
    Query("LIKE", "SELECT count() FROM hits WHERE url LIKE '%google%'"),
    Query(
        "LIKE, GROUP BY phrase",
        "SELECT phrase, min(url), count() AS c FROM hits"
        " WHERE url LIKE '%google%' AND phrase <> '' GROUP BY phrase ORDER BY c DESC, phrase"
        " LIMIT 10",
    ),
    Query(
        "a regular expression",
        "SELECT replaceRegexpOne(url, '^https?://(?:www\\\\.)?([^/]+)/.*$', '\\\\1') AS h,"
        " count(), min(url) FROM hits WHERE phrase <> '' GROUP BY h ORDER BY h",
        "SELECT regexp_replace(url, '^https?://(?:www\\.)?([^/]+)/.*$', '\\1') AS h,"
        " count(), min(url) FROM hits WHERE phrase <> '' GROUP BY h ORDER BY h",
    ),
    Query(
        "top 10 rows by a number",
        "SELECT id, user, price FROM hits ORDER BY price DESC, id LIMIT 10",
    ),
    Query(
        "top 10 rows of LIKE, all columns",
        "SELECT * FROM hits WHERE url LIKE '%google%' ORDER BY ts, id LIMIT 10",
    ),
    Query(
        "top 10 texts of a filter",
        "SELECT phrase, ts, id FROM hits WHERE phrase <> '' ORDER BY phrase, ts, id LIMIT 10",
    ),
    Query(
        "rows of one user",
        f"SELECT ts, url FROM hits WHERE user = {FREQUENT_USER} ORDER BY ts, url",
    ),
    Query(
        "a range of the key",
        "SELECT url, count() AS c FROM hits WHERE site = 11 AND day >= '2024-02-01'"
        " AND day < '2024-02-15' GROUP BY url ORDER BY c DESC, url LIMIT 10",
    ),
    Query(
        "sums by day",
        "SELECT day, count(), sum(duration), sum(price) FROM hits GROUP BY day ORDER BY day",
    ),
    Query(
        "sums by hour",
        "SELECT toStartOfHour(ts) AS h, count(), sum(duration) FROM hits GROUP BY h ORDER BY h",
        "SELECT date_trunc('hour', ts) AS h, count(), sum(duration) FROM hits GROUP BY h ORDER BY h",
    ),
    Query(
        "sums by month and country",
        "SELECT toStartOfMonth(day) AS m, country, sum(duration) FROM hits GROUP BY m, country"
        " ORDER BY m, country",
        "SELECT date_trunc('month', day)::DATE AS m, country, sum(duration) FROM hits"
        " GROUP BY m, country ORDER BY m, country",
    ),
    # The level is an odd one: the two definitions differ where level * rows is whole.
    Query(
        "exact quantile by country",
        "SELECT country, quantileExact(0.937)(duration) FROM hits GROUP BY country ORDER BY country",
        "SELECT country, quantile_disc(duration, 0.937) FROM hits GROUP BY country ORDER BY country",
    ),
    Query(
        "median, approximate",
        "SELECT median(duration), quantile(0.95)(duration) FROM hits",
        "SELECT approx_quantile(duration, 0.5), approx_quantile(duration, 0.95) FROM hits",
        tolerance=0.2,
    ),
    Query(
        "join of 200 sites",
        "SELECT s.kind, count() AS c, sum(h.duration) FROM hits AS h JOIN sites AS s"
        " ON h.site = s.site GROUP BY s.kind ORDER BY s.kind",
    ),
    Query(
        "join of the users",
        "SELECT u.plan, count() AS c, sum(h.price) FROM hits AS h JOIN users AS u"
        " ON h.user = u.user GROUP BY u.plan ORDER BY u.plan",
    ),
    Query(
        "LEFT JOIN of some users",
        "SELECT u.plan, count() AS c FROM hits AS h LEFT JOIN (SELECT user, plan FROM users"
        " WHERE plan <> 'free') AS u ON h.user = u.user GROUP BY u.plan ORDER BY c DESC, u.plan",
        "SELECT coalesce(u.plan, '') AS p, count() AS c FROM hits AS h LEFT JOIN (SELECT user, plan"
        " FROM users WHERE plan <> 'free') AS u ON h.user = u.user GROUP BY p ORDER BY c DESC, p",
    ),
    Query(
        "IN a subquery",
        "SELECT count(), sum(duration) FROM hits WHERE user IN (SELECT user FROM users"
        " WHERE plan = 'team' AND since >= '2022-01-01')",
    ),
    Query(
        "a CTE grouped twice",
        "WITH v AS (SELECT user, count() AS c FROM hits GROUP BY user)"
        " SELECT least(c, 50) AS n, count() FROM v GROUP BY n ORDER BY n",
    ),
    Query(
        "a twentieth of the rows, to Arrow",
        "SELECT id, ts, url, price, score FROM hits WHERE region < 12 ORDER BY id",
    ),
)


def reads(rows: int) -> Group:
    create = {
        **clickhouse(
            *(f"CREATE TABLE {t} ({c}) {MERGE_TREES[t]}" for t, c in CLICKHOUSE_TYPES.items())
        ),
        DUCKDB: [f"CREATE TABLE {t} ({c})" for t, c in DUCKDB_TYPES.items()],
    }
    load = [LOAD.format(table=table) for table in CLICKHOUSE_TYPES]
    settle = {
        **clickhouse(*(f"OPTIMIZE TABLE {t} FINAL" for t in CLICKHOUSE_TYPES)),
        DUCKDB: ["CHECKPOINT"],
    }
    return Group(
        "reads",
        f"Page views, {rows:,} rows of 13 columns in three monthly partitions sorted by site and "
        "time, and two dimensions; DuckDB's table in the same order. Merged (DuckDB: checkpointed), "
        "then read warm; results as Arrow. Settings as each engine comes.",
        [_case(query) for query in QUERIES],
        shared={engine: [*create[engine], *load, *settle[engine]] for engine in ENGINES},
    )


def cold(_: int) -> Group:
    """Return the same queries, each the first one that reads the tables in a new process."""
    return Group(
        "cold",
        "The same queries and tables. Each query is the first one that reads the tables in a new process, "
        "which has run SELECT 1; the files are in the page cache of the machine.",
        [replace(_case(query), cold=True) for query in QUERIES if "FROM" in query.sql],
    )


def _case(query: Query) -> Case:
    texts = {OLAPDB: query.sql, CHDB: query.sql, DUCKDB: query.duckdb or query.sql}
    return Case(
        query.name,
        {engine: (text,) for engine, text in texts.items()},
        check=texts,
        tolerance=query.tolerance,
        repeats=True,
    )

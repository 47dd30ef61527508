"""The shapes of ClickBench's 43 queries, on a table of visits of our own.

`visits` has the columns that the queries of ClickBench read, under other names, with values made of a
seed: skewed keys, texts that are mostly empty, long addresses. Each query has one more sort key than
ClickBench's where ties would leave a choice, so that answers can be compared row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cases import DUCKDB, ENGINES, OLAPDB, Case, Group, clickhouse
from data import HOSTS, WORDS, _scattered, _taken

START = np.datetime64("2013-07-01T00:00:00", "s")
DAYS = 31
COUNTERS = 2_000
MODELS = ("iPhone 2", "iPad", "Galaxy", "Lumia", "Xperia", "Desire", "Optimus", "Nexus")
WATCHED = 62
"""The counter that the last queries ask for."""

COLUMNS = {
    "watch_id": "UInt64",
    "event_time": "DateTime('UTC')",
    "event_date": "Date",
    "counter": "UInt32",
    "user_id": "UInt64",
    "region": "UInt32",
    "client_ip": "UInt32",
    "adv_engine": "UInt8",
    "screen_width": "UInt16",
    "search_engine": "UInt16",
    "phrase": "String",
    "phone": "UInt8",
    "phone_model": "String",
    "url": "String",
    "title": "String",
    "referer": "String",
    "is_refresh": "UInt8",
    "is_link": "UInt8",
    "is_download": "UInt8",
    "not_counted": "UInt8",
    "traffic_source": "Int16",
    "referer_hash": "Int64",
    "url_hash": "Int64",
    "window_width": "UInt16",
    "window_height": "UInt16",
}
KEY = "counter, event_date, user_id, event_time, watch_id"
DUCKDB_TYPES = {
    "UInt64": "UBIGINT",
    "UInt32": "UINTEGER",
    "UInt16": "USMALLINT",
    "UInt8": "UTINYINT",
    "Int16": "SMALLINT",
    "Int64": "BIGINT",
    "String": "VARCHAR",
    "Date": "DATE",
    "DateTime('UTC')": "TIMESTAMP",
}

_JULY = f"counter = {WATCHED} AND event_date >= '2013-07-01' AND event_date <= '2013-07-31'"
_VIEWS = f"{_JULY} AND is_refresh = 0"
_WIDTHS = ", ".join(f"sum(screen_width + {n})" for n in range(90))

QUERIES: Sequence[str] = (
    "SELECT count(*) FROM visits",
    "SELECT count(*) FROM visits WHERE adv_engine <> 0",
    "SELECT sum(adv_engine), count(*), avg(screen_width) FROM visits",
    "SELECT avg(user_id) FROM visits",
    "SELECT count(DISTINCT user_id) FROM visits",
    "SELECT count(DISTINCT phrase) FROM visits",
    "SELECT min(event_date), max(event_date) FROM visits",
    "SELECT adv_engine, count(*) AS c FROM visits WHERE adv_engine <> 0 GROUP BY adv_engine "
    "ORDER BY c DESC, adv_engine",
    "SELECT region, count(DISTINCT user_id) AS u FROM visits GROUP BY region "
    "ORDER BY u DESC, region LIMIT 10",
    "SELECT region, sum(adv_engine), count(*) AS c, avg(screen_width), count(DISTINCT user_id) "
    "FROM visits GROUP BY region ORDER BY c DESC, region LIMIT 10",
    "SELECT phone_model, count(DISTINCT user_id) AS u FROM visits WHERE phone_model <> '' "
    "GROUP BY phone_model ORDER BY u DESC, phone_model LIMIT 10",
    "SELECT phone, phone_model, count(DISTINCT user_id) AS u FROM visits WHERE phone_model <> '' "
    "GROUP BY phone, phone_model ORDER BY u DESC, phone, phone_model LIMIT 10",
    "SELECT phrase, count(*) AS c FROM visits WHERE phrase <> '' GROUP BY phrase "
    "ORDER BY c DESC, phrase LIMIT 10",
    "SELECT phrase, count(DISTINCT user_id) AS u FROM visits WHERE phrase <> '' GROUP BY phrase "
    "ORDER BY u DESC, phrase LIMIT 10",
    "SELECT search_engine, phrase, count(*) AS c FROM visits WHERE phrase <> '' "
    "GROUP BY search_engine, phrase ORDER BY c DESC, search_engine, phrase LIMIT 10",
    "SELECT user_id, count(*) AS c FROM visits GROUP BY user_id ORDER BY c DESC, user_id LIMIT 10",
    "SELECT user_id, phrase, count(*) AS c FROM visits GROUP BY user_id, phrase "
    "ORDER BY c DESC, user_id, phrase LIMIT 10",
    "SELECT user_id, phrase, count(*) AS c FROM visits GROUP BY user_id, phrase LIMIT 10",
    "SELECT user_id, {minute} AS m, phrase, count(*) AS c FROM visits GROUP BY user_id, m, phrase "
    "ORDER BY c DESC, user_id, m, phrase LIMIT 10",
    "SELECT user_id FROM visits WHERE user_id = {user}",
    "SELECT count(*) FROM visits WHERE url LIKE '%google%'",
    "SELECT phrase, min(url), count(*) AS c FROM visits WHERE url LIKE '%google%' AND phrase <> '' "
    "GROUP BY phrase ORDER BY c DESC, phrase LIMIT 10",
    "SELECT phrase, min(url), min(title), count(*) AS c, count(DISTINCT user_id) FROM visits "
    "WHERE title LIKE '%Google%' AND url NOT LIKE '%.google.%' AND phrase <> '' GROUP BY phrase "
    "ORDER BY c DESC, phrase LIMIT 10",
    "SELECT * FROM visits WHERE url LIKE '%google%' ORDER BY event_time, watch_id LIMIT 10",
    "SELECT phrase FROM visits WHERE phrase <> '' ORDER BY event_time, watch_id LIMIT 10",
    "SELECT phrase FROM visits WHERE phrase <> '' ORDER BY phrase LIMIT 10",
    "SELECT phrase FROM visits WHERE phrase <> '' ORDER BY event_time, phrase LIMIT 10",
    "SELECT counter, avg({length}(url)) AS l, count(*) AS c FROM visits WHERE url <> '' "
    "GROUP BY counter HAVING count(*) > {often} ORDER BY l DESC, counter LIMIT 25",
    "SELECT {host} AS host, avg({length}(referer)) AS l, count(*) AS c, min(referer) FROM visits "
    "WHERE referer <> '' GROUP BY host HAVING count(*) > {often} ORDER BY l DESC, host LIMIT 25",
    f"SELECT {_WIDTHS} FROM visits",
    "SELECT search_engine, client_ip, count(*) AS c, sum(is_refresh), avg(screen_width) FROM visits "
    "WHERE phrase <> '' GROUP BY search_engine, client_ip "
    "ORDER BY c DESC, search_engine, client_ip LIMIT 10",
    "SELECT watch_id, client_ip, count(*) AS c, sum(is_refresh), avg(screen_width) FROM visits "
    "WHERE phrase <> '' GROUP BY watch_id, client_ip ORDER BY c DESC, watch_id, client_ip LIMIT 10",
    "SELECT watch_id, client_ip, count(*) AS c, sum(is_refresh), avg(screen_width) FROM visits "
    "GROUP BY watch_id, client_ip ORDER BY c DESC, watch_id, client_ip LIMIT 10",
    "SELECT url, count(*) AS c FROM visits GROUP BY url ORDER BY c DESC, url LIMIT 10",
    "SELECT 1, url, count(*) AS c FROM visits GROUP BY 1, url ORDER BY c DESC, url LIMIT 10",
    "SELECT client_ip, client_ip - 1, client_ip - 2, client_ip - 3, count(*) AS c FROM visits "
    "GROUP BY client_ip, client_ip - 1, client_ip - 2, client_ip - 3 "
    "ORDER BY c DESC, client_ip LIMIT 10",
    f"SELECT url, count(*) AS views FROM visits WHERE {_VIEWS} AND not_counted = 0 AND url <> '' "
    "GROUP BY url ORDER BY views DESC, url LIMIT 10",
    f"SELECT title, count(*) AS views FROM visits WHERE {_VIEWS} AND not_counted = 0 "
    "AND title <> '' GROUP BY title ORDER BY views DESC, title LIMIT 10",
    f"SELECT url, count(*) AS views FROM visits WHERE {_VIEWS} AND is_link <> 0 "
    "AND is_download = 0 GROUP BY url ORDER BY views DESC, url LIMIT 10 OFFSET 100",
    "SELECT traffic_source, search_engine, adv_engine, "
    "CASE WHEN search_engine = 0 AND adv_engine = 0 THEN referer ELSE '' END AS src, url AS dst, "
    f"count(*) AS views FROM visits WHERE {_VIEWS} GROUP BY traffic_source, search_engine, "
    "adv_engine, src, dst ORDER BY views DESC, traffic_source, search_engine, adv_engine, src, dst "
    "LIMIT 10 OFFSET 100",
    f"SELECT url_hash, event_date, count(*) AS views FROM visits WHERE {_VIEWS} "
    "AND traffic_source IN (-1, 6) AND referer_hash = {referer_hash} GROUP BY url_hash, event_date "
    "ORDER BY views DESC, url_hash, event_date LIMIT 10",
    f"SELECT window_width, window_height, count(*) AS views FROM visits WHERE {_VIEWS} "
    "AND not_counted = 0 AND url_hash = {url_hash} GROUP BY window_width, window_height "
    "ORDER BY views DESC, window_width, window_height LIMIT 10",
    f"SELECT {{minute_of}} AS m, count(*) AS views FROM visits WHERE {_VIEWS} "
    "AND event_date >= '2013-07-14' AND event_date <= '2013-07-15' AND not_counted = 0 "
    "GROUP BY m ORDER BY m LIMIT 10 OFFSET 10",
)
UNORDERED = 17
"""The position of the query whose LIMIT may keep any groups; all of them are compared."""
_ALL_GROUPS = (
    "SELECT count(*), sum(c), max(c) FROM "
    "(SELECT user_id, phrase, count(*) AS c FROM visits GROUP BY user_id, phrase) AS all_groups"
)
_WORDS = {
    OLAPDB: {
        "minute": "toMinute(event_time)",
        "minute_of": "toStartOfMinute(event_time)",
        "length": "length",
        "host": "replaceRegexpOne(referer, '^https?://(?:www\\\\.)?([^/]+)/.*$', '\\\\1')",
    },
    DUCKDB: {
        "minute": "minute(event_time)",
        "minute_of": "date_trunc('minute', event_time)",
        "length": "strlen",
        "host": "regexp_replace(referer, '^https?://(?:www\\.)?([^/]+)/.*$', '\\1')",
    },
}


def query(number: int, engine: str, rows: int) -> str:
    """Return the query of this position for a table of so many rows."""
    words: Mapping[str, object] = _WORDS[DUCKDB if engine == DUCKDB else OLAPDB]
    return QUERIES[number].format(
        **words,
        user=_users(np.zeros(1))[0],
        often=rows // 1000,
        url_hash=_hash(np.zeros(1))[0],
        referer_hash=_hash(np.ones(1))[0],
    )


def clickbench(rows: int) -> Group:
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    theirs = ", ".join(f"{name} {DUCKDB_TYPES[kind]}" for name, kind in COLUMNS.items())
    return Group(
        "clickbench",
        f"The shapes of ClickBench's 43 queries on {rows:,} rows of 25 columns, sorted as "
        "ClickBench's table is; results as Arrow.",
        [_case(number, rows) for number in range(len(QUERIES))],
        {
            **clickhouse(
                f"CREATE TABLE visits ({columns}) ENGINE = MergeTree ORDER BY ({KEY})",
                "LOAD visits",
                "OPTIMIZE TABLE visits FINAL",
            ),
            DUCKDB: [f"CREATE TABLE visits ({theirs})", "LOAD visits", "CHECKPOINT"],
        },
    )


def _case(number: int, rows: int) -> Case:
    texts = {engine: query(number, engine, rows) for engine in ENGINES}
    return Case(
        f"C{number}",
        {engine: (text,) for engine, text in texts.items()},
        check=dict.fromkeys(ENGINES, _ALL_GROUPS) if number == UNORDERED else texts,
        repeats=True,
    )


def write_clickbench(folder: Path, rows: int) -> None:
    """Write the Parquet file of the table, sorted by its key."""
    random = np.random.default_rng(43)
    seconds = random.integers(0, DAYS * 86_400, rows)
    counter = (COUNTERS * random.random(rows) ** 3).astype(np.int64)
    user = _users((max(50, rows // 6) * random.random(rows) ** 2).astype(np.int64))
    watch = _scattered(np.arange(rows) + 7)
    order = np.lexsort((watch, seconds, user, seconds // 86_400, counter))
    seconds, counter, user, watch = (v[order] for v in (seconds, counter, user, watch))
    ts = START + seconds.astype("timedelta64[s]")
    address = _scattered((user >> np.uint64(3)) % np.uint64(rows // 5 + 1)).astype(np.uint32)
    table = {
        "watch_id": watch,
        "event_time": pa.array(ts),
        "event_date": pa.array(ts.astype("datetime64[D]")),
        "counter": (counter + WATCHED - 1).astype(np.uint32),
        "user_id": user,
        "region": (5_000 * random.random(rows) ** 4).astype(np.uint32),
        "client_ip": address | np.uint32(1 << 24),  # DuckDB refuses a difference below 0
        **_texts(rows, random),
        **_flags(rows, random),
    }
    pq.write_table(pa.table({name: table[name] for name in COLUMNS}), folder / "visits.parquet")


def _texts(rows: int, random: np.random.Generator) -> dict[str, object]:
    """Addresses, titles, phrases and models, and what goes with them."""
    phrases = max(20, rows // 15)
    phrase = (phrases * random.random(rows) ** 2).astype(np.int64) + 1
    phrase[random.random(rows) < 0.87] = 0
    addresses = max(50, rows // 6)
    url = (addresses * random.random(rows) ** 4).astype(np.int64)
    referer = (addresses * random.random(rows) ** 3).astype(np.int64)
    referer[random.random(rows) < 0.19] = -1
    model = random.integers(1, len(MODELS) * 20, rows)
    model[random.random(rows) < 0.95] = 0
    return {
        "phrase": _taken(["", *(_phrase(n) for n in range(phrases))], phrase),
        "search_engine": np.where(phrase > 0, phrase % 40 + 1, 0).astype(np.uint16),
        "phone": (model % 90).astype(np.uint8),
        "phone_model": _taken(["", *(f"{MODELS[n % 8]} {n}" for n in range(160))], model),
        "url": _taken([_address(n) for n in range(addresses)], url),
        "title": _taken([_title(n) for n in range(addresses // 2 + 1)], url // 2),
        "referer": _taken(["", *(_address(n) for n in range(addresses))], referer + 1),
        "url_hash": _hash(url),
        "referer_hash": _hash(referer + 1),
    }


def _flags(rows: int, random: np.random.Generator) -> dict[str, object]:
    def rarely(share: float) -> np.ndarray:
        return (random.random(rows) < share).astype(np.uint8)

    sources = np.array([-1, 0, 1, 2, 3, 5, 6], np.int16)
    return {
        "adv_engine": random.integers(1, 60, rows).astype(np.uint8) * rarely(0.006),
        "screen_width": (random.integers(0, 20, rows) * 96).astype(np.uint16),
        "is_refresh": rarely(0.1),
        "is_link": rarely(0.05),
        "is_download": rarely(0.01),
        "not_counted": rarely(0.08),
        "traffic_source": sources[random.integers(0, len(sources), rows)],
        "window_width": (random.integers(0, 120, rows) * 16).astype(np.uint16),
        "window_height": (random.integers(0, 60, rows) * 16).astype(np.uint16),
    }


def _users(number: np.ndarray) -> np.ndarray:
    """Identifiers below 2**40: ClickHouse adds those of an avg up in 64 bits."""
    return _scattered(number.astype(np.int64) + 5_000_000) >> np.uint64(23)


def _hash(number: np.ndarray) -> np.ndarray:
    return _scattered(number.astype(np.int64) + 9_000_000).astype(np.int64)


def _phrase(number: int) -> str:
    return f"{WORDS[number % 14]} {HOSTS[number // 14 % 15]} {number}"


def _address(number: int) -> str:
    host = HOSTS[number * 7 % 15]
    where = f"{WORDS[number % 14]}/{WORDS[number // 14 % 14]}"
    return f"http://www.{host}{number % 97}.example/{where}/page-{number}.html?from={number % 13}"


def _title(number: int) -> str:
    host = HOSTS[number * 3 % 15].capitalize()
    return f"{WORDS[number % 14]} {WORDS[number // 7 % 14]} offers on {host} | number {number}"

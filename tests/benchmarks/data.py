"""The rows that the engines get: the same for all, made of a seed.

`hits` is a log of page views as analysts keep one: a key of few sites, many users of whom some come
often, long texts, phrases that are mostly empty, numbers, decimals and NULLs. `users` and `sites`
are its dimensions.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DAYS = 91
SITES = 200
START = np.datetime64("2024-01-01T00:00:00", "s")
COUNTRIES = [
    "Argentina",
    "Australia",
    "Austria",
    "Brazil",
    "Canada",
    "Chile",
    "China",
    "Denmark",
    "Egypt",
    "Finland",
    "France",
    "Germany",
    "Ghana",
    "India",
    "Italy",
    "Japan",
    "Kenya",
    "Mexico",
    "Norway",
    "Peru",
    "Poland",
    "Spain",
    "Sweden",
    "Turkey",
    "Vietnam",
]
HOSTS = [
    "news",
    "shop",
    "mail",
    "maps",
    "google",
    "video",
    "music",
    "forum",
    "photo",
    "sport",
    "travel",
    "books",
    "games",
    "weather",
    "recipes",
]
WORDS = [
    "red",
    "green",
    "blue",
    "old",
    "new",
    "cheap",
    "fast",
    "small",
    "large",
    "best",
    "near",
    "open",
    "free",
    "live",
]
PLANS = ("free", "basic", "plus", "team")
KINDS = ("news", "shop", "social", "tool", "video")

CLICKHOUSE_TYPES = {
    "hits": "id UInt64, ts DateTime('UTC'), day Date, site UInt32, user UInt64, region UInt16, "
    "country LowCardinality(String), url String, phrase String, width UInt16, duration UInt32, "
    "price Decimal(10, 2), score Nullable(Float64)",
    "users": "user UInt64, plan LowCardinality(String), since Date",
    "sites": "site UInt32, kind LowCardinality(String), name String",
}
DUCKDB_TYPES = {
    "hits": "id UBIGINT, ts TIMESTAMP, day DATE, site UINTEGER, user UBIGINT, region USMALLINT, "
    "country VARCHAR, url VARCHAR, phrase VARCHAR, width USMALLINT, duration UINTEGER, "
    "price DECIMAL(10, 2), score DOUBLE",
    "users": "user UBIGINT, plan VARCHAR, since DATE",
    "sites": "site UINTEGER, kind VARCHAR, name VARCHAR",
}
MERGE_TREES = {
    "hits": "ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY (site, ts, id)",
    "users": "ENGINE = MergeTree ORDER BY user",
    "sites": "ENGINE = MergeTree ORDER BY site",
}


@cache
def inserted(count: int) -> pa.Table:
    """Return the rows that the INSERTs of Python write: a number, a day, a name and a float."""
    numbers = np.arange(count)
    day = np.datetime64("2024-01-01") + numbers % 28
    names = pa.array([str(name) for name in range(10)]).take(pa.array(numbers % 10))
    return pa.table(
        {"k": numbers.astype(np.uint64), "day": pa.array(day), "name": names, "v": numbers / 7}
    )


def write_reads(folder: Path, rows: int) -> dict[str, Path]:
    """Write a Parquet file for each table of the reads."""
    tables = {"hits": hits(rows), "users": users(rows), "sites": sites()}
    paths = {name: folder / f"{name}.parquet" for name in tables}
    for name, table in tables.items():
        pq.write_table(table, paths[name])
    return paths


def hits(rows: int) -> pa.Table:
    """Sorted by month, site and time, as MergeTree keeps them: no engine gets a better order."""
    random = np.random.default_rng(7)
    ts = START + random.integers(0, DAYS * 86_400, rows).astype("timedelta64[s]")
    site = (SITES * random.random(rows) ** 2).astype(np.uint32)
    order = np.lexsort((ts, site, ts.astype("datetime64[M]")))
    ts, site = ts[order], site[order]
    url = (_url_count(rows) * random.random(rows) ** 2).astype(np.int64)
    phrase = (_phrase_count(rows) * random.random(rows) ** 2).astype(np.int64) + 1
    phrase[random.random(rows) < 0.85] = 0
    return pa.table(
        {
            "id": _scattered(np.arange(rows)),
            "ts": pa.array(ts),
            "day": pa.array(ts.astype("datetime64[D]")),
            "site": site,
            "user": _user(_users_of(random, rows)),
            "region": random.integers(0, 250, rows).astype(np.uint16),
            "country": _taken(COUNTRIES, (len(COUNTRIES) * random.random(rows) ** 1.5)),
            "url": _taken(_urls(_url_count(rows)), url),
            "phrase": _taken(["", *_phrases(_phrase_count(rows))], phrase),
            "width": (random.integers(0, 16, rows) * 120).astype(np.uint16),
            "duration": random.exponential(60, rows).astype(np.uint32),
            "price": _decimals(random.integers(0, 100_000, rows)),
            "score": pa.array(random.normal(0, 1, rows), mask=random.random(rows) < 0.1),
        }
    )


def users(rows: int) -> pa.Table:
    """Return each user of `hits(rows)` and as many who never came."""
    number = np.arange(2 * _user_count(rows))
    since = np.datetime64("2020-01-01", "D") + number * 37 % 1400
    return pa.table(
        {"user": _user(number), "plan": _taken(PLANS, number % 4), "since": pa.array(since)}
    )


def sites() -> pa.Table:
    number = np.arange(SITES)
    names = pa.array([f"site {n}" for n in number])
    return pa.table(
        {"site": number.astype(np.uint32), "kind": _taken(KINDS, number % 5), "name": names}
    )


def frequent_user() -> int:
    """Return the user who comes most often."""
    return int(_user(np.zeros(1, np.int64))[0])


def _users_of(random: np.random.Generator, rows: int) -> np.ndarray:
    return (_user_count(rows) * random.random(rows) ** 2).astype(np.int64)


def _user(number: np.ndarray) -> np.ndarray:
    return _scattered(number + 1_000_000)


def _scattered(number: np.ndarray) -> np.ndarray:
    """Identifiers without order, below 2**63."""
    return (number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(1)


def _user_count(rows: int) -> int:
    return max(50, rows // 20)


def _url_count(rows: int) -> int:
    return max(50, rows // 30)


def _phrase_count(rows: int) -> int:
    return max(20, rows // 100)


def _urls(count: int) -> list[str]:
    return [
        f"https://www.{HOSTS[n * 7 % 15]}.example/{WORDS[n % 14]}/{WORDS[n // 14 % 14]}-{n}"
        for n in range(count)
    ]


def _phrases(count: int) -> list[str]:
    return [f"{WORDS[n % 14]} {HOSTS[n // 14 % 15]} {n}" for n in range(count)]


def _taken(texts: list[str] | tuple[str, ...], indices: np.ndarray) -> pa.Array:
    return pa.array(texts).take(pa.array(np.asarray(indices).astype(np.int64)))


def _decimals(hundredths: np.ndarray) -> pa.Array:
    """Decimal(10, 2); in memory a decimal is 128 bits, the low half first."""
    halves = np.zeros((len(hundredths), 2), np.int64)
    halves[:, 0] = hundredths
    buffers = [None, pa.py_buffer(halves)]
    return pa.Array.from_buffers(pa.decimal128(10, 2), len(hundredths), buffers)

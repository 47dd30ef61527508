"""The Star Schema Benchmark (O'Neil, O'Neil, Chen 2009): 13 queries on joins, and 13 on a flat table.

The rows are made of a seed, with the domains and relations of the specification: a scale factor has six
million lines. The flat table is made of the others by each engine, untimed. Its queries are those of
ClickHouse's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cases import DUCKDB, ENGINES, OLAPDB, Case, Group, clickhouse

LINES, CUSTOMERS, SUPPLIERS, PARTS = 6_000_000, 30_000, 2_000, 200_000
"""Rows at scale factor 1."""
FIRST_DAY, DAYS = np.datetime64("1992-01-01"), 2_556
ORDERED_DAYS = 2_406
"""Days on which something is ordered: the first ones."""
NATIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
CITIES_OF_NATION, CITY_LETTERS = 10, 9
MANUFACTURERS, CATEGORIES, BRANDS = 5, 5, 40
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

TABLES = {
    "dates": (
        "d_datekey UInt32, d_date Date, d_year UInt16, d_yearmonthnum UInt32, d_yearmonth String, "
        "d_weeknuminyear UInt8",
        "d_datekey",
    ),
    "ssb_customer": (
        "c_custkey UInt32, c_name String, c_city String, c_nation String, c_region String",
        "c_custkey",
    ),
    "ssb_supplier": (
        "s_suppkey UInt32, s_name String, s_city String, s_nation String, s_region String",
        "s_suppkey",
    ),
    "ssb_part": (
        "p_partkey UInt32, p_mfgr String, p_category String, p_brand1 String, p_size UInt8",
        "p_partkey",
    ),
    "lineorder": (
        "lo_orderkey UInt32, lo_linenumber UInt8, lo_custkey UInt32, lo_partkey UInt32, "
        "lo_suppkey UInt32, lo_orderdate UInt32, lo_quantity UInt8, lo_extendedprice UInt32, "
        "lo_discount UInt8, lo_revenue UInt32, lo_supplycost UInt32",
        "lo_orderdate, lo_orderkey",
    ),
}
"""Columns and sorting key of each table, as ClickHouse writes them."""
FLAT_COLUMNS = (
    "lo_orderdate Date, lo_orderkey UInt32, lo_quantity UInt8, lo_extendedprice UInt32, "
    "lo_discount UInt8, lo_revenue UInt32, lo_supplycost UInt32, c_city String, c_nation String, "
    "c_region String, s_city String, s_nation String, s_region String, p_mfgr String, "
    "p_category String, p_brand1 String"
)
FLAT = (
    "INSERT INTO lineorder_flat SELECT d_date, lo_orderkey, lo_quantity, lo_extendedprice, "
    "lo_discount, lo_revenue, lo_supplycost, c_city, c_nation, c_region, s_city, s_nation, s_region, "
    "p_mfgr, p_category, p_brand1 FROM lineorder JOIN dates ON lo_orderdate = d_datekey "
    "JOIN ssb_customer ON lo_custkey = c_custkey JOIN ssb_supplier ON lo_suppkey = s_suppkey "
    "JOIN ssb_part ON lo_partkey = p_partkey"
)
DUCKDB_TYPES = {
    " UInt32": " UINTEGER",
    " UInt16": " USMALLINT",
    " UInt8": " UTINYINT",
    " String": " VARCHAR",
    " Date": " DATE",
}

_JOINED = {
    "Q1": "SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM lineorder, dates "
    "WHERE lo_orderdate = d_datekey AND {}",
    "Q2": "SELECT sum(lo_revenue) AS lo_revenue_sum, d_year, p_brand1 "
    "FROM lineorder, dates, ssb_part, ssb_supplier WHERE lo_orderdate = d_datekey "
    "AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey AND {} "
    "GROUP BY d_year, p_brand1 ORDER BY d_year, p_brand1",
    "Q3": "SELECT {1}, {2}, d_year, sum(lo_revenue) AS revenue "
    "FROM ssb_customer, lineorder, ssb_supplier, dates WHERE lo_custkey = c_custkey "
    "AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND {0} "
    "GROUP BY {1}, {2}, d_year ORDER BY d_year, revenue DESC, {1}, {2}",
    "Q4": "SELECT d_year, {1}, sum(lo_revenue - lo_supplycost) AS profit "
    "FROM dates, ssb_customer, ssb_supplier, ssb_part, lineorder WHERE lo_custkey = c_custkey "
    "AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey AND {0} "
    "GROUP BY d_year, {1} ORDER BY d_year, {1}",
}
_CITIES = "({0}_city = 'UNITED KI1' OR {0}_city = 'UNITED KI5')"
_BOTH_CITIES = f"{_CITIES.format('c')} AND {_CITIES.format('s')}"
_MAKERS = "(p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2')"
_CITY, _NATION = ("c_city", "s_city"), ("c_nation", "s_nation")
QUERIES: dict[str, tuple[str, ...]] = {
    "Q1.1": ("{year} = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25",),
    "Q1.2": ("{month} = 199401 AND lo_discount BETWEEN 4 AND 6 AND lo_quantity BETWEEN 26 AND 35",),
    "Q1.3": (
        "{week} = 6 AND {year} = 1994 AND lo_discount BETWEEN 5 AND 7 "
        "AND lo_quantity BETWEEN 26 AND 35",
    ),
    "Q2.1": ("p_category = 'MFGR#12' AND s_region = 'AMERICA'",),
    "Q2.2": ("p_brand1 BETWEEN 'MFGR#2221' AND 'MFGR#2228' AND s_region = 'ASIA'",),
    "Q2.3": ("p_brand1 = 'MFGR#2239' AND s_region = 'EUROPE'",),
    "Q3.1": (
        "c_region = 'ASIA' AND s_region = 'ASIA' AND {year} >= 1992 AND {year} <= 1997",
        *_NATION,
    ),
    "Q3.2": (
        "c_nation = 'UNITED STATES' AND s_nation = 'UNITED STATES' AND {year} >= 1992 "
        "AND {year} <= 1997",
        *_CITY,
    ),
    "Q3.3": (f"{_BOTH_CITIES} AND {{year}} >= 1992 AND {{year}} <= 1997", *_CITY),
    "Q3.4": (f"{_BOTH_CITIES} AND {{month_name}}", *_CITY),
    "Q4.1": (f"c_region = 'AMERICA' AND s_region = 'AMERICA' AND {_MAKERS}", "c_nation"),
    "Q4.2": (
        f"c_region = 'AMERICA' AND s_region = 'AMERICA' AND ({{year}} = 1997 OR {{year}} = 1998) "
        f"AND {_MAKERS}",
        "s_nation, p_category",
    ),
    "Q4.3": (
        "c_region = 'AMERICA' AND s_nation = 'UNITED STATES' "
        "AND ({year} = 1997 OR {year} = 1998) AND p_category = 'MFGR#14'",
        "s_city, p_brand1",
    ),
}
"""The conditions of each query, then the columns that it groups by besides those of its flight."""
_FLAT = {
    "Q1": "SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM lineorder_flat WHERE {}",
    "Q2": "SELECT sum(lo_revenue) AS lo_revenue_sum, {year} AS year, p_brand1 FROM lineorder_flat "
    "WHERE {0} GROUP BY year, p_brand1 ORDER BY year, p_brand1",
    "Q3": "SELECT {1}, {2}, {year} AS year, sum(lo_revenue) AS revenue FROM lineorder_flat "
    "WHERE {0} GROUP BY {1}, {2}, year ORDER BY year, revenue DESC, {1}, {2}",
    "Q4": "SELECT {year} AS year, {1}, sum(lo_revenue - lo_supplycost) AS profit "
    "FROM lineorder_flat WHERE {0} GROUP BY year, {1} ORDER BY year, {1}",
}
_OF_DATES = {
    "year": "d_year",
    "month": "d_yearmonthnum",
    "week": "d_weeknuminyear",
    "month_name": "d_yearmonth = 'Dec1997'",
}
_OF_DAY = {
    "year": "toYear(lo_orderdate)",
    "month": "toYYYYMM(lo_orderdate)",
    "week": "toISOWeek(lo_orderdate)",
    "month_name": "toYYYYMM(lo_orderdate) = 199712",
}
_OF_DUCKDB_DAY = {
    "year": "year(lo_orderdate)",
    "month": "(year(lo_orderdate) * 100 + month(lo_orderdate))",
    "week": "weekofyear(lo_orderdate)",
    "month_name": "year(lo_orderdate) * 100 + month(lo_orderdate) = 199712",
}


def joined_query(name: str) -> str:
    """Return a query on the five tables; the same words for all engines."""
    condition, *columns = QUERIES[name]
    return _JOINED[name[:2]].format(condition.format(**_OF_DATES), *columns)


def flat_query(name: str, engine: str) -> str:
    words = _OF_DUCKDB_DAY if engine == DUCKDB else _OF_DAY
    condition, *columns = QUERIES[name]
    return _FLAT[name[:2]].format(condition.format(**words), *columns, **words)


def ssb(scale: float) -> Group:
    return Group(
        "ssb",
        f"Star Schema Benchmark, scale factor {scale:g} ({round(LINES * scale):,} lines): 13 queries "
        "on five tables, then 13 on one flat table. Sorted by day; results as Arrow.",
        list(_cases()),
        {**clickhouse(*_tables(OLAPDB)), DUCKDB: list(_tables(DUCKDB))},
    )


def _cases() -> Iterator[Case]:
    for name in QUERIES:
        query = joined_query(name)
        texts = dict.fromkeys(ENGINES, query)
        yield Case(f"{name}, joins", dict.fromkeys(ENGINES, (query,)), check=texts, repeats=True)
    for name in QUERIES:
        texts = {engine: flat_query(name, engine) for engine in ENGINES}
        timed = {engine: (text,) for engine, text in texts.items()}
        yield Case(f"{name}, flat", timed, check=texts, repeats=True)


def _tables(engine: str) -> Iterator[str]:
    """Return the statements that make and fill an engine's tables."""
    for table, (columns, key) in TABLES.items():
        yield _create(table, columns, f"ENGINE = MergeTree ORDER BY ({key})", engine)
        yield f"LOAD {table}"
    order = (
        "ENGINE = MergeTree PARTITION BY toYear(lo_orderdate) ORDER BY (lo_orderdate, lo_orderkey)"
    )
    yield _create("lineorder_flat", FLAT_COLUMNS, order, engine)
    yield FLAT + (" ORDER BY lo_orderdate, lo_orderkey" if engine == DUCKDB else "")
    if engine == DUCKDB:
        yield "CHECKPOINT"
    else:
        yield "OPTIMIZE TABLE lineorder FINAL"
        yield "OPTIMIZE TABLE lineorder_flat FINAL"


def _create(table: str, columns: str, order: str, engine: str) -> str:
    if engine != DUCKDB:
        return f"CREATE TABLE {table} ({columns}) {order}"
    for theirs, types in DUCKDB_TYPES.items():
        columns = columns.replace(theirs, types)
    return f"CREATE TABLE {table} ({columns})"


def write_ssb(folder: Path, scale: float) -> None:
    """Write a Parquet file for each table."""
    sizes = [max(20, round(n * scale)) for n in (CUSTOMERS, SUPPLIERS, PARTS, LINES)]
    customers, suppliers, parts, lines = sizes
    random = np.random.default_rng(11)
    tables = {
        "dates": _dates(),
        "ssb_customer": _places("c", "custkey", "Customer", customers, random),
        "ssb_supplier": _places("s", "suppkey", "Supplier", suppliers, random),
        "ssb_part": _parts(parts, random),
        "lineorder": _lineorder(lines, customers, suppliers, parts, random),
    }
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")


def _dates() -> pa.Table:
    days = FIRST_DAY + np.arange(DAYS)
    years = days.astype("datetime64[Y]").astype(int) + 1970
    months = days.astype("datetime64[M]").astype(int) % 12 + 1
    # The week of ISO 8601 is that of its Thursday, as the flat queries ask for it.
    thursdays = days - (days.astype(int) + 3) % 7 + 3
    weeks = (thursdays - thursdays.astype("datetime64[Y]")).astype(int) // 7 + 1
    return pa.table(
        {
            "d_datekey": _datekeys(days),
            "d_date": pa.array(days),
            "d_year": years.astype(np.uint16),
            "d_yearmonthnum": (years * 100 + months).astype(np.uint32),
            "d_yearmonth": [f"{MONTHS[m - 1]}{y}" for y, m in zip(years, months, strict=True)],
            "d_weeknuminyear": weeks.astype(np.uint8),
        }
    )


def _datekeys(days: np.ndarray) -> np.ndarray:
    """Days as the numbers of their digits: 19920101."""
    months = days.astype("datetime64[M]")
    month_number = months.astype(int)
    day = (days - months).astype(int) + 1
    keys: np.ndarray = (month_number // 12 + 1970) * 10_000 + (month_number % 12 + 1) * 100 + day
    return keys.astype(np.uint32)


def _places(prefix: str, key: str, name: str, rows: int, random: np.random.Generator) -> pa.Table:
    """Customers or suppliers: each in one of 250 cities."""
    nations = [(nation, region) for region, names in NATIONS.items() for nation in names]
    city = random.integers(0, len(nations) * CITIES_OF_NATION, rows)
    cities = [f"{n[:CITY_LETTERS]:<{CITY_LETTERS}}{i}" for n, _ in nations for i in range(10)]
    nation = city // CITIES_OF_NATION
    number = np.arange(1, rows + 1)
    return pa.table(
        {
            f"{prefix}_{key}": number.astype(np.uint32),
            f"{prefix}_name": [f"{name}#{n:09}" for n in number],
            f"{prefix}_city": pa.array(cities).take(pa.array(city)),
            f"{prefix}_nation": pa.array([n for n, _ in nations]).take(pa.array(nation)),
            f"{prefix}_region": pa.array([r for _, r in nations]).take(pa.array(nation)),
        }
    )


def _parts(rows: int, random: np.random.Generator) -> pa.Table:
    maker = random.integers(1, MANUFACTURERS + 1, rows)
    category = random.integers(1, CATEGORIES + 1, rows)
    brand = random.integers(1, BRANDS + 1, rows)
    triples = list(zip(maker, category, brand, strict=True))
    return pa.table(
        {
            "p_partkey": np.arange(1, rows + 1, dtype=np.uint32),
            "p_mfgr": [f"MFGR#{m}" for m in maker],
            "p_category": [f"MFGR#{m}{c}" for m, c, _ in triples],
            "p_brand1": [f"MFGR#{m}{c}{b}" for m, c, b in triples],
            "p_size": random.integers(1, 51, rows).astype(np.uint8),
        }
    )


def _lineorder(
    rows: int, customers: int, suppliers: int, parts: int, random: np.random.Generator
) -> pa.Table:
    """Lines of orders of four on average, in the order of their keys; an order has one day and one
    customer."""
    sizes = random.integers(1, 8, rows // 4 + rows // 20 + 8)
    order = np.repeat(np.arange(len(sizes)), sizes)[:rows]
    starts = np.cumsum(sizes) - sizes
    day = FIRST_DAY + random.integers(0, ORDERED_DAYS, len(sizes))
    customer = random.integers(1, customers + 1, len(sizes))
    quantity = random.integers(1, 51, rows)
    price = quantity * random.integers(900, 2_100, rows)
    discount = random.integers(0, 11, rows)
    numbers = {
        "lo_orderkey": order + 1,
        "lo_linenumber": np.arange(rows) - starts[order] + 1,
        "lo_custkey": customer[order],
        "lo_partkey": random.integers(1, parts + 1, rows),
        "lo_suppkey": random.integers(1, suppliers + 1, rows),
        "lo_orderdate": _datekeys(day)[order],
        "lo_quantity": quantity,
        "lo_extendedprice": price,
        "lo_discount": discount,
        "lo_revenue": price * (100 - discount) // 100,
        "lo_supplycost": price * 6 // 10,
    }
    narrow = {"lo_linenumber", "lo_quantity", "lo_discount"}
    return pa.table(
        {n: v.astype(np.uint8 if n in narrow else np.uint32) for n, v in numbers.items()}
    )

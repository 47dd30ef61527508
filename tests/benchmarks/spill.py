"""Queries that need more memory than they may have, beside DuckDB under the same limit.

The limit is a quarter of what olapdb needs without one; for ORDER BY a third, since DuckDB fails with a quarter.
"""

from __future__ import annotations

from cases import DUCKDB, OLAPDB, Case, Group

LIMIT_BYTES_MIN = 160 << 20
"""DuckDB fails with less, whatever the query. So three million rows or more have to spill."""
FACTORS = {"left_rows": 48_271, "right_rows": 69_621}
"""The steps by which the keys are scattered: of a table of `10 ** n` rows each has another key."""
NEEDED = {"group": 100, "join": 80, "sort": 64}
"""Bytes a row that each query holds without a limit, about."""
SHARES = {"group": 4, "join": 4, "sort": 3}
"""The limit is what is needed, divided by this."""
SORTED = (
    "SELECT count(), sum(k), max(v) FROM (SELECT k, v FROM (SELECT * FROM left_rows UNION ALL "
    "SELECT * FROM right_rows) AS both_sides ORDER BY k, v LIMIT {limit}) AS sorted_rows"
)
"""All but the last row: the answer is small, since DuckDB counts that too."""


def spill(rows: int) -> Group:
    create = "CREATE TABLE {} (k {}, v {})"
    kinds = {OLAPDB: ("UInt64", "UInt64"), DUCKDB: ("UBIGINT", "UBIGINT")}
    ours = [
        *(
            f"{create.format(name, *kinds[OLAPDB])} ENGINE = MergeTree ORDER BY tuple()"
            for name in ("left_rows", "right_rows")
        ),
        *(f"INSERT INTO {name} {_rows(OLAPDB, rows, by)}" for name, by in FACTORS.items()),
    ]
    theirs = [
        *(create.format(name, *kinds[DUCKDB]) for name in ("left_rows", "right_rows")),
        *(f"INSERT INTO {name} {_rows(DUCKDB, rows, by)}" for name, by in FACTORS.items()),
    ]
    return Group(
        "spill",
        f"Tables of {rows:,} rows, each key once, at a quarter of the memory that olapdb needs, "
        "ORDER BY at a third; DuckDB has the same limit.",
        [
            _case(
                f"GROUP BY of {rows:,} keys",
                "SELECT count(), sum(c), max(s) FROM (SELECT k, count() AS c, sum(v) AS s "
                "FROM left_rows GROUP BY k) AS groups",
                NEEDED["group"] * rows // SHARES["group"],
            ),
            _case(
                f"JOIN of {rows:,} and {rows:,} rows",
                "SELECT count(), sum(a.v + b.v) FROM left_rows AS a JOIN right_rows AS b "
                "ON a.k = b.k",
                NEEDED["join"] * rows // SHARES["join"],
            ),
            _case(
                f"ORDER BY of {2 * rows:,} rows",
                SORTED.format(limit=2 * rows - 1),
                NEEDED["sort"] * 2 * rows // SHARES["sort"],
            ),
        ],
        {OLAPDB: ours, DUCKDB: theirs},
    )


def _rows(engine: str, rows: int, factor: int) -> str:
    number = "number" if engine == OLAPDB else "range"
    source = f"numbers({rows})" if engine == OLAPDB else f"range({rows})"
    return f"SELECT {number} * {factor} % {rows}, {number} FROM {source}"


def _case(name: str, query: str, limit: int) -> Case:
    limit = max(LIMIT_BYTES_MIN, limit)
    ours = f"{query} SETTINGS max_memory_usage = {limit}"
    return Case(
        name,
        {OLAPDB: (ours,), DUCKDB: (f"SET memory_limit = '{limit}B'", query, "RESET memory_limit")},
        check=dict.fromkeys((OLAPDB, DUCKDB), f"SELECT * FROM ({query} LIMIT 1000) AS answer"),
        repeats=True,
    )

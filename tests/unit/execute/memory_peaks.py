"""What queries need of memory, and what is counted of it: run by test_memory in a process of its
own, since Arrow's memory is counted by a pool that must outlive all that is made in it."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc

import pyarrow as pa

import olapdb

ROWS = 1_200_000
FAR = "intHash64(number)"
RIGHT = {
    "numbers": f"SELECT {FAR} AS k, number AS v FROM numbers({ROWS})",
    "near": f"SELECT number AS k, number AS v FROM numbers({ROWS})",
    "texts": f"SELECT toString({FAR}) AS k, number AS v FROM numbers({ROWS})",
    "repeated": f"SELECT intHash64(number % 90000) AS k, number AS v FROM numbers({ROWS})",
    "few": f"SELECT toString(number % 9000) AS k, toString({FAR}) AS v FROM numbers({ROWS})",
    "nullable": f"SELECT if(number % 3 = 0, NULL, {FAR}) AS k, number AS v FROM numbers({ROWS})",
    "computed": f"SELECT {FAR} - 7 AS k, number AS v FROM numbers({ROWS})",
}
LEFT = f"SELECT {FAR} AS k, toString({FAR}) AS s, number AS n FROM numbers(1000)"
JOIN = "SELECT min(r.v) FROM ({left}) l JOIN ({right}) r ON {on}"
ON = {"texts": "l.s = r.k", "few": "toString(l.n) = r.k", "computed": "l.k = r.k + 7"}
QUERIES = {
    **{
        f"join {name}": JOIN.format(left=LEFT, right=right, on=ON.get(name, "l.k = r.k"))
        for name, right in RIGHT.items()
    },
    "join two keys": f"SELECT sum(r.v) FROM ({LEFT}) l JOIN (SELECT {FAR} AS k, toString({FAR}) AS s,"
    f" number AS v FROM numbers({ROWS})) r ON l.k = r.k AND l.s = r.s",
    "full join": f"SELECT sum(r.v) FROM ({LEFT}) l FULL JOIN ({RIGHT['numbers']}) r ON l.k = r.k",
    "right any join": f"SELECT sum(r.v) FROM ({LEFT}) l RIGHT ANY JOIN ({RIGHT['near']}) r"
    " ON l.n = r.k",
    "semi join": f"SELECT sum(n) FROM ({LEFT}) l LEFT SEMI JOIN ({RIGHT['texts']}) r ON l.s = r.k",
    "cross join": "SELECT count() FROM numbers(3000) a CROSS JOIN numbers(3000) b",
    "cross join of a long side": "SELECT sum(b.number + a.number) FROM numbers(4) a"
    f" CROSS JOIN numbers({ROWS}) b",
    "many partners": "SELECT sum(a.number * b.number) FROM numbers(4000) a JOIN numbers(4000) b"
    " ON a.number % 2 = b.number % 2",
    "join on disk": "SELECT x.k, x.v, y.v FROM (SELECT number % 4096 AS k, number AS v FROM numbers(200000)) x"
    " JOIN (SELECT number % 4096 AS k, number AS v FROM numbers(200000)) y ON x.k = y.k"
    " SETTINGS max_bytes_before_external_join = 1, max_memory_usage = 40000000, max_threads = 2",
    "top texts on disk": f"SELECT topK(3)(toString({FAR})), uniqExact(number) FROM numbers({ROWS})"
    " SETTINGS max_memory_usage = 40000000, max_threads = 2",
    "few groups on disk": f"SELECT number % 3 AS k, uniqExact(toString({FAR})), quantileExact(number)"
    f" FROM numbers({ROWS}) GROUP BY k SETTINGS max_memory_usage = 40000000, max_threads = 2",
    "in": f"SELECT count() FROM numbers(1000) WHERE {FAR} IN (SELECT {FAR} FROM numbers({ROWS}))",
    "in texts": f"SELECT count() FROM numbers(1000) WHERE toString(number) IN"
    f" (SELECT toString({FAR}) FROM numbers({ROWS}))",
    "in tuples": f"SELECT count() FROM numbers(1000) WHERE (number, toString(number)) NOT IN"
    f" (SELECT number, toString(number) FROM numbers({ROWS}))",
    "distinct": f"SELECT count() FROM (SELECT DISTINCT {FAR} FROM numbers({ROWS}))",
    "distinct texts": f"SELECT count() FROM (SELECT DISTINCT toString({FAR}) FROM numbers({ROWS}))",
    "except": f"SELECT count() FROM (SELECT number FROM numbers(10) EXCEPT SELECT {FAR}"
    f" FROM numbers({ROWS}))",
    "intersect distinct": f"SELECT count() FROM (SELECT {FAR} FROM numbers({ROWS})"
    f" INTERSECT DISTINCT SELECT {FAR} FROM numbers({ROWS}))",
    "order by": f"SELECT {FAR} AS k, toString(number) AS s FROM numbers({ROWS}) ORDER BY k"
    f" LIMIT 5 OFFSET {ROWS - 5}",
    "order by text": f"SELECT toString({FAR}) AS s FROM numbers({ROWS}) ORDER BY s",
    "order by two": f"SELECT number FROM numbers({ROWS}) ORDER BY {FAR} % 100, -{FAR}",
    "order by limit": f"SELECT toString({FAR}) AS s FROM numbers({ROWS}) ORDER BY s LIMIT 150000",
    "limit by": f"SELECT count() FROM (SELECT number FROM numbers({ROWS}) LIMIT 1 BY {FAR})",
    "array join": "SELECT count() FROM numbers(2) ARRAY JOIN range(1500000) AS x",
    "left array join": "SELECT count() FROM numbers(3) LEFT ARRAY JOIN range(number * 1000000) AS x",
    "final": "SELECT sum(v) FROM replacing FINAL",
    "group by": f"SELECT count() FROM (SELECT {FAR} AS k, count() FROM numbers({ROWS}) GROUP BY k)",
}
TABLE = (
    "CREATE TABLE replacing (k UInt64, v UInt64) ENGINE = ReplacingMergeTree ORDER BY k",
    "SYSTEM STOP MERGES",
    f"INSERT INTO replacing SELECT {FAR} % 900000, number FROM numbers({ROWS})",
)


def peaks(cursor: olapdb.Cursor, query: str, pool: pa.MemoryPool) -> tuple[int, int]:
    """Return the peak of bytes that a query needed, and the peak that was counted."""
    pa.set_memory_pool(pool)
    tracemalloc.start()
    cursor.execute(query)
    # As Arrow batches: under tracemalloc, rows of Python objects take twenty times as long.
    assert sum(batch.num_rows for batch in cursor.fetch_record_batch()) > 0
    _, of_numpy = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return of_numpy + pool.max_memory(), cursor.statistics.memory_peak_bytes


def main() -> None:
    # As many threads on every machine: each has batches on their way, which are not counted.
    cursor = olapdb.connect(settings={"max_threads": 2}).cursor()
    pools = [pa.proxy_memory_pool(pa.system_memory_pool()) for _ in QUERIES]
    for statement in TABLE:
        cursor.execute(statement)
    wanted = sys.argv[1:] or list(QUERIES)
    made = {
        name: peaks(cursor, QUERIES[name], pool)
        for name, pool in zip(QUERIES, pools, strict=True)
        if name in wanted
    }
    print(json.dumps(made), flush=True)
    os._exit(0)  # what is left was made in pools that end before it


if __name__ == "__main__":
    main()

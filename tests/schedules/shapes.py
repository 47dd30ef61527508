"""The tables and views of random graphs, each with its meaning in plain Python.

    s --sums--> sums --by_kind--> by_kind --lengths--> lengths
    r --more_sums--^
    s --states--> states            s, d --joined--> joined       s --united--> united
    s --picked--> picked --totals--> totals
    s --risky--> risky, or it fails   z (Null) --nulled--> nulled --nulled_kinds--> nulled_kinds
    w --wide--> wide, whose columns come and go
    h (TTL) --aged--> aged          h (TTL) --users--> users

A row is a tuple.  A view computes rows from one source row at a time. Rows of equal key are joined
only when two contents are compared, so it does not matter how rows were cut into blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from olapdb.engine.layout import partition_id
from olapdb.types import STRING, UINT8

Row: TypeAlias = tuple[Any, ...]
Content: TypeAlias = dict[Row, Row]
"""Rows by key, joined; in a plain MergeTree a row is its own key and the value is its count."""
Join: TypeAlias = Callable[[Any, Any], Any]


class Fails(Exception):
    """The error of a view on a row."""


def add(left: int, right: int) -> int:
    """Return the sum."""
    return left + right


def unite(left: frozenset[int], right: frozenset[int]) -> frozenset[int]:
    """Return the union."""
    return left | right


def add_pairs(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    """Return the sums of two pairs (the state of avg)."""
    return left[0] + right[0], left[1] + right[1]


@dataclass(frozen=True)
class TableShape:
    """A table. The leading `keys` columns are the key, `joins` join the others; without joins
    every row stays. `partition` is the index of the column of PARTITION BY. `read` converts an
    engine row to a model row. `by_hand` returns a literal row and its model row, for tables that
    accept bypass rows."""

    key: str
    ddl: str
    fields: tuple[str, ...]
    keys: int
    joins: tuple[Join, ...] = ()
    partition: int | None = 0
    read: Callable[[Sequence[Any]], Row] = tuple
    by_hand: Callable[[int, str], tuple[str, Row]] | None = None
    stores: bool = True
    order: tuple[int, ...] | None = None
    """The columns of ORDER BY; None: the key."""

    optional: bool = False
    """Whether the last column is added and dropped; a row has 0 there while it is absent."""

    @property
    def sorted_by(self) -> tuple[int, ...]:
        """The columns of ORDER BY."""
        return tuple(range(self.keys)) if self.order is None else self.order

    def slice_of(self, row: Row) -> str:
        """Return the id of the row's partition."""
        if self.partition is None:
            return "all"
        value = row[self.partition]
        return partition_id([value], [STRING if isinstance(value, str) else UINT8])

    def content(self, rows: Iterable[Row]) -> Content:
        """Return the rows joined by key."""
        found: Content = {}
        for row in rows:
            key, values = (row[: self.keys], row[self.keys :]) if self.joins else (row, (1,))
            old = found.get(key)
            if old is not None:
                joins = self.joins or (add,)
                values = tuple(j(a, b) for j, a, b in zip(joins, old, values, strict=True))
            found[key] = values
        return found


@dataclass(frozen=True)
class ViewShape:
    """A view. `query` has placeholders for its source and dimension; `make` is its meaning: a
    source row and all rows of the dimension to rows of the target."""

    key: str
    source: str
    target: str
    query: str
    make: Callable[[Row, Sequence[Row]], list[Row]]
    dimension: str | None = None
    mark: str = ""
    """A text that only a variant's query contains."""
    filled: str = ""
    """The query over one source partition with which a user fills the past by hand."""


def _source(key: str, more: str = "") -> TableShape:
    return TableShape(
        key,
        "(p UInt8, k String, u UInt32, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY (k, u)"
        + more,
        ("p", "k", "u", "n"),
        4,
    )


EXPIRED_USER = 4
"""Rows of this user in `h` are expired on arrival."""
ONCE = ("k", "u")
"""The columns by which the table `e` drops repeated rows."""


def _summing(
    key: str, columns: str, order: str, fields: tuple[str, ...], **more: Any
) -> TableShape:
    ddl = f"({columns}, c UInt64, total Int64) ENGINE = SummingMergeTree {order}"
    return TableShape(key, ddl, (*fields, "c", "total"), len(fields), (add, add), **more)


class _Shapes(dict[str, TableShape]):
    """The tables by key; `sums#7` is another version of `sums`."""

    def __missing__(self, key: str) -> TableShape:
        base, another, _ = key.partition("#")
        if not another:
            raise KeyError(key)
        return replace(self[base], key=key)


TABLES: Mapping[str, TableShape] = _Shapes(
    {
        one.key: one
        for one in (
            _source("s"),
            _source("r"),
            _source("e", f" SETTINGS deduplicate_by = '{', '.join(ONCE)}'"),
            TableShape(
                "z",
                "(p UInt8, k String, u UInt32, n Int64) ENGINE = Null",
                ("p", "k", "u", "n"),
                4,
                stores=False,
            ),
            TableShape(
                "h",
                "(p UInt8, k String, u UInt32, n Int64, over Date MATERIALIZED"
                f" if(u = {EXPIRED_USER}, toDate('2000-01-01'), toDate('2100-01-01'))) ENGINE = MergeTree"
                " PARTITION BY p ORDER BY (k, u) TTL over + INTERVAL 1 DAY"
                " SETTINGS merge_with_ttl_timeout = 1000000000",
                ("p", "k", "u", "n"),
                4,
            ),
            TableShape(
                "d",
                "(k String, f UInt8) ENGINE = MergeTree ORDER BY k",
                ("k", "f"),
                2,
                partition=None,
            ),
            _summing(
                "sums",
                "p UInt8, k String",
                "PARTITION BY p ORDER BY (p, k)",
                ("p", "k"),
                by_hand=lambda p, k: (f"({p}, '{k}', 1, 50)", (p, k, 1, 50)),
            ),
            TableShape(
                "states",
                "(k String, top SimpleAggregateFunction(max, Int64),"
                " users AggregateFunction(uniqExact, UInt32), mean AggregateFunction(avg, Int64))"
                " ENGINE = AggregatingMergeTree PARTITION BY k ORDER BY k",
                ("k", "top", "users", "mean"),
                1,
                (max, unite, add_pairs),
                read=lambda r: (r[0], r[1], frozenset(r[2]), tuple(_pair(r[3]))),
            ),
            _summing(
                "joined",
                "p UInt8, f UInt8",
                "PARTITION BY p ORDER BY (p, f)",
                ("p", "f"),
                by_hand=lambda p, k: (f"({p}, 9, 1, 50)", (p, 9, 1, 50)),
            ),
            _summing(
                "united",
                "p UInt8, what String",
                "PARTITION BY p ORDER BY (p, what)",
                ("p", "what"),
                by_hand=lambda p, k: (f"({p}, '{k}', 1, 50)", (p, k, 1, 50)),
            ),
            _summing("once", "p UInt8, k String", "PARTITION BY p ORDER BY (p, k)", ("p", "k")),
            TableShape(
                "picked",
                "(p UInt8, k String, u UInt32, m Int64) ENGINE = MergeTree"
                " PARTITION BY p ORDER BY u",
                ("p", "k", "u", "m"),
                4,
                order=(2,),
                by_hand=lambda p, k: (f"({p}, '{k}', 77, 50)", (p, k, 77, 50)),
            ),
            _summing(
                "by_kind",
                "k String",
                "ORDER BY k",
                ("k",),
                partition=None,
                by_hand=lambda p, k: (f"('{k}', 1, 50)", (k, 1, 50)),
            ),
            _summing("lengths", "l UInt64", "ORDER BY l", ("l",), partition=None),
            _summing("totals", "p UInt8", "PARTITION BY p ORDER BY p", ("p",)),
            _summing(
                "risky",
                "p UInt8, k String",
                "PARTITION BY p ORDER BY (p, k)",
                ("p", "k"),
                by_hand=lambda p, k: (f"({p}, '{k}', 1, 50)", (p, k, 1, 50)),
            ),
            TableShape(
                "w",
                "(p UInt8, k String, u UInt32, n Int64) ENGINE = MergeTree PARTITION BY p"
                " ORDER BY (k, u)",
                ("p", "k", "u", "n", "x"),
                5,
                optional=True,
            ),
            TableShape(
                "wide",
                "(p UInt8, k String, c UInt64, total Int64)"
                " ENGINE = SummingMergeTree PARTITION BY p ORDER BY (p, k)",
                ("p", "k", "c", "total", "extra"),
                2,
                (add, add, add),
                optional=True,
            ),
            _summing(
                "aged",
                "p UInt8, k String",
                "PARTITION BY p ORDER BY (p, k)",
                ("p", "k"),
                by_hand=lambda p, k: (f"({p}, '{k}', 1, 50)", (p, k, 1, 50)),
            ),
            _summing("users", "k String, u UInt32", "PARTITION BY k ORDER BY (k, u)", ("k", "u")),
            _summing(
                "nulled",
                "p UInt8, k String",
                "PARTITION BY p ORDER BY (p, k)",
                ("p", "k"),
                by_hand=lambda p, k: (f"({p}, '{k}', 1, 50)", (p, k, 1, 50)),
            ),
            _summing("nulled_kinds", "k String", "ORDER BY k", ("k",), partition=None),
        )
    }
)


def _pair(state: Any) -> tuple[int, int]:
    values = state.values() if isinstance(state, Mapping) else state
    total, count = values
    return int(total), int(count)


def _join(row: Row, dimension: Sequence[Row]) -> list[Row]:
    found = [f for k, f in dimension if k == row[1]] or [0]
    return [(row[0], f, 1, row[3]) for f in found]


BAD_USER = 9
"""A row of this user makes `risky_mv` fail."""


def _risky(row: Row, dimension: Sequence[Row]) -> list[Row]:
    if row[2] == BAD_USER:
        raise Fails(row)
    return [(row[0], row[1], 1, row[3])]


_COUNTED = "count() AS c, sum(n) AS total"

VIEWS: Mapping[str, ViewShape] = {
    one.key: one
    for one in (
        ViewShape(
            "sums_mv",
            "s",
            "sums",
            f"SELECT p, k, {_COUNTED} FROM {{source}} GROUP BY p, k",
            lambda r, d: [(r[0], r[1], 1, r[3])],
            filled=f"SELECT p, k, {_COUNTED} FROM {{source}} WHERE p = {{p}} GROUP BY p, k",
        ),
        ViewShape(
            "more_sums_mv",
            "r",
            "sums",
            f"SELECT p, k, {_COUNTED} FROM {{source}} WHERE n > 0 GROUP BY p, k",
            lambda r, d: [(r[0], r[1], 1, r[3])] if r[3] > 0 else [],
        ),
        ViewShape(
            "once_mv",
            "e",
            "once",
            f"SELECT p, k, {_COUNTED} FROM {{source}} GROUP BY p, k",
            lambda r, d: [(r[0], r[1], 1, r[3])],
        ),
        ViewShape(
            "states_mv",
            "s",
            "states",
            "SELECT k, max(n) AS top, uniqExactState(u) AS users, avgState(n) AS mean"
            " FROM {source} GROUP BY k",
            lambda r, d: [(r[1], r[3], frozenset((r[2],)), (r[3], 1))],
        ),
        ViewShape(
            "joined_mv",
            "s",
            "joined",
            "SELECT x.p AS p, y.f AS f, count() AS c, sum(x.n) AS total FROM {source} AS x"
            " LEFT JOIN {dimension} AS y ON x.k = y.k GROUP BY p, f",
            _join,
            dimension="d",
        ),
        ViewShape(
            "united_mv",
            "s",
            "united",
            f"SELECT p, k AS what, {_COUNTED} FROM {{source}} WHERE n > 0 GROUP BY p, what"
            f" UNION ALL SELECT p, concat(k, '-') AS what, {_COUNTED} FROM {{source}}"
            " WHERE u > 1 GROUP BY p, what",
            lambda r, d: (
                [(r[0], r[1], 1, r[3])] * (r[3] > 0) + [(r[0], r[1] + "-", 1, r[3])] * (r[2] > 1)
            ),
        ),
        ViewShape(
            "picked_mv",
            "s",
            "picked",
            "SELECT p, k, u, n * 2 AS m FROM {source} WHERE n > 0",
            lambda r, d: [(r[0], r[1], r[2], r[3] * 2)] if r[3] > 0 else [],
            filled="SELECT p, k, u, n * 2 AS m FROM {source} WHERE n > 0 AND p = {p}",
        ),
        ViewShape(
            "risky_mv",
            "s",
            "risky",
            f"SELECT p, k, count() AS c, sum(n + throwIf(u = {BAD_USER})) AS total"
            " FROM {source} GROUP BY p, k",
            _risky,
        ),
        ViewShape(
            "wide_mv",
            "w",
            "wide",
            "SELECT p, k, count() AS c, sum({n}) AS total FROM {source} GROUP BY p, k",
            lambda r, d: [(r[0], r[1], 1, r[3], 0)],
        ),
        ViewShape(
            "aged_mv",
            "h",
            "aged",
            f"SELECT p, k, {_COUNTED} FROM {{source}} GROUP BY p, k",
            lambda r, d: [(r[0], r[1], 1, r[3])],
            filled=f"SELECT p, k, {_COUNTED} FROM {{source}} WHERE p = {{p}} GROUP BY p, k",
        ),
        ViewShape(
            "users_mv",
            "h",
            "users",
            f"SELECT k, u, {_COUNTED} FROM {{source}} GROUP BY k, u",
            lambda r, d: [(r[1], r[2], 1, r[3])],
        ),
        ViewShape(
            "nulled_mv",
            "z",
            "nulled",
            f"SELECT p, k, {_COUNTED} FROM {{source}} GROUP BY p, k",
            lambda r, d: [(r[0], r[1], 1, r[3])],
        ),
        ViewShape(
            "nulled_kinds_mv",
            "nulled",
            "nulled_kinds",
            "SELECT k, sum(c) AS c, sum(total) AS total FROM {source} GROUP BY k",
            lambda r, d: [(r[1], r[2], r[3])],
        ),
        ViewShape(
            "by_kind_mv",
            "sums",
            "by_kind",
            "SELECT k, sum(c) AS c, sum(total) AS total FROM {source} GROUP BY k",
            lambda r, d: [(r[1], r[2], r[3])],
        ),
        ViewShape(
            "lengths_mv",
            "by_kind",
            "lengths",
            "SELECT length(k) AS l, sum(c) AS c, sum(total) AS total FROM {source} GROUP BY l",
            lambda r, d: [(len(r[0]), r[1], r[2])],
        ),
        ViewShape(
            "totals_mv",
            "picked",
            "totals",
            "SELECT p, count() AS c, sum(m) AS total FROM {source} GROUP BY p",
            lambda r, d: [(r[0], 1, r[3])],
        ),
    )
}

VARIANTS: Mapping[str, ViewShape] = {
    one.key: one
    for one in (
        ViewShape(
            "sums_mv",
            "s",
            "sums",
            "SELECT p, k, count() AS c, sum(n * 2) AS total FROM {source} GROUP BY p, k",
            lambda r, d: [(r[0], r[1], 1, r[3] * 2)],
            mark="n * 2",
        ),
        ViewShape(
            "picked_mv",
            "s",
            "picked",
            "SELECT p, k, u, n * 2 AS m FROM {source} WHERE n > 0 AND u > 2",
            lambda r, d: [(r[0], r[1], r[2], r[3] * 2)] if r[3] > 0 and r[2] > 2 else [],
            mark="u > 2",
        ),
        ViewShape(
            "by_kind_mv",
            "sums",
            "by_kind",
            "SELECT k, sum(c) AS c, sum(total) AS total FROM {source} WHERE p > 1 GROUP BY k",
            lambda r, d: [(r[1], r[2], r[3])] if r[0] > 1 else [],
            mark="p > 1",
        ),
        ViewShape(
            "risky_mv",
            "s",
            "risky",
            "SELECT p, k, count() AS c, sum(n + 0) AS total FROM {source} GROUP BY p, k",
            lambda r, d: [(r[0], r[1], 1, r[3])],
            mark="n + 0",
        ),
        ViewShape(
            "wide_mv",
            "w",
            "wide",
            "SELECT p, k, count() AS c, sum({n}) AS total, sum({x}) AS extra FROM {source}"
            " GROUP BY p, k",
            lambda r, d: [(r[0], r[1], 1, r[3], r[4])],
            mark="AS extra",
        ),
        ViewShape(
            "nulled_mv",
            "z",
            "nulled",
            "SELECT p, k, count() AS c, sum(n * 2) AS total FROM {source} GROUP BY p, k",
            lambda r, d: [(r[0], r[1], 1, r[3] * 2)],
            mark="n * 2",
        ),
        ViewShape(
            "joined_mv",
            "s",
            "joined",
            "SELECT x.p AS p, y.f AS f, count() AS c, sum(toInt64(x.u)) AS total FROM {source} AS x"
            " LEFT JOIN {dimension} AS y ON x.k = y.k GROUP BY p, f",
            lambda r, d: [(p, f, c, r[2]) for p, f, c, _ in _join(r, d)],
            dimension="d",
            mark="toInt64(x.u)",
        ),
    )
}
"""Other definitions into the same target, for MODIFY QUERY."""

PARTITIONS = (1, 2, 3)
KINDS = ("a", "b", "cc")

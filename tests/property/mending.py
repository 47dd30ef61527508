"""Random states of views as SQL scripts, and where following `system.views.mend` leads.

A case is a warehouse's tables, views and dimension, then random statements, which may be refused.
Then each view's `mend` is run unchanged until the verdict is one that the engine cannot improve."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import olapdb
from olapdb.errors import BackfillIncomplete, BypassRows, Error, InternalError, ThrowIfNonZero
from tests.unit.views.warehouse import dicts

MENDS_MAX = 3
"""Statements after which a view must be settled, including those that are refused."""
ANSWERS: dict[str, tuple[type[Error], ...]] = {
    "ADOPT": (BypassRows,),
    "BACKFILL": (BackfillIncomplete, ThrowIfNonZero),
    "REPLAY": (ThrowIfNonZero,),
    "RECONCILE": (ThrowIfNonZero,),
}
"""The errors by which a mend may be refused: rows by hand differ from the view's, or the view
raises on its rows, which only running it can show. Such a mend must not be proposed again."""
ROUNDS_MAX = 12
"""Rounds over a graph of views, in which mending one view may make those below stale."""

DATABASES = ("wh", "`my wh`", "`or.der``s`")
SOURCES = (
    "MergeTree PARTITION BY p ORDER BY (p, k)",
    "MergeTree ORDER BY k",
    "MergeTree PARTITION BY p ORDER BY (p, k) TTL t + INTERVAL 1 DAY",
    "MergeTree PARTITION BY p ORDER BY (p, k) TTL t + INTERVAL 1 DAY SETTINGS ttl_retain = 0",
    "ReplacingMergeTree PARTITION BY p ORDER BY (p, k)",
    "CollapsingMergeTree(sign) PARTITION BY p ORDER BY (p, k)",
    "Memory",
    "Log",
    "Null",
)
KEYED = (
    "SummingMergeTree(v) PARTITION BY p ORDER BY (p, k)",
    "SummingMergeTree(v) ORDER BY (p, k)",
    "SummingMergeTree(v) PARTITION BY intDiv(p, 2) ORDER BY (p, k)",
    "SummingMergeTree(v) PARTITION BY k ORDER BY (p, k) TTL toDateTime(0) + toIntervalYear(v)",
)
LOOSE = (
    "MergeTree PARTITION BY p ORDER BY k",
    "Memory",
    "Log",
    "Null",
    "ReplacingMergeTree ORDER BY (p, k)",
    "CollapsingMergeTree(sign) ORDER BY (p, k)",
)
BAD = 13
"""A value on which a failing view raises."""

SUMS = "SELECT x.p AS p, x.k AS k, sum({e}) AS v FROM {source} AS x {where} GROUP BY p, k"
ROWS = "SELECT x.p AS p, x.k AS k, toInt64({e}) AS v FROM {source} AS x {where}"
JOINED = (
    "SELECT x.p AS p, x.k AS k, sum(({e}) * y.w) AS v FROM {source} AS x LEFT JOIN {d} AS y"
    " ON x.k = y.k GROUP BY p, k"
)
PICKED = (
    "SELECT x.p AS p, x.k AS k, sum({e}) AS v FROM {source} AS x"
    " WHERE x.k IN (SELECT k FROM {d}) GROUP BY p, k"
)
NAMED = "SELECT 1 AS p, y.k AS k, count() AS v FROM (SELECT k FROM {source}) AS x JOIN {d} AS y ON x.k = y.k GROUP BY p, k"
FIRST = "SELECT x.p AS p, x.k AS k, x.v AS v FROM {source} AS x LIMIT 5"
NOTHING = "SELECT 1 AS p, 1 AS k, count() AS v FROM {source} AS x {where} GROUP BY p, k"
QUERIES = (SUMS,) * 6 + (ROWS,) * 3 + (JOINED, JOINED, JOINED, PICKED, NAMED, FIRST, NOTHING)
EXPRESSIONS = ("x.v", "x.v", "2 * x.v", "1", f"x.v + throwIf(x.v = {BAD})")
WHERES = ("", "", "", "WHERE x.v > 0", "WHERE x.k != 1")


class Stuck(AssertionError):
    """A failure of `mend`: `said` is the script, `problem` the verdict that it did not settle."""

    def __init__(self, said: Sequence[str], problem: str) -> None:
        told = " ".join(line for line in said if not line.startswith("CREATE TABLE"))
        kept = [
            line for line in said if not line.startswith("CREATE TABLE") or line.split()[2] in told
        ]
        super().__init__("\n".join(("", *(f"{line};" for line in kept), f"-- {problem}")))
        self.said, self.problem = tuple(said), problem


@dataclass(frozen=True)
class Case:
    """A drawn script. All of `setup` must succeed; each of `steps` may be refused."""

    setup: tuple[str, ...]
    steps: tuple[str, ...]
    seed: int
    database: str


# --- drawing -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Names:
    """The names of a case's tables and views, as they are written in SQL."""

    database: str
    views: tuple[str, ...] = ("v1", "v2", "`v 3`", "beside", "late")

    def full(self, name: str) -> str:
        return f"{self.database}.{name}"


def draw(seed: int) -> Case:
    """Draw a warehouse and its history from the seed alone."""
    chance = random.Random(seed)
    names = _Names(chance.choice(DATABASES))
    setup = list(_tables(chance, names))
    history = _History(chance, names)
    steps = [*history.views(), *(history.step() for _ in range(chance.randint(3, 14)))]
    return Case(tuple(setup), tuple(steps), seed, names.database)


def _tables(chance: random.Random, names: _Names) -> Iterator[str]:
    yield "SYSTEM STOP MERGES"
    yield f"CREATE DATABASE {names.database}"
    columns = "(p UInt8, k UInt8, v Int64, t DateTime DEFAULT now(), sign Int8 DEFAULT 1)"
    first = chance.choice((*SOURCES[:4] * 5, *SOURCES))
    yield f"CREATE TABLE {names.full('s')} {columns} ENGINE = {first}"
    other = chance.choice((first, first, chance.choice(SOURCES)))
    yield f"CREATE TABLE {names.full('`o ther`')} {columns} ENGINE = {other}"
    merging = chance.choice(("MergeTree",) * 5 + ("ReplacingMergeTree",))
    yield f"CREATE TABLE {names.full('d')} (k UInt8, w Int64) ENGINE = {merging} ORDER BY k"
    for target in ("t1", "t2", "`t'3`"):
        engine = chance.choice((*KEYED * 6, *LOOSE))
        yield (
            f"CREATE TABLE {names.full(target)} (p UInt8, k UInt8, v Int64, sign Int8 DEFAULT 1)"
            f" ENGINE = {engine}"
        )


@dataclass
class _History:
    chance: random.Random
    names: _Names
    created: list[str] = field(default_factory=list)

    # --- views

    def views(self) -> Iterator[str]:
        """Yield the statements that create a chain, a view that shares its target, and one created
        later."""
        if self.chance.random() < 0.3:
            yield self.insert()
        more = self.chance.choice((0, 0.35, 0.7))
        for view in ("v1", "v2", "`v 3`", "beside"):
            if view == "v1" or self.chance.random() < more:
                yield self.create(view)
            if self.chance.random() < 0.5:
                yield self.insert()

    def create(self, view: str) -> str:
        source, target = {
            "v1": ("s", "t1"),
            "v2": ("t1", "t2"),
            "`v 3`": ("t2", "`t'3`"),
            "beside": (self.chance.choice(("s", "`o ther`")), "t1"),
            "late": ("s", self.chance.choice(("t1", "t2"))),
        }[view]
        created = " SETTINGS dimensions = 'at_insert'" if self.chance.random() < 0.05 else ""
        full = self.names.full
        self.created.append(view)
        return (
            f"CREATE MATERIALIZED VIEW {full(view)} TO {full(target)} AS"
            f" {self.query(source)}{created}"
        )

    def query(self, source: str) -> str:
        query, e, where = map(self.chance.choice, (QUERIES, EXPRESSIONS, WHERES))
        # mostly a provable definition
        if source not in ("s", "`o ther`") and self.chance.random() < 0.8:
            query, e, where = SUMS, "x.v", self.chance.choice(("", "WHERE x.k != 1"))
        return query.format(
            e=e, where=where, source=self.names.full(source), d=self.names.full("d")
        ).replace("  ", " ")

    # --- rows

    def values(self, *, bad: float = 0.1) -> str:
        value = [-7, -5, 0, 1, 5, 7, BAD]  # values that sometimes cancel out
        weights = [2, 2, 2, 3, 3, 3, bad * 10]
        rows = [
            (
                self.chance.randint(0, 3),
                self.chance.randint(1, 3),
                self.chance.choices(value, weights)[0],
            )
            for _ in range(self.chance.randint(1, 4))
        ]
        return ", ".join(map(str, rows))

    def insert(self) -> str:
        table = self.names.full(self.chance.choice(("s", "s", "s", "`o ther`")))
        lot = self.chance.random()
        ignoring = ""
        if lot < 0.4:
            ignoring = " SETTINGS materialized_views_ignore_errors = 1"
        elif lot < 0.5:
            old = ", ".join(f"({self.chance.randint(0, 3)}, 2, 4, '2020-01-01')" for _ in range(2))
            return f"INSERT INTO {table} (p, k, v, t) VALUES {old}"
        return f"INSERT INTO {table} (p, k, v){ignoring} VALUES {self.values(bad=0.3)}"

    def by_hand(self) -> str:
        full = self.names.full
        target = self.chance.choice(("t1", "t1", "t2", "`t'3`"))
        if self.chance.random() < 0.5:
            return f"INSERT INTO {full(target)} (p, k, v) VALUES {self.values(bad=0)}"
        source = {"t1": "s", "t2": "t1", "`t'3`": "t2"}[target]
        where = self.chance.choice(("", "", "WHERE p = 1"))
        query = SUMS.format(e="v", source=full(source), where=where)
        return f"INSERT INTO {full(target)} (p, k, v) {query}"

    # --- any statement

    def step(self) -> str:
        chance, full = self.chance, self.names.full
        view = full(chance.choice(self.created))
        loose = chance.random() < 0.05
        table = full(chance.choice(("s", "s", "s", "t1", "t1", "t2", "`t'3`", "d", "`o ther`")))
        source, target = full(chance.choice(("s", "`o ther`"))), full(chance.choice(("t1", "t2")))
        p, k = chance.randint(0, 3), chance.randint(1, 3)
        retain = chance.choice(("", " SETTINGS retain = 1"))
        return chance.choice(
            (
                self.insert,
                self.insert,
                self.insert,
                self.insert,
                self.by_hand,
                self.by_hand,
                lambda: self.create(
                    chance.choice([v for v in self.names.views if v not in self.created] or ["v1"])
                ),
                lambda: f"{chance.choice(('DETACH', 'ATTACH'))} VIEW {view}",
                lambda: f"DELETE FROM {table} WHERE k = {k}",
                lambda: (
                    f"ALTER TABLE {source} UPDATE v = {chance.choice((3, 4, BAD))} WHERE k = {k}"
                ),
                lambda: (
                    f"ALTER TABLE {table} DROP PARTITION ID '{chance.choice((p, 'all'))}'{retain}"
                ),
                lambda: f"TRUNCATE TABLE {table}",
                lambda: (
                    f"ALTER TABLE {table} {chance.choice(('DETACH', 'ATTACH'))} PARTITION ID '{p}'"
                ),
                lambda: (
                    f"ALTER TABLE {full('s')} {chance.choice(('REPLACE', 'ATTACH'))} PARTITION {p}"
                    f" FROM {full('`o ther`')}"
                ),
                lambda: f"ALTER TABLE {full('s')} MOVE PARTITION {p} TO TABLE {full('`o ther`')}",
                lambda: (
                    f"EXCHANGE TABLES {source} AND {full(chance.choice(('s', '`o ther`', 't1')))}"
                ),
                lambda: f"SYSTEM QUARANTINE PART @{table}",
                lambda: f"ALTER TABLE {source} MATERIALIZE TTL",
                lambda: (
                    f"ALTER TABLE {source} MODIFY COLUMN v {chance.choice(('Int32', 'Float64'))}"
                ),
                lambda: f"ALTER TABLE {source} ADD COLUMN c{k} UInt8 DEFAULT {p}",
                lambda: f"INSERT INTO {full('d')} VALUES ({k}, {p})",
                lambda: f"ALTER TABLE {full('d')} UPDATE w = {p} WHERE k = {k}",
                lambda: f"ALTER TABLE {view} MODIFY QUERY {self.query(chance.choice(('s', 't1')))}",
                lambda: f"OPTIMIZE TABLE {table} FINAL",
                lambda: f"SYSTEM RECONCILE VIEW {view}",
                lambda: f"SYSTEM RECONCILE VIEW {view} PARTITION ID '{p}'",
                lambda: f"SYSTEM ADOPT VIEW {view}",
                lambda: f"SYSTEM BACKFILL VIEW {view}",
                lambda: f"SYSTEM BACKFILL VIEW {view} PARTITION ID '{p}'",
                lambda: (
                    f"SYSTEM REPLAY VIEW {view}{chance.choice(('', ' STALE', ' DISCARD BYPASS'))}"
                ),
                lambda: f"SYSTEM REPLAY VIEW {view} SETTINGS discard_retained = 1",
                lambda: f"SYSTEM REBUILD VIEW {view}",
                lambda: f"SYSTEM REBUILD VIEW {view} AS {self.query('s')}",
                lambda: f"SYSTEM CANCEL REBUILD VIEW {view}",
                lambda: f"SYSTEM ROLLBACK VIEW {view}",
                lambda: f"DROP VIEW {view}",
                lambda: f"DROP TABLE {table}" if loose else self.insert(),
                lambda: f"TRUNCATE TABLE {target}",
            )
        )()


# --- running -------------------------------------------------------------------------------------


class Run:
    """A run of a case on a warehouse of its own. `said` holds the statements that succeeded."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.connection = olapdb.connect()
        self.said: list[str] = []
        self.chance = random.Random(case.seed)
        self.reached: set[str] = set()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def tried(self) -> set[str]:
        """Run the case and every mend; return the verdicts met, each with the mend's verb. Raise
        Stuck."""
        for statement in self.case.setup:
            self.connection.execute(statement)
            self.said.append(statement)
        for step in self.case.steps:
            self._step(step)
        views = [view["id"] for view in self._views()]
        self.chance.shuffle(views)
        for view_id in views:
            self._settle(view_id)
        self._settle_all()
        return self.reached

    def _step(self, step: str) -> None:
        """Run one step. A step that the engine refuses with an error of its own is recorded as
        refused."""
        statement = self._with_part(step)
        try:
            self.connection.execute(statement)
        except InternalError as error:
            raise Stuck([*self.said, statement], f"breaks: {error}") from error
        except Error as error:
            self.said.append(f"-- refused: {statement} -- {str(error).splitlines()[0][:100]}")
        else:
            self.said.append(statement)
        self._views()

    def _with_part(self, step: str) -> str:
        """Replace `@table` by the name of one of the table's active parts, drawn at random."""
        head, at, table = step.partition("@")
        if not at:
            return step
        parts = [
            one["name"]
            for one in dicts(
                self.connection, "SELECT database, table, name FROM system.parts WHERE active"
            )
            if one["table"] in table
        ]
        return f"{head}'{self.chance.choice(parts) if parts else 'none'}' ON {table}"

    def _views(self) -> list[dict[str, Any]]:
        try:
            return dicts(
                self.connection,
                "SELECT concat(database, '.', name) AS id, verdict, reason, mend, standing"
                " FROM system.views",
            )
        except InternalError as error:
            raise Stuck(self.said, f"system.views breaks: {error}") from error

    # --- mending

    def _settle(self, view_id: str) -> None:
        """Run the view's `mend` at most MENDS_MAX times; raise Stuck if it does not settle."""
        done: list[str] = []
        answered = ""
        while True:
            view = next((one for one in self._views() if one["id"] == view_id), None)
            if view is None:
                return
            self.reached.add(f"{view['verdict']} {' '.join(view['mend'].split()[1:2])}".strip())
            if settled(view):
                return
            ways = " -> ".join((*done, f"{view['verdict']}: {view['mend']!r}"))
            if not view["mend"] or len(done) == MENDS_MAX:
                raise Stuck(self.said, f"{view_id} is not settled: {ways} ({view['reason']})")
            if view["mend"] == answered:
                raise Stuck(self.said, f"{view_id} is told again what fails: {ways}")
            done.append(f"{view['verdict']}: {view['mend']}")
            answered = view["mend"] if self._mend(view_id, view["mend"], ways) else ""

    def _mend(self, view_id: str, mend: str, ways: str) -> Error | None:
        """Run the mend; return the error if it is an expected refusal, else None. Raise Stuck on
        others."""
        current = self.chance.choice(("default", self.case.database))
        self.connection.execute(f"USE {current}")
        try:
            self.connection.execute(mend)
        except Error as error:
            if not isinstance(error, ANSWERS.get(mend.split()[1], ())):
                raise Stuck([*self.said, mend], f"{view_id}: refused, {error}: {ways}") from error
            self.said.append(f"-- answers no: {mend}")
            return error
        self.said.append(mend)
        return None

    def _settle_all(self) -> None:
        """Settle all views in rounds until no view has a mend left; mending one may unsettle
        another."""
        for _ in range(ROUNDS_MAX):
            left = [view["id"] for view in self._views() if not settled(view)]
            if not left:
                return
            for view_id in left:
                self._settle(view_id)
        raise Stuck(self.said, f"{left} unsettle each other")


def settled(view: dict[str, Any]) -> bool:
    """Return whether the view is proven, or unproven or retained without any mend left."""
    return view["verdict"] in ("proven", "unproven", "retained") and not view["mend"]


def run_case(case: Case) -> set[str]:
    """Run the case in a new warehouse; return the verdicts met. Raise Stuck."""
    with Run(case) as run:
        return run.tried()


def run_seed(seed: int) -> set[str]:
    """Run the seed's case. Raise Stuck with the shortest script that shrinking found."""
    case = draw(seed)
    try:
        return run_case(case)
    except Stuck as stuck:
        raise shrunk(case, stuck) from None


def shrunk(case: Case, stuck: Stuck) -> Stuck:
    """Return the failure of the shortest script: leave out steps while any failure remains."""
    best, found = case, stuck
    size = len(case.steps)
    while size:
        for at in range(len(best.steps) - size, -1, -1):
            shorter = replace(best, steps=best.steps[:at] + best.steps[at + size :])
            try:
                run_case(shorter)
            except Stuck as again:
                best, found = shorter, again
                break
        else:
            size //= 2
    return found

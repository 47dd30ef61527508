"""Random joins of two to six tables, by comma lists, JOIN … ON, EXISTS, IN, and joins of aggregates.

Some joins are outer ones, SEMI or ANTI; of these the columns of the right side are not read."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

TABLES = ("a", "b", "c", "d")
_COLUMNS = ("k", "j", "n", "s")
_ROWS = 8
_KINDS = ("LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")


def statements(random: Random) -> Iterator[str]:
    """Yield the statements that create and fill the tables."""
    for table in TABLES:
        yield (
            f"CREATE TABLE {table} (k Int32, j Int64, n Nullable(Int32), s String) "
            "ENGINE = MergeTree ORDER BY k"
        )
        rows = []
        for _ in range(_ROWS):
            n = random.choice(["NULL", *map(str, range(4))])
            s = random.choice("xyz")
            rows.append(f"({random.randrange(6)}, {random.randrange(5)}, {n}, '{s}')")
        yield f"INSERT INTO {table} VALUES {', '.join(rows)}"


def query(random: Random) -> str:
    """Return a query whose answer does not depend on the order of rows."""
    count = random.randint(2, 6)
    tables = [_relation(random) for _ in range(count)]
    names = [f"t{at}" for at in range(count)]
    conditions = [
        _equality(random, names[random.randrange(at)], names[at]) for at in range(1, count)
    ]
    extra = [_condition(random, names) for _ in range(random.randrange(4))]
    if random.random() < 0.5:
        order = random.sample(range(count), count)
        source = ", ".join(f"{tables[at]} AS {names[at]}" for at in order)
        where = random.sample([*conditions, *extra], len(conditions) + len(extra))
    else:
        source, names = _joined(random, tables, names, conditions)
        where = [_condition(random, names) for _ in extra]
    if random.random() < 0.3:
        where.append(_exists(random, names))
    if random.random() < 0.3:
        where.append(_in(random, names))
    if random.random() < 0.2:
        where.append(_presence(random, names))
    where_clause = f" WHERE {' AND '.join(where)}" if where else ""
    if random.random() < 0.3:
        text = _groups(random, names, f"{source}{where_clause}")
    else:
        text = f"SELECT {_selected(random, names)} FROM {source}{where_clause}"
    return f"{text} SETTINGS join_use_nulls = {random.randrange(2)}"


def _groups(random: Random, names: list[str], source: str) -> str:
    """Return a query of groups, or of one row, whose sums read one table."""
    one, other = random.choice(names), random.choice(names)
    keys = [f"{random.choice(names)}.{random.choice('kjns')}" for _ in range(random.randrange(3))]
    calls = random.sample(
        [
            f"sum({one}.k + 1)",
            f"sum({one}.n)",
            f"count({one}.n)",
            "count()",
            f"sum({one}.j * {one}.k)",
            f"max({other}.j)",
            f"min({other}.s)",
            f"min({one}.n)",
            f"uniqExact({other}.k)",
        ],
        random.randint(1, 4),
    )
    selected = ", ".join(f"{column} AS c{at}" for at, column in enumerate([*keys, *calls]))
    group = f" GROUP BY {', '.join(f'c{at}' for at in range(len(keys)))}" if keys else ""
    return f"SELECT {selected} FROM {source}{group} ORDER BY ALL"


def _relation(random: Random) -> str:
    """Return a table, or rarely an aggregate of its rows with the same columns."""
    table = random.choice(TABLES)
    if random.random() < 0.85:
        return table
    key, other = random.choice([("k", "j"), ("j", "k")])
    return f"(SELECT {key}, max({other}) AS {other}, min(n) AS n, min(s) AS s FROM {table} GROUP BY {key})"


def _joined(
    random: Random, tables: list[str], names: list[str], conditions: list[str]
) -> tuple[str, list[str]]:
    """Return a chain of JOIN … ON, and the tables whose columns can be read above it."""
    source, visible = f"{tables[0]} AS t0", names[:1]
    for at in range(1, len(tables)):
        one, name = names[at], random.choice(visible)
        on = conditions[at - 1]
        if not any(f"{other}." in on for other in visible):
            on = _equality(random, name, one)
        kind = random.choice([*_KINDS, *["INNER"] * 6, "LEFT"])
        source += f" {kind} JOIN {tables[at]} AS {one} ON {on}"
        if kind not in ("LEFT SEMI", "LEFT ANTI"):
            visible = [*visible, one]
    return source, visible


def _selected(random: Random, names: list[str]) -> str:
    """Return aggregates over all of the rows, some of which do not count duplicates."""
    if random.random() < 0.2:
        one, other = random.choice(names), random.choice(names)
        return f"count(DISTINCT {one}.k), max({other}.j), min({one}.s)"
    sums = [f"sum({name}.k * {at + 1})" for at, name in enumerate(names)]
    return ", ".join(["count()", *sums, f"min({random.choice(names)}.s)"])


def _equality(random: Random, one: str, other: str) -> str:
    """Return an equality of two tables that matches some of their rows."""
    column, same = random.choice([("k", "k"), ("k", "j"), ("n", "k"), ("n", "n"), ("s", "s")])
    sides = [f"{one}.{column}", f"{other}.{same}"]
    random.shuffle(sides)
    return " = ".join(sides)


def _condition(random: Random, names: list[str]) -> str:
    """Return a condition on one table or two."""
    one, other = random.choice(names), random.choice(names)
    match random.randrange(6):
        case 0:
            return f"{one}.k < {random.randrange(7)}"
        case 1:
            return f"{one}.s IN ('x', '{random.choice('yz')}')"
        case 2:
            return f"{one}.j >= {other}.k"
        case 3:
            shared = f"{one}.k = {other}.j"
            return f"(({shared} AND {one}.s = 'x') OR ({shared} AND {other}.n > 1))"
        case 4:
            return f"(({one}.k = 1 AND {other}.s = 'x') OR ({one}.k = 2 AND {other}.s = 'y'))"
        case _:
            return f"{one}.k = {random.randrange(6)}"


def _exists(random: Random, names: list[str]) -> str:
    """Return a correlated EXISTS or NOT EXISTS, or a comparison with a correlated aggregate."""
    outer, table = random.choice(names), random.choice(TABLES)
    match random.randrange(3):
        case 0:
            return f"EXISTS (SELECT 1 FROM {table} AS e WHERE e.k = {outer}.k AND e.j <> {outer}.j)"
        case 1:
            return f"NOT EXISTS (SELECT 1 FROM {table} AS e WHERE e.j = {outer}.k AND e.s = 'x')"
        case _:
            return f"{outer}.j < (SELECT max(e.j) FROM {table} AS e WHERE e.k = {outer}.k)"


def _in(random: Random, names: list[str]) -> str:
    """Return IN or NOT IN of a subquery."""
    one = random.choice(names)
    column, same = random.choice([("k", "j"), ("j", "k"), ("s", "s"), ("n", "n")])
    negated = random.choice(["", "NOT "])
    return f"{one}.{column} {negated}IN ({_set(random, same)})"


def _set(random: Random, column: str) -> str:
    """Return a query of one column whose duplicates do not count: of one table, or of joins."""
    table, other, third = (random.choice(TABLES) for _ in range(3))
    bound = random.randrange(7)
    on = _equality(random, "x", "y")
    read = random.choice("xy")
    match random.randrange(6):
        case 0:
            return f"SELECT x.{column} FROM {table} AS x, {other} AS y WHERE {on} AND x.j <> y.j"
        case 1:
            return (
                f"SELECT {read}.{column} FROM {table} AS x JOIN {other} AS y ON {on} AND y.k < x.j"
            )
        case 2:
            return (
                f"SELECT {read}.{column} FROM {table} AS x JOIN {other} AS y ON {on}"
                f" JOIN {third} AS z ON y.k = z.j AND z.k <> {bound}"
            )
        case 3:
            return f"SELECT DISTINCT {read}.{column} FROM {table} AS x JOIN {other} AS y ON {on}"
        case 4:
            return (
                f"SELECT max({read}.{column}) FROM {table} AS x JOIN {other} AS y ON {on}"
                f" GROUP BY x.k HAVING min(y.k) < {bound}"
            )
        case _:
            return f"SELECT {column} FROM {table} WHERE k < {bound}"


def _presence(random: Random, names: list[str]) -> str:
    """Return a condition that outer joins' added rows meet, or do not."""
    one, other = random.choice(names), random.choice(names)
    column = random.choice("kn")
    return random.choice(
        [
            f"{one}.{column} IS NULL",
            f"{one}.{column} IS NOT NULL",
            f"({one}.k IS NULL OR {other}.k > 1)",
            f"{one}.k <> 0",
            f"{one}.n = {other}.k",
            f"({one}.s = 'x' OR {one}.k > 2)",
        ]
    )

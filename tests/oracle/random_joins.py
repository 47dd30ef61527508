"""Random joins of two to six tables, by comma lists, JOIN … ON, and correlated EXISTS."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

TABLES = ("a", "b", "c", "d")
_COLUMNS = ("k", "j", "n", "s")
_ROWS = 8


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
    tables = [random.choice(TABLES) for _ in range(count)]
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
        source = f"{tables[0]} AS t0"
        for at in range(1, count):
            kind = random.choice(["INNER", "INNER", "LEFT"])
            source += f" {kind} JOIN {tables[at]} AS {names[at]} ON {conditions[at - 1]}"
        where = extra
    if random.random() < 0.3:
        where.append(_exists(random, names))
    text = f"SELECT {_selected(random, names)} FROM {source}"
    return f"{text} WHERE {' AND '.join(where)}" if where else text


def _selected(random: Random, names: list[str]) -> str:
    """Return aggregates over all of the rows."""
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

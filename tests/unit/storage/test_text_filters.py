"""The indexes tokenbf_v1 and ngrambf_v1: they lose no row, they skip granules, they are refused for
what is no text."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BadArguments, IncorrectQuery
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("engines")

WORDS = ("error", "disk", "full", "Über", "a-b", "x_y", "", "50%", "tab\\\\t", "worker7", "io")
CONDITIONS = (
    "hasToken(s, '{w}')",
    "s LIKE '%{w}%'",
    "s LIKE '{w}%'",
    "s LIKE '%{w}'",
    "s LIKE '{w}_%{v}'",
    "s LIKE '%{w} {v}%'",
    "s = '{w} {v}'",
    "s IN ('{w} {v}', '{v}')",
    "startsWith(s, '{w} ')",
    "endsWith(s, ' {w}')",
    "s LIKE '%{w}%' AND hasToken(s, 'disk')",
    "s = '{w}' OR s LIKE '%{v}'",
    "NOT (s LIKE '%{w}%')",
    "s != '{w}'",
    "has(t, '{w}')",
    "hasTokenOrNull(s, '{w}')",
    "n LIKE '%{w}%'",
    "s = unhex('C3414243')",
    "s IN (unhex('C3'), '{w}')",
    "startsWith(s, unhex('FF'))",
    r"s LIKE 'tab\\\\t%'",
)


@pytest.fixture(scope="module")
def tables() -> Iterator[Connection]:
    """Create `plain` and `indexed`, with the same lines of random words."""
    with olapdb.connect(":memory:", settings={"inline_bytes_max": 0}) as connection:
        columns = "id UInt32, s String, t Array(String), n Nullable(String)"
        indexes = (
            "INDEX w s TYPE tokenbf_v1(256, 3, 7), INDEX g s TYPE ngrambf_v1(3, 512, 2, 0)"
            " GRANULARITY 2, INDEX wt t TYPE tokenbf_v1(256, 2, 0), INDEX gn lower(n)"
            " TYPE ngrambf_v1(2, 256, 1, 1), INDEX wn n TYPE tokenbf_v1(128, 1, 5)"
        )
        ending = "ENGINE = MergeTree ORDER BY id SETTINGS index_granularity = 8"
        connection.execute(f"CREATE TABLE plain ({columns}) {ending}")
        connection.execute(f"CREATE TABLE indexed ({columns}, {indexes}) {ending}")
        draw = random.Random(5)
        lines = [
            " ".join(draw.choices(WORDS[at // 40 % 4 :: 2], k=draw.randint(0, 4))).replace(
                "\\\\", "\\"
            )
            for at in range(400)
        ]
        data = {
            "id": list(range(400)),
            "s": lines,
            "t": [line.split() for line in lines],
            "n": [None if at % 7 == 0 else line for at, line in enumerate(lines)],
        }
        for table in ("plain", "indexed"):
            connection.insert(table, data)
        yield connection


@pytest.mark.parametrize("condition", CONDITIONS)
def test_no_row_is_lost(tables: Connection, condition: str) -> None:
    draw = random.Random(condition)
    for _ in range(8):
        where = condition.format(w=draw.choice(WORDS), v=draw.choice(WORDS))
        answers = []
        for table in ("plain", "indexed"):
            try:
                answers.append(rows(tables, f"SELECT groupArray(id) FROM {table} WHERE {where}"))
            except olapdb.Error as error:
                answers.append([(type(error),)])
        assert answers[0] == answers[1], where


@pytest.fixture(scope="module")
def log() -> Iterator[Connection]:
    """Create a table of a hundred granules, of which each has its own word."""
    with olapdb.connect(":memory:", settings={"inline_bytes_max": 0}) as connection:
        connection.execute(
            "CREATE TABLE log (id UInt32, s String, INDEX w s TYPE tokenbf_v1(512, 3, 0),"
            " INDEX g s TYPE ngrambf_v1(4, 1024, 3, 0)) ENGINE = MergeTree ORDER BY id"
            " SETTINGS index_granularity = 10"
        )
        connection.execute(
            "INSERT INTO log SELECT number, concat('request of user', toString(intDiv(number, 10)),"
            " ' took ', toString(number), ' ms') FROM numbers(1000)"
        )
        yield connection


@pytest.mark.parametrize(
    ("condition", "granules_max"),
    [
        ("hasToken(s, 'user42')", 3),
        ("s LIKE '%user42 %'", 3),
        ("s LIKE '%of user42 took%'", 3),
        ("s LIKE 'request of user42 %'", 3),
        ("s = 'request of user42 took 421 ms'", 3),
        ("hasToken(s, 'nowhere')", 1),
        ("s LIKE '%nowhere%'", 1),
        ("s LIKE '%user%'", 100),
        ("hasToken(s, 'request')", 100),
    ],
)
def test_granules_without_the_words_are_skipped(
    log: Connection, condition: str, granules_max: int
) -> None:
    cursor = log.execute(f"SELECT s FROM log WHERE {condition}")
    cursor.fetchall()
    assert cursor.statistics.granules_read <= granules_max
    expected = rows(log, f"SELECT groupArray(id) FROM log WHERE materialize({condition})")
    assert rows(log, f"SELECT groupArray(id) FROM log WHERE {condition}") == expected


def test_show_create_and_the_list_of_indexes_name_the_parameters(log: Connection) -> None:
    assert (
        "INDEX g s TYPE ngrambf_v1(4, 1024, 3, 0) GRANULARITY 1"
        in (rows(log, "SHOW CREATE TABLE log")[0][0])
    )
    listed = rows(log, "SELECT name, type, type_full FROM system.data_skipping_indices")
    assert listed == [
        ("w", "tokenbf_v1", "tokenbf_v1(512, 3, 0)"),
        ("g", "ngrambf_v1", "ngrambf_v1(4, 1024, 3, 0)"),
    ]


@pytest.mark.parametrize(
    ("index", "error"),
    [
        ("s TYPE tokenbf_v1", BadArguments),
        ("s TYPE tokenbf_v1(256, 2)", BadArguments),
        ("s TYPE tokenbf_v1(0, 2, 0)", BadArguments),
        ("s TYPE tokenbf_v1('a', 2, 0)", BadArguments),
        ("s TYPE tokenbf_v1(256, 300, 0)", BadArguments),
        ("s TYPE ngrambf_v1(3, 256, 2)", BadArguments),
        ("id TYPE tokenbf_v1(256, 2, 0)", IncorrectQuery),
        ("s TYPE full_text(0)", IncorrectQuery),
    ],
)
def test_what_is_refused(log: Connection, index: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        log.execute(f"ALTER TABLE log ADD INDEX bad {index}")

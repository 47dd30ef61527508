"""Operators, aggregates and hints of Core: they mean what they do over other databases."""

import datetime as dt

import pytest
import sqlalchemy as sa
from sqlalchemy import func

pytestmark = pytest.mark.feature("sqlalchemy")

T = sa.Table(
    "t",
    sa.MetaData(),
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("s", sa.String),
    sa.Column("d", sa.Date),
    sa.Column("ts", sa.DateTime),
    sa.Column("tags", sa.ARRAY(sa.Integer)),
    sa.Column("doc", sa.JSON),
    sa.Column("lasted", sa.Interval),
)
ROWS = [
    {
        "id": 1,
        "s": "Anna",
        "d": dt.date(2024, 1, 31),
        "ts": dt.datetime(2024, 1, 31, 12, 0, 0, 5),
        "tags": [3, 4, 5],
        "doc": {"a": [{"b": "x"}, 2], "it's \\ %": 1.5, "big": 2**60},
        "lasted": dt.timedelta(days=-800, microseconds=1),
    },
    {"id": 2, "s": None, "d": None, "ts": None, "tags": [], "doc": {}, "lasted": None},
    {
        "id": 3,
        "s": "Bob",
        "d": dt.date(2023, 1, 1),
        "ts": dt.datetime(2023, 1, 1),
        "tags": [7],
        "doc": {"a": []},
        "lasted": dt.timedelta(0),
    },
]


@pytest.fixture(scope="module")
def connection():
    engine = sa.create_engine("olapdb://")
    with engine.connect() as made:
        T.metadata.create_all(made)
        assert made.execute(sa.insert(T), ROWS).rowcount == 3
        yield made
    engine.dispose()


def first(connection, *columns):
    """Return the columns of the first row."""
    return tuple(connection.execute(sa.select(*columns).where(T.c.id == 1)).one())


def ids(connection, condition):
    """Return the ids of the rows that meet the condition."""
    return connection.scalars(sa.select(T.c.id).where(condition).order_by(T.c.id)).all()


def test_bits(connection):
    six = T.c.id + 5
    found = first(
        connection,
        six.bitwise_and(3),
        six.bitwise_or(1),
        six.bitwise_xor(3),
        six.bitwise_lshift(2),
        six.bitwise_rshift(1),
        six.bitwise_not(),
    )
    assert found == (2, 7, 5, 24, 3, -7)


def test_regular_expressions(connection):
    assert ids(connection, T.c.s.regexp_match("^a")) == []
    assert ids(connection, T.c.s.regexp_match("^a", flags="i")) == [1]
    assert ids(connection, ~T.c.s.regexp_match("^A")) == [3]
    assert first(connection, T.c.s.regexp_replace("n(.)", r"<\1>", flags="i")) == ("A<n>a",)
    with pytest.raises(sa.exc.CompileError, match="i, m and s"):
        connection.execute(sa.select(T.c.s.regexp_match("a", flags="x")))


def test_between_in_either_order(connection):
    assert ids(connection, T.c.id.between(3, 2, symmetric=True)) == [2, 3]
    assert ids(connection, ~T.c.id.between(3, 2, symmetric=True)) == [1]
    assert ids(connection, T.c.id.between(3, 2)) == []


def test_elements_of_arrays(connection):
    assert first(connection, T.c.tags[2], T.c.tags[1:2]) == (4, [3, 4])
    assert ids(connection, sa.literal(4) == sa.any_(T.c.tags)) == [1]
    assert ids(connection, sa.literal(6) < sa.all_(T.c.tags)) == [2, 3]
    assert ids(connection, sa.literal(1) == sa.any_(sa.select(T.c.id).scalar_subquery())) == [
        1,
        2,
        3,
    ]


def test_members_of_json(connection):
    assert first(
        connection,
        T.c.doc["a"],
        T.c.doc["a"][1].as_integer(),
        T.c.doc[("a", 0, "b")].as_string(),
        T.c.doc[("a", -1)].as_integer(),
        T.c.doc["it's \\ %"].as_float(),
        T.c.doc["big"].as_integer(),
        T.c.doc["none"],
    ) == ([{"b": "x"}, 2], 2, "x", 2, 1.5, 2**60, None)
    assert ids(connection, T.c.doc[("a", 0)] != sa.null()) == [1]


def test_intervals_are_exact_and_of_any_length(connection):
    assert first(connection, T.c.lasted) == (ROWS[0]["lasted"],)
    day = dt.timedelta(days=1)
    assert first(connection, T.c.ts + day, T.c.d + day, T.c.ts - day, T.c.ts + T.c.lasted) == (
        dt.datetime(2024, 2, 1, 12, 0, 0, 5),
        dt.datetime(2024, 2, 1),
        dt.datetime(2024, 1, 30, 12, 0, 0, 5),
        ROWS[0]["ts"] + ROWS[0]["lasted"],
    )
    assert first(connection, T.c.ts - dt.datetime(2024, 1, 1)) == (
        ROWS[0]["ts"] - dt.datetime(2024, 1, 1),
    )
    assert ids(connection, T.c.lasted < dt.timedelta(0)) == [1]
    assert ids(connection, T.c.ts > func.now() - dt.timedelta(days=200_000)) == [1, 3]


def test_casts_keep_null(connection):
    texts = sa.select(sa.cast(T.c.s, sa.Text), sa.try_cast(T.c.s, sa.Integer)).order_by(T.c.id)
    assert connection.execute(texts).all() == [("Anna", None), (None, None), ("Bob", None)]
    assert first(connection, sa.try_cast(sa.literal("12"), sa.Integer)) == (12,)


def test_aggregates_of_the_standard(connection):
    numbers = sa.values(sa.column("n", sa.Integer), name="v").data([(n,) for n in (1, 2, 2, 10)])
    n = numbers.c.n
    found = connection.execute(
        sa.select(
            func.percentile_cont(0.5).within_group(n),
            func.percentile_cont(0.25).within_group(n.desc()),
            func.percentile_disc(0.25).within_group(n),
            func.percentile_disc(0.25).within_group(n.desc()),
            func.mode().within_group(n),
        )
    ).one()
    assert tuple(found) == (2.0, 4.0, 1, 10, 2)
    joined = sa.select(func.aggregate_strings(T.c.s, ", "))
    assert set(connection.scalar(joined).split(", ")) == {"Anna", "Bob"}
    with pytest.raises(sa.exc.CompileError, match="percentile_cont"):
        connection.execute(sa.select(func.rank(1).within_group(n)))


def test_hints_behind_a_table_are_written():
    dialect = sa.create_engine("olapdb://").dialect
    final = sa.select(T.c.id).with_hint(T, "FINAL")
    assert str(final.compile(dialect=dialect)).endswith("FROM t FINAL")
    with pytest.raises(sa.exc.CompileError, match="SAMPLE"):
        sa.select(sa.tablesample(T, 10)).compile(dialect=dialect)
    with pytest.raises(sa.exc.CompileError, match="PERCENT"):
        sa.select(T.c.id).fetch(10, percent=True).compile(dialect=dialect)


@pytest.mark.filterwarnings("ignore:Passing expression:DeprecationWarning")
def test_distinct_on_keeps_a_row_of_each_value(connection):
    parity = (T.c.id % 2).label("parity")
    rows = connection.execute(sa.select(parity).distinct(parity).order_by(T.c.id)).all()
    assert sorted(rows) == [(0,), (1,)]


def test_an_order_by_random(connection):
    assert len(connection.execute(sa.select(T.c.id).order_by(func.random())).all()) == 3

"""The thin SQLAlchemy dialect: text, reflection, SELECT from reflected tables."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.ext.automap import automap_base

pytestmark = pytest.mark.feature("sqlalchemy", "engines")


@pytest.fixture
def engine(tmp_path):
    made = sa.create_engine(f"olapdb:///{tmp_path / 'warehouse'}")
    with made.connect() as connection:
        connection.execute(
            sa.text(
                "CREATE TABLE flights (id UInt64, origin String, delay Nullable(Float64), day Date, "
                "price Decimal(10, 2)) ENGINE = MergeTree ORDER BY id COMMENT 'of 2013'"
            )
        )
        connection.execute(
            sa.text(
                "INSERT INTO flights VALUES (1, 'JFK', 2.5, '2013-01-01', 10.5), (2, 'EWR', NULL, '2013-01-02', 20)"
            )
        )
        connection.execute(sa.text("CREATE VIEW late AS SELECT * FROM flights WHERE delay > 0"))
    yield made
    made.dispose()


def test_text_with_named_parameters(engine):
    with engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT id FROM flights WHERE origin = :o"), {"o": "EWR"})
        assert rows.all() == [(2,)]


def test_reflection(engine):
    inspector = sa.inspect(engine)
    assert inspector.get_table_names() == ["flights"]
    assert inspector.get_view_names() == ["late"]
    assert "default" in inspector.get_schema_names()
    columns = {c["name"]: c for c in inspector.get_columns("flights")}
    assert isinstance(columns["id"]["type"], sa.BigInteger)
    assert columns["delay"]["nullable"]
    assert not columns["origin"]["nullable"]
    assert isinstance(columns["price"]["type"], sa.Numeric)
    assert inspector.get_table_comment("flights") == {"text": "of 2013"}
    with pytest.raises(sa.exc.NoSuchTableError):
        inspector.get_columns("nothing")


def test_select_from_a_reflected_table(engine):
    flights = sa.Table("flights", sa.MetaData(), autoload_with=engine)
    query = (
        sa.select(flights.c.origin, sa.func.count().label("n"))
        .where(flights.c.day >= sa.literal("2013-01-01"))
        .where(flights.c.origin.in_(["JFK", "EWR"]))
        .group_by(flights.c.origin)
        .order_by(flights.c.origin)
        .limit(5)
    )
    with engine.connect() as connection:
        assert connection.execute(query).all() == [("EWR", 1), ("JFK", 1)]


def test_uuids_come_back_as_they_went_in(engine):
    keys = sa.Table("keys", sa.MetaData(), sa.Column("id", sa.Uuid), sa.Column("n", sa.Integer))
    one = uuid.uuid4()
    with engine.connect() as connection:
        connection.execute(
            sa.text("CREATE TABLE keys (id UUID, n Int32) ENGINE = MergeTree ORDER BY n")
        )
        connection.execute(sa.insert(keys), [{"id": one, "n": 1}, {"id": uuid.uuid4(), "n": 2}])
        connection.execute(sa.insert(keys).values(id=uuid.uuid4(), n=3))
        assert connection.execute(sa.select(keys.c.id).where(keys.c.n == 1)).all() == [(one,)]
        assert connection.execute(sa.select(keys.c.n).where(keys.c.id == one)).all() == [(1,)]
    reflected = sa.Table("keys", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        rows = connection.execute(sa.select(reflected.c.id)).scalars()
        assert one in rows.all()


def test_division_is_true_or_whole(engine):
    flights = sa.Table("flights", sa.MetaData(), autoload_with=engine)
    number = flights.c.id
    query = sa.select(
        number / 4,
        number // 2,
        flights.c.delay / 2,
        flights.c.delay // 2,
        -number // 2,
        (number + 2**60) // 1,
    ).where(number == 1)
    with engine.connect() as connection:
        row = connection.execute(query).one()
    assert list(row) == [0.25, 0, 1.25, 1, 0, 2**60 + 1]


def test_what_core_calls_the_present_time(engine):
    with engine.connect() as connection:
        row = connection.execute(
            sa.select(
                sa.func.current_timestamp(),
                sa.func.localtimestamp(),
                sa.func.current_date(),
                sa.func.now(),
                sa.func.current_user(),
            )
        ).one()
    assert row[0] == row[1] == row[3]
    assert row[0].date() == row[2]
    assert row[4] == "default"


@pytest.mark.parametrize("url", ["olapdb://somebody@/warehouse", "olapdb://a:b@/warehouse"])
def test_a_user_is_refused(url):
    with pytest.raises(sa.exc.ArgumentError, match="no users"):
        sa.create_engine(url).connect()


@pytest.mark.parametrize("text", ["o'k", "back\\slash", "end\\", "\\' OR 1 = 1 --", "a\nb", "%_"])
def test_literals_mean_what_they_say(engine, text):
    query = sa.select(sa.literal(text))
    compiled = query.compile(engine, compile_kwargs={"literal_binds": True})
    with engine.connect() as connection:
        assert connection.exec_driver_sql(str(compiled)).scalar() == text


def test_comments_patterns_and_what_is_refused(engine):
    flights = sa.Table("flights", sa.MetaData(), autoload_with=engine)
    flights.comment = "it's the year's \\ flights"
    flights.c.origin.comment = "where from"
    with engine.connect() as connection:
        connection.execute(sa.schema.SetTableComment(flights))
        connection.execute(sa.schema.SetColumnComment(flights.c.origin))
        inspector = sa.inspect(connection)
        assert inspector.get_table_comment("flights") == {"text": flights.comment}
        columns = {c["name"]: c["comment"] for c in inspector.get_columns("flights")}
        assert columns["origin"] == "where from"
        connection.execute(sa.schema.DropTableComment(flights))
        inspector = sa.inspect(connection)
        assert inspector.get_table_comment("flights") == {"text": None}
        found = connection.execute(
            sa.select(flights.c.id).where(flights.c.origin.regexp_match("^J"))
        ).all()
        assert found == [(1,)]
        others = sa.select(flights.c.id).where(~flights.c.origin.regexp_match("^J"))
        assert connection.execute(others).all() == [(2,)]
        with pytest.raises(sa.exc.CompileError, match="snapshot"):
            connection.execute(sa.select(flights.c.id).with_for_update())


def test_an_enum_is_reflected_with_its_texts(engine):
    with engine.connect() as connection:
        connection.execute(
            sa.text("CREATE TABLE e (x Nullable(Enum8('low' = 1, 'high' = 2))) ORDER BY tuple()")
        )
        table = sa.Table("e", sa.MetaData(), autoload_with=engine)
        assert table.c.x.type.enums == ["low", "high"]
        assert table.c.x.nullable
        connection.execute(sa.insert(table), [{"x": "high"}, {"x": None}])
        selected = sa.select(table.c.x).where(table.c.x == "high")
        assert connection.execute(selected).scalars().all() == ["high"]


def test_temporary_tables_are_reflected(engine):
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TEMPORARY TABLE flights AS SELECT 1 AS own"))
        inspector = sa.inspect(connection)
        assert inspector.get_temp_table_names() == ["flights"]
        assert inspector.get_table_names() == ["flights"]
        own = sa.Table("flights", sa.MetaData(), autoload_with=connection)
        assert connection.execute(sa.select(own.c.own)).all() == [(1,)]
        kept = sa.Table("flights", sa.MetaData(), schema="default", autoload_with=connection)
        assert "origin" in kept.c


def test_set_operations_are_without_duplicates(engine):
    """As in SQL; ClickHouse's UNION needs a word, and its EXCEPT and INTERSECT keep duplicates."""
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TABLE ones (n UInt8) ORDER BY n"))
        connection.execute(sa.text("INSERT INTO ones VALUES (1), (1), (2), (2)"))
        ones = sa.table("ones", sa.column("n", sa.Integer))
        one, two = sa.select(ones.c.n), sa.select(ones.c.n).where(ones.c.n == 2)
        for combined, expected in (
            (one.union(two), [1, 2]),
            (one.union_all(two), [1, 1, 2, 2, 2, 2]),
            (one.except_(two), [1]),
            (one.except_all(two), [1, 1]),
            (one.intersect(two), [2]),
        ):
            rows = connection.execute(combined).scalars().all()
            assert sorted(rows) == expected, combined


def test_order_by_and_limit_of_a_set_operation_are_of_all_rows(engine):
    """ClickHouse takes ORDER BY and LIMIT behind a UNION as those of its last query."""
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TABLE some (n UInt8) ORDER BY n"))
        connection.execute(sa.text("INSERT INTO some VALUES (1), (2), (3)"))
        some = sa.table("some", sa.column("n", sa.Integer))
        high, low = (sa.select(some.c.n).where(c) for c in (some.c.n > 1, some.c.n <= 2))
        both = high.union_all(low)
        for query, expected in (
            (both.order_by(some.c.n), [1, 2, 2, 3]),
            (both.order_by(some.c.n.desc()).limit(1), [3]),
            (both.order_by("n").limit(2).offset(1), [2, 2]),
            (high.limit(1).union_all(low.limit(1)).order_by("n"), [1, 2]),
            (sa.union_all(both.order_by("n").limit(1), high).order_by("n"), [1, 2, 3]),
            (sa.select(both.order_by("n").limit(3).subquery()), [1, 2, 2]),
            (sa.select(sa.func.count()).select_from(both.limit(2).subquery()), [2]),
        ):
            assert connection.execute(query).scalars().all() == expected, query
        named = high.cte("h")
        query = sa.select(named.c.n).union(sa.select(named.c.n + 1)).order_by("n")
        assert connection.execute(query).scalars().all() == [2, 3, 4]


def test_each_connection_commits_each_statement(engine):
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        assert connection.get_isolation_level() == "AUTOCOMMIT"
        assert connection.execute(sa.text("SELECT 1")).scalar() == 1
    with pytest.raises(sa.exc.ArgumentError, match="AUTOCOMMIT"):
        engine.connect().execution_options(isolation_level="SERIALIZABLE")


@pytest.mark.parametrize("url", ["olapdb://", "olapdb:///:memory:"])
def test_threads_share_a_warehouse_in_memory(url):
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TABLE t (n UInt64) ORDER BY n"))

        def insert(number):
            with engine.begin() as other:
                other.execute(sa.text("INSERT INTO t VALUES (:n)"), {"n": number})

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(insert, range(8)))
        assert connection.execute(sa.text("SELECT count() FROM t")).scalar() == 8
    engine.dispose()


def test_options_of_the_url(tmp_path):
    folder = tmp_path / "w"
    for query in ("durability=process", "read_only=true&max_threads=2"):
        engine = sa.create_engine(f"olapdb:///{folder}?{query}")
        with engine.connect() as connection:
            assert connection.execute(sa.text("SELECT 1")).scalar() == 1
        engine.dispose()
    with pytest.raises(sa.exc.ArgumentError, match="read_only is 1 or 0"):
        sa.create_engine(f"olapdb:///{folder}?read_only=maybe").connect()


@pytest.mark.parametrize(
    ("storage", "key"),
    [
        ("MergeTree ORDER BY (`odd, name`, day, `select`)", ["odd, name", "day", "select"]),
        ("MergeTree ORDER BY (day, `odd, name`)", ["day", "odd, name"]),
        ("MergeTree ORDER BY (day)", ["day"]),
        ("MergeTree PRIMARY KEY day ORDER BY (day, id)", ["day"]),
        ("MergeTree ORDER BY (day, id % 8)", []),
        ("MergeTree ORDER BY (day, greatest(id, `select`))", []),
        ("MergeTree ORDER BY tuple()", []),
        ("Memory", []),
    ],
)
@pytest.mark.parametrize("kind", ["TABLE", "TEMPORARY TABLE"])
def test_the_primary_key_is_reflected(engine, kind, storage, key):
    with engine.connect() as connection:
        connection.execute(
            sa.text(
                f"CREATE {kind} keyed (id UInt32, day Date, `select` UInt32, `odd, name` String)"
                f" ENGINE = {storage}"
            )
        )
        assert sa.inspect(connection).get_pk_constraint("keyed") == {
            "constrained_columns": key,
            "name": None,
        }
        reflected = sa.Table("keyed", sa.MetaData(), autoload_with=connection)
        assert [column.name for column in reflected.primary_key] == key
    with pytest.raises(sa.exc.NoSuchTableError):
        sa.inspect(engine).get_pk_constraint("nothing")
    assert sa.inspect(engine).get_pk_constraint("late")["constrained_columns"] == []


def test_automap_maps_a_table_by_its_primary_key(engine):
    base = automap_base()
    base.prepare(autoload_with=engine)
    with orm.Session(engine) as session:
        flight = session.get(base.classes.flights, 2)
        assert flight.origin == "EWR"


def test_a_reflected_key_may_be_left_out_of_an_insert(engine):
    """As in SQL: the column takes the default of its type. SQLAlchemy warns."""
    with engine.connect() as connection:
        connection.execute(
            sa.text("CREATE TABLE few (k Int32, v Int32) ENGINE = MergeTree ORDER BY k")
        )
        few = sa.Table("few", sa.MetaData(), autoload_with=connection)
        with pytest.warns(sa.exc.SAWarning, match="primary key"):
            connection.execute(sa.insert(few).values(v=1))
        assert connection.execute(sa.select(few)).all() == [(0, 1)]


def test_a_savepoint_is_refused_with_the_reason(engine):
    with (
        engine.connect() as connection,
        pytest.raises(sa.exc.NotSupportedError, match=r"SAVEPOINT is not supported.*atomic commit"),
    ):
        connection.begin_nested()


def test_the_url_gives_the_arguments_of_connect():
    made = sa.create_engine("olapdb://?uncompressed_cache_size=1000000&max_threads=1")
    with made.connect() as connection:
        assert connection.execute(sa.text("SELECT getSetting('max_threads')")).scalar() == 1
    for url, said in {
        "olapdb://?durabilty=full": "Maybe you meant durability",
        "olapdb://?read_onli=1": "Maybe you meant read_only",
        "olapdb://?uncompressed_cache_size=much": "is a number of bytes",
    }.items():
        with pytest.raises(sa.exc.ArgumentError, match=said):
            sa.create_engine(url).connect()


def test_the_url_gives_settings_whose_names_are_like_those_of_arguments():
    made = sa.create_engine("olapdb://?readonly=1&use_uncompressed_cache=0")
    with made.connect() as connection:
        assert connection.execute(sa.text("SELECT getSetting('readonly')")).scalar() == 1


def test_none_is_the_default_unless_the_url_refuses_it():
    table = sa.Table("t", sa.MetaData(), sa.Column("s", sa.String, nullable=False))
    for url, rows in {"olapdb://": [("",)], "olapdb://?input_format_null_as_default=0": []}.items():
        made = sa.create_engine(url)
        table.create(made)
        with made.connect() as connection:
            if rows:
                connection.execute(table.insert(), {"s": None})
            else:
                with pytest.raises(sa.exc.DataError, match="NULL is no value of String"):
                    connection.execute(table.insert(), {"s": None})
            assert connection.execute(sa.select(table)).all() == rows

"""The thin SQLAlchemy dialect: text, reflection, SELECT from reflected tables."""

import uuid

import pytest
import sqlalchemy as sa

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

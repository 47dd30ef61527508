"""CREATE TABLE, indexes and types of Core: what Core declares is what the engine has."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid

import pandas as pd
import pytest
import sqlalchemy as sa

from olapdb.alchemy.types import ClickHouseType

pytestmark = pytest.mark.feature("sqlalchemy")


@pytest.fixture
def engine():
    engine = sa.create_engine("olapdb://")
    yield engine
    engine.dispose()


def _shown(engine, name):
    with engine.connect() as connection:
        return connection.execute(sa.text(f"SHOW CREATE TABLE {name}")).scalar()


def test_a_table_is_a_merge_tree_by_its_primary_key(engine):
    table = sa.Table(
        "sales",
        sa.MetaData(),
        sa.Column("day", sa.Date, primary_key=True),
        sa.Column("shop", sa.String(20), primary_key=True, comment="it's a shop"),
        sa.Column("amount", sa.Numeric(12, 2), server_default="1.5"),
        sa.Column("twice", sa.Numeric(12, 2), sa.Computed("amount * 2")),
        sa.Column("seen", sa.Integer, sa.Computed("1 + 1", persisted=False), nullable=False),
        sa.CheckConstraint("shop != ''", name="named"),
        sa.Index("by_shop", "shop", olapdb_type="set(100)", olapdb_granularity=2),
        comment="of all shops",
    )
    table.create(engine)
    assert _shown(engine, "sales") == (
        "CREATE TABLE default.sales\n(\n    `day` Date32,\n    `shop` String COMMENT 'it\\'s a shop',\n"
        "    `amount` Nullable(Decimal(12, 2)) DEFAULT '1.5',\n"
        "    `twice` Nullable(Decimal(12, 2)) MATERIALIZED amount * 2,\n"
        "    `seen` Int32 ALIAS 1 + 1,\n"
        "    INDEX by_shop shop TYPE set(100) GRANULARITY 2,\n"
        "    CONSTRAINT named CHECK shop != ''\n)\nENGINE = MergeTree\nORDER BY (day, shop)\n"
        "SETTINGS index_granularity = 8192\nCOMMENT 'of all shops'"
    )
    with engine.connect() as connection:
        connection.execute(sa.insert(table), {"day": datetime.date(1950, 1, 2), "shop": "a"})
        row = connection.execute(sa.select(table)).one()
        with pytest.raises(sa.exc.DatabaseError, match="VIOLATED_CONSTRAINT"):
            connection.execute(sa.insert(table), {"day": datetime.date(2000, 1, 2), "shop": ""})
    assert row == (
        datetime.date(1950, 1, 2), "a", decimal.Decimal("1.50"), decimal.Decimal("3.00"), 2
    )  # fmt: skip


def test_engine_and_clauses_are_arguments_of_the_table(engine):
    table = sa.Table(
        "sums",
        sa.MetaData(),
        sa.Column("day", ClickHouseType("Date"), nullable=False, olapdb_codec="ZSTD(3)"),
        sa.Column("key", ClickHouseType("LowCardinality(String)")),
        sa.Column("n", ClickHouseType("UInt64"), nullable=False),
        sa.Column("m", ClickHouseType("Map(String, UInt8)")),
        olapdb_engine="SummingMergeTree(n)",
        olapdb_order_by=["day", sa.text("intHash32(toUInt32(day))")],
        olapdb_partition_by="toYYYYMM(day)",
        olapdb_ttl="day + INTERVAL 1 YEAR",
        olapdb_settings={"index_granularity": 4096},
    )
    table.create(engine)
    shown = _shown(engine, "sums")
    assert "`day` Date CODEC(ZSTD(3))" in shown
    assert "`key` LowCardinality(Nullable(String))" in shown
    assert "`n` UInt64" in shown
    assert "`m` Map(String, UInt8)" in shown
    assert "ENGINE = SummingMergeTree(n)\nPARTITION BY toYYYYMM(day)" in shown
    assert "ORDER BY (day, intHash32(toUInt32(day)))\nTTL day + toIntervalYear(1)" in shown
    assert "index_granularity = 4096" in shown


class _Color(enum.Enum):
    red = 1
    it_s = 2


_VALUES = {
    sa.SmallInteger(): -5,
    sa.Integer(): 2**31 - 1,
    sa.BigInteger(): -(2**63),
    sa.Boolean(): True,
    sa.Float(24): 1.5,
    sa.Double(): 0.1,
    sa.Numeric(20, 5): decimal.Decimal("-1.23456"),
    sa.Numeric(): decimal.Decimal("1.0000000001"),
    sa.String(3): "longer than it's said \\",
    sa.Text(): "é\n",
    sa.Date(): datetime.date(1901, 2, 3),
    sa.DateTime(): datetime.datetime(1950, 1, 2, 3, 4, 5, 678901),
    sa.DateTime(timezone=True): datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC),
    sa.Time(): datetime.time(23, 4, 5, 678901),
    sa.Interval(): datetime.timedelta(days=2, microseconds=5),
    sa.Uuid(): uuid.UUID(int=7),
    sa.Enum(_Color): _Color.it_s,
    sa.Enum("it's", "b\\"): "b\\",
    sa.JSON(): {"a": [1, None, "x"]},
    sa.ARRAY(sa.Integer): [1, 2],
    sa.ARRAY(sa.String, dimensions=2): [["a"], []],
}


@pytest.mark.parametrize("kind", _VALUES, ids=repr)
def test_values_of_each_type_come_back(engine, kind):
    table = sa.Table("one", sa.MetaData(), sa.Column("n", sa.Integer), sa.Column("value", kind))
    table.create(engine)
    value = _VALUES[kind]
    with engine.connect() as connection:
        connection.execute(sa.insert(table), [{"n": 1, "value": value}, {"n": 2, "value": None}])
        connection.execute(sa.insert(table).values(n=3, value=value))
        rows = connection.execute(sa.select(table.c.value).order_by(table.c.n)).scalars().all()
        if not isinstance(kind, sa.JSON):
            found = sa.select(sa.func.count()).where(table.c.value == value)
            assert connection.execute(found).scalar() == 2
    missing = [] if isinstance(kind, sa.ARRAY) else None
    assert rows == [value, missing, value]


def test_what_the_engine_lacks_is_refused(engine):
    metadata = sa.MetaData()
    unique = sa.Table("keys", metadata, sa.Column("a", sa.Integer, unique=True))
    with pytest.warns(sa.exc.SAWarning, match="unique by a"):
        unique.create(engine)
    with pytest.raises(sa.exc.CompileError, match="nothing would keep it unique"):
        sa.Index("ix", unique.c.a, unique=True).create(engine)
    numbered = sa.Table("numbered", metadata, sa.Column("a", sa.Integer, sa.Identity()))
    with pytest.raises(sa.exc.CompileError, match="identity"):
        numbered.create(engine)
    with engine.connect() as connection, pytest.raises(sa.exc.CompileError, match="RETURNING"):
        connection.execute(sa.insert(unique).returning(unique.c.a), {"a": 1})


def test_indexes_and_databases_come_and_go(engine):
    table = sa.Table("t", sa.MetaData(schema="shop"), sa.Column("a", sa.Integer, primary_key=True))
    index = sa.Index("ix", table.c.a)
    with engine.connect() as connection:
        connection.execute(sa.schema.CreateSchema("shop", if_not_exists=True))
        table.create(connection)
        assert "INDEX ix a TYPE minmax" in _shown(engine, "shop.t")
        index.drop(connection)
        assert "INDEX" not in _shown(engine, "shop.t")
        table.drop(connection)
        connection.execute(sa.schema.DropSchema("shop"))
        assert "shop" not in sa.inspect(connection).get_schema_names()


@pytest.mark.parametrize("method", [None, "multi"])
def test_frames_of_pandas_are_written_and_read(engine, method):
    frame = pd.DataFrame(
        {
            "i": [1, 2],
            "f": [1.5, None],
            "s": ["a", None],
            "t": pd.to_datetime(["2024-01-01 01:02:03.5", None]),
            "b": [True, False],
            "d": [datetime.date(2024, 1, 1)] * 2,
        }
    )
    frame.to_sql("frame", engine, index=False, method=method)
    frame.to_sql("frame", engine, index=False, if_exists="append", method=method)
    read = pd.read_sql("SELECT * FROM frame ORDER BY i", engine)
    assert read.i.tolist() == [1, 1, 2, 2]
    assert read.t[0] == frame.t[0]
    assert read.s.isna().tolist() == [False, False, True, True]
    frame.to_sql("frame", engine, if_exists="replace")
    assert pd.read_sql_table("frame", engine).columns[0] == "index"
    chunks = pd.read_sql(
        sa.text("SELECT * FROM frame WHERE i >= :i"), engine, "i", params={"i": 1}, chunksize=1
    )
    assert [len(chunk) for chunk in chunks] == [1, 1]


def test_bytes_are_any_bytes(engine):
    kinds = (sa.LargeBinary, sa.BINARY(4), sa.VARBINARY(4), sa.PickleType)
    columns = [sa.Column(f"c{number}", kind) for number, kind in enumerate(kinds)]
    table = sa.Table("bytes_of", sa.MetaData(), sa.Column("n", sa.Integer), *columns)
    table.create(engine)
    rows = [(1, b"\x00\xff", b"text", b"\xff", {"a": [1]}), (2, b"", b"\x80", None, None)]
    with engine.begin() as connection:
        names = table.c.keys()
        connection.execute(sa.insert(table), [dict(zip(names, row, strict=True)) for row in rows])
        stored = connection.execute(sa.select(table).order_by(table.c.n)).all()
        assert [tuple(row) for row in stored] == rows
        found = sa.select(table.c.n).where(table.c.c0 == b"\x00\xff")
        assert connection.execute(found).scalars().all() == [1]

"""Alembic: its operations, its table of the version, and what it finds changed."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from olapdb.alchemy.types import ClickHouseType

alembic = pytest.importorskip("alembic")
from alembic import command  # noqa: E402
from alembic.autogenerate import compare_metadata  # noqa: E402
from alembic.config import Config  # noqa: E402
from alembic.migration import MigrationContext  # noqa: E402
from alembic.operations import Operations  # noqa: E402

pytestmark = pytest.mark.feature("sqlalchemy")


@pytest.fixture
def connection():
    engine = sa.create_engine("olapdb://")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def _columns(connection, table):
    sql = f"SELECT name, type, default_expression, comment FROM system.columns WHERE table = '{table}'"
    return connection.execute(sa.text(sql)).all()


def test_operations_change_a_table(connection):
    operations = Operations(MigrationContext.configure(connection))
    operations.create_table(
        "t",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("n", sa.String(50)),
        olapdb_engine="ReplacingMergeTree",
    )
    operations.add_column("t", sa.Column("z", sa.Float, server_default="1", comment="it's z"))
    operations.alter_column("t", "n", server_default="a:b")
    operations.alter_column("t", "n", nullable=False, comment="said")
    operations.alter_column("t", "z", type_=sa.Numeric(10, 2), server_default=None)
    operations.alter_column("t", "n", new_column_name="name")
    operations.create_index("by_name", "t", ["name"], olapdb_type="set(10)")
    operations.create_check_constraint("positive", "t", "id > 0")
    operations.rename_table("t", "u")
    assert _columns(connection, "u") == [
        ("id", "Int32", "", ""),
        ("name", "String", "'a:b'", "said"),
        ("z", "Nullable(Decimal(10, 2))", "", "it's z"),
    ]
    shown = connection.execute(sa.text("SHOW CREATE TABLE u")).scalar()
    assert "INDEX by_name name TYPE set(10)" in shown
    assert "CONSTRAINT positive CHECK id > 0" in shown
    operations.drop_index("by_name", "u")
    operations.drop_column("u", "z")
    assert [name for name, *_ in _columns(connection, "u")] == ["id", "name"]
    operations.drop_table("u")


_ENVIRONMENT = """
from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection)
with context.begin_transaction():
    context.run_migrations()
"""
_MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = {revision!r}, {before!r}


def upgrade():
    op.create_table({revision!r}, sa.Column("id", sa.Integer, primary_key=True))


def downgrade():
    op.drop_table({revision!r})
"""


def test_migrations_go_up_and_down(connection, tmp_path):
    (tmp_path / "versions").mkdir()
    (tmp_path / "env.py").write_text(_ENVIRONMENT)
    for revision, before in (("first", None), ("second", "first")):
        text = _MIGRATION.format(revision=revision, before=before)
        (tmp_path / "versions" / f"{revision}.py").write_text(text)
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(tmp_path))
    inspect = lambda: sa.inspect(connection).get_table_names()  # noqa: E731
    command.upgrade(config, "first")
    assert inspect() == ["alembic_version", "first"]
    command.upgrade(config, "head")
    assert inspect() == ["alembic_version", "first", "second"]
    assert MigrationContext.configure(connection).get_current_revision() == "second"
    command.downgrade(config, "first")
    assert inspect() == ["alembic_version", "first"]
    command.downgrade(config, "base")
    assert MigrationContext.configure(connection).get_current_revision() is None


def test_a_table_of_core_has_nothing_to_change(connection):
    metadata = sa.MetaData()
    sa.Table(
        "users",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(20), nullable=False, index=True),
        sa.Column("at", sa.DateTime, comment="when"),
        sa.Column("total", sa.Numeric(10, 2)),
        sa.Column("kind", sa.Enum("a", "b")),
        sa.Column("tags", sa.ARRAY(sa.String)),
        sa.Column("m", ClickHouseType("Map(String, UInt8)")),
    )
    orders = sa.Table(
        "orders",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("user_id", sa.Integer, sa.ForeignKey("users.id")),
    )
    metadata.create_all(connection)
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    assert compare_metadata(context, metadata) == []
    orders.append_column(sa.Column("more", sa.Boolean))
    assert [change[0] for change in compare_metadata(context, metadata)] == ["add_column"]

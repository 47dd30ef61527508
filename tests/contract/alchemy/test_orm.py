"""The ORM over tables of its own: relationships, joins, changes, and keys that nothing counts up."""

from __future__ import annotations

from decimal import Decimal

import pytest
import sqlalchemy as sa
from sqlalchemy import orm

pytestmark = pytest.mark.feature("sqlalchemy")


class _Base(orm.DeclarativeBase):
    pass


class _User(_Base):
    __tablename__ = "users"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str]
    nick: orm.Mapped[str | None]
    orders: orm.Mapped[list[_Order]] = orm.relationship(back_populates="user", order_by="_Order.id")


class _Order(_Base):
    __tablename__ = "orders"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    user_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("users.id"))
    amount: orm.Mapped[Decimal] = orm.mapped_column(sa.Numeric(10, 2))
    user: orm.Mapped[_User] = orm.relationship(back_populates="orders")


@pytest.fixture
def session():
    engine = sa.create_engine("olapdb://")
    _Base.metadata.create_all(engine)
    _Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        first = _User(id=1, name="ann")
        first.orders = [_Order(id=7, amount=Decimal("5.25")), _Order(id=8, amount=Decimal(1))]
        session.add_all([first, _User(id=2, name="bob's", nick="b")])
        session.commit()
        yield session
    _Base.metadata.drop_all(engine)
    engine.dispose()


@pytest.mark.parametrize("load", [orm.joinedload, orm.selectinload, orm.subqueryload])
def test_related_rows_are_loaded_and_no_row_is_none(session, load):
    query = sa.select(_User).options(load(_User.orders)).order_by(_User.id)
    users = session.scalars(query).unique().all()
    assert [[order.id for order in user.orders] for user in users] == [[7, 8], []]


def test_outer_joins_have_nulls_only_in_statements_of_core(session):
    query = sa.select(_User.id, _Order.id).outerjoin(_Order).order_by(_User.id, _Order.id)
    assert session.execute(query).all() == [(1, 7), (1, 8), (2, None)]
    with_setting = query.suffix_with("SETTINGS max_threads = 1")
    assert session.execute(with_setting).all()[2] == (2, None)
    both = sa.union_all(query.order_by(None), sa.select(_User.id, _User.id)).limit(10)
    assert (2, None) in session.execute(both).all()
    text = "SELECT orders.id FROM users LEFT JOIN orders ON users.id = user_id WHERE users.id = 2"
    assert session.scalar(sa.text(text)) == 0


def test_rows_change_and_leave(session):
    user = session.get(_User, 1)
    user.name = "anna"
    session.delete(user.orders[1])
    session.commit()
    assert session.get(_User, 1).name == "anna"
    session.execute(sa.update(_User).where(_User.id == 2).values(nick=None))
    session.execute(sa.delete(_Order).where(_Order.amount > 100))
    session.execute(
        sa.insert(_Order).from_select(
            ["id", "user_id", "amount"], sa.select(_User.id + 100, _User.id, sa.literal(2))
        )
    )
    session.commit()
    assert session.scalars(sa.select(_Order.id).order_by(_Order.id)).all() == [7, 101, 102]
    assert session.scalar(sa.select(_User.nick).where(_User.id == 2)) is None


def test_queries_of_core(session):
    total = sa.func.sum(_Order.amount).label("total")
    grouped = sa.select(_User.name, total).join(_Order).group_by(_User.name)
    assert session.execute(grouped).all() == [("ann", Decimal("6.25"))]
    number = sa.func.row_number().over(order_by=_User.id.desc())
    assert session.execute(sa.select(_User.id, number).order_by(_User.id)).all() == [(1, 2), (2, 1)]
    assert session.scalars(
        sa.select(_User.id).where(_User.orders.any(_Order.amount > 5))
    ).all() == [1]
    assert session.scalars(sa.select(_User.id).where(_User.id.in_([]))).all() == []
    assert session.scalars(sa.select(_User.id).where(_User.name.contains("b's"))).all() == [2]
    cast = sa.select(sa.cast(_User.id, sa.String), sa.cast("1.5", sa.Numeric(5, 2)))
    assert session.execute(cast.order_by(_User.id)).first() == ("1", Decimal("1.50"))


def test_a_key_without_a_value_is_refused_before_anything_is_written(session):
    session.add(_User(name="no key"))
    with pytest.raises(sa.exc.StatementError, match="counts up no keys"):
        session.commit()
    session.rollback()
    assert session.scalar(sa.select(sa.func.count()).select_from(_User)) == 2

"""Values at binding: constants, parameters, IN lists, limits."""

from __future__ import annotations

import datetime
import decimal
import uuid

import pytest

from olapdb import errors
from olapdb.bind import bind_expression, bind_expression_over
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression, InValues, walk
from olapdb.plan.nodes import Field, Filter, Limit, Numbers, Project, Values
from olapdb.plan.tree import walk_nodes
from olapdb.sql.parser import parse_expression
from olapdb.types import DATE, INT64, UINT8
from tests.unit.bind.warehouse import COMPUTED, FLIGHTS, bind, scope

pytestmark = pytest.mark.feature("select", "insert")


def constant(query: str, parameters: object = ()) -> tuple[str, object]:
    """Return the type and the value of a query of one constant."""
    plan = bind(query, parameters)  # type: ignore[arg-type]
    assert isinstance(plan.root, Project)
    ((_, expression),) = plan.root.expressions
    assert isinstance(expression, Constant), expression
    return str(expression.type), expression.value.as_py()


def predicate(query: str) -> object:
    plan = bind(query)
    (node,) = [n for n in walk_nodes(plan.root) if isinstance(n, Filter)]
    return node.predicate


def test_pure_calls_of_constants_are_folded() -> None:
    assert constant("SELECT 1 + 2 * 3") == ("UInt32", 7)
    assert constant("WITH 5 AS n SELECT n + 1") == ("UInt16", 6)


def test_a_call_that_fails_waits_until_it_runs() -> None:
    plan = bind("SELECT if(1, 1, intDiv(1, 0)) AS x")
    assert plan.names == ("x",)


def test_now_is_not_folded() -> None:
    plan = bind("SELECT now()")
    assert isinstance(plan.root, Project)
    assert isinstance(plan.root.expressions[0][1], Call)


def test_compared_strings_take_the_columns_type() -> None:
    found = predicate("SELECT 1 FROM flights WHERE day >= '2013-02-01'")
    assert isinstance(found, Call)
    assert found.arguments[1] == Constant(DATE, found.arguments[1].value)  # type: ignore[attr-defined]
    assert found.arguments[1].value.as_py() == datetime.date(2013, 2, 1)  # type: ignore[attr-defined]


def test_a_decimal_cast_reads_the_literals_text() -> None:
    assert constant("SELECT 0.1::Decimal(38, 30)")[1] == decimal.Decimal("0.1")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ("Nullable(Nothing)", None)),
        (True, ("Bool", True)),
        (7, ("UInt8", 7)),
        (-7, ("Int8", -7)),
        (2**40, ("UInt64", 2**40)),
        (1.5, ("Float64", 1.5)),
        ("it's", ("String", "it's")),
        (decimal.Decimal("1.50"), ("Decimal(9, 2)", decimal.Decimal("1.50"))),
        (datetime.date(2013, 1, 2), ("Date", datetime.date(2013, 1, 2))),
        (datetime.date(1950, 1, 2), ("Date32", datetime.date(1950, 1, 2))),
        (uuid.UUID(int=5), ("UUID", uuid.UUID(int=5).bytes)),
        ([1, 300], ("Array(UInt16)", [1, 300])),
        ([], ("Array(Nothing)", [])),
        ((1, "a"), ("Tuple(UInt8, String)", {"1": 1, "2": "a"})),
        ({"a": 1}, ("Map(String, UInt8)", [("a", 1)])),
    ],
)
def test_parameters_have_the_types_of_literals(value: object, expected: tuple[str, object]) -> None:
    assert constant("SELECT ?", (value,)) == expected
    assert constant("SELECT :v", {"v": value}) == expected


def test_datetime_parameters_keep_fractions() -> None:
    moment = datetime.datetime(2013, 1, 2, 3, 4, 5)
    assert constant("SELECT ?", (moment,)) == ("DateTime", moment.replace(tzinfo=datetime.UTC))
    assert constant("SELECT ?", (moment.replace(microsecond=5),))[0] == "DateTime64(6)"


def test_typed_parameters_are_cast() -> None:
    assert constant("SELECT {v:UInt16}", {"v": "12"}) == ("UInt16", 12)
    assert constant("SELECT {v:Date}", {"v": "2013-01-02"}) == ("Date", datetime.date(2013, 1, 2))


def test_missing_parameters_are_named() -> None:
    with pytest.raises(errors.UnknownQueryParameter, match="'v'"):
        bind("SELECT :v", {"w": 1})
    with pytest.raises(errors.UnknownQueryParameter, match="at least 2"):
        bind("SELECT ?, ?", (1,))
    with pytest.raises(errors.InterfaceError, match="object"):
        bind("SELECT ?", (object(),))


def test_in_keeps_the_values_that_the_column_can_have() -> None:
    found = predicate("SELECT 1 FROM flights WHERE delay IN (1, 2, 2, NULL, 2.5, 99999999999)")
    assert isinstance(found, InValues)
    assert found.values.to_pylist() == [1, 2]
    assert found.type == UINT8


def test_in_reads_dates_and_parameters() -> None:
    found = predicate("SELECT 1 FROM flights WHERE day IN ('2013-01-01', '2013-01-02')")
    assert isinstance(found, InValues)
    assert found.values.to_pylist() == [datetime.date(2013, 1, 1), datetime.date(2013, 1, 2)]
    plan = bind("SELECT 1 FROM flights WHERE carrier IN ?", (["UA", "AA"],))
    (node,) = [n for n in walk_nodes(plan.root) if isinstance(n, Filter)]
    assert isinstance(node.predicate, InValues)
    assert node.predicate.values.to_pylist() == ["UA", "AA"]


def test_in_of_tuples() -> None:
    found = predicate("SELECT 1 FROM flights WHERE (carrier, delay) IN (('UA', 1), ('AA', 2.5))")
    assert isinstance(found, InValues)
    assert found.values.to_pylist() == [{"1": "UA", "2": 1}]


def test_in_of_different_kinds_is_refused() -> None:
    with pytest.raises(errors.TypeMismatch):
        bind("SELECT 1 FROM flights WHERE carrier IN (toDate('2024-01-01'))")
    with pytest.raises(errors.TypeMismatch):
        bind("SELECT 1 FROM flights WHERE carrier IN (SELECT [delay] FROM flights)")


def test_limits_are_constants() -> None:
    plan = bind("SELECT delay FROM flights LIMIT ? + 1 OFFSET ?", (4, 3))
    assert isinstance(plan.root, Limit)
    assert (plan.root.count, plan.root.offset) == (5, 3)
    with pytest.raises(errors.InvalidLimitExpression):
        bind("SELECT delay FROM flights LIMIT delay")
    with pytest.raises(errors.InvalidLimitExpression):
        bind("SELECT delay FROM flights LIMIT 'a'")


def test_table_functions() -> None:
    (numbers,) = [
        n
        for n in walk_nodes(bind("SELECT * FROM numbers(5, 10, 3)").root)
        if isinstance(n, Numbers)
    ]
    assert (numbers.start, numbers.count, numbers.step) == (5, 4, 3)
    plan = bind("SELECT b FROM values('a UInt8, b Array(String)', (1, ['x']), (2, []))")
    (values,) = [n for n in walk_nodes(plan.root) if isinstance(n, Values)]
    assert values.rows.columns[1].to_pylist() == [["x"], []]


def test_expression_over_a_table_uses_its_names() -> None:
    found = bind_expression(parse_expression("delay"), FLIGHTS, scope())
    assert isinstance(found, ColumnRef)
    assert found.name == "delay"
    expanded = bind_expression(parse_expression("after_next"), COMPUTED, scope())
    assert {"day"} == {e.name for e in _columns(expanded)}
    with pytest.raises(errors.IllegalAggregation):
        bind_expression(parse_expression("sum(delay)"), FLIGHTS, scope())
    with pytest.raises(errors.UnknownIdentifier, match=r"default\.flights"):
        bind_expression(parse_expression("nosuch"), FLIGHTS, scope())


def test_expression_over_a_schema() -> None:
    found = bind_expression_over(parse_expression("x + 1"), (Field("x", INT64),), scope())
    assert str(found.type) == "Int64"


def _columns(expression: object) -> list[ColumnRef]:
    assert isinstance(expression, Expression)
    return [e for e in walk(expression) if isinstance(e, ColumnRef)]


@pytest.mark.parametrize("number", ["toInt128(-5)", "toDecimal32(-5, 0)", "-5"])
def test_a_number_that_does_not_fit_is_shown_as_it_is_written(number: str) -> None:
    with pytest.raises(errors.ArgumentOutOfBound, match="value -5 from"):
        bind(f"SELECT * FROM values('a UInt8', {number})")

"""Expressions over a batch: conditions, IN, and branches that only some rows need."""

from __future__ import annotations

import pyarrow as pa
import pytest

from olapdb.compute.evaluate import evaluate, evaluate_array, evaluate_predicate
from olapdb.compute.hash_table import Lookup
from olapdb.errors import InternalError
from olapdb.functions.base import Environment
from olapdb.plan.expressions import Cast, Expression, InSubquery, InValues, ScalarSubquery
from olapdb.types import FLOAT64, INT8, INT64, STRING, UINT8, UINT64, Nullable
from tests.unit.execute.build import call, col, const, in_values, values

pytestmark = pytest.mark.feature("select")

ENVIRONMENT = Environment()
A, B, S = col("a", INT64), col("b", INT64), col("s", STRING)
N = col("n", Nullable(INT64))
BATCH = pa.record_batch(
    {"a": [1, 2, 3, 4], "b": [0, 1, 0, 2], "n": [None, 1, 0, None], "s": ["x", "y", "", "x"]}
)


def kept(condition: Expression, batch: pa.RecordBatch = BATCH) -> list[bool]:
    return [bool(v) for v in evaluate_predicate(condition, batch, ENVIRONMENT).to_pylist()]


def test_conditions_are_evaluated_as_booleans() -> None:
    assert kept(call("greater", A, const(2, UINT8))) == [False, False, True, True]
    assert kept(call("equals", S, const("x", STRING))) == [True, False, False, True]
    both = call("and", call("greater", A, const(1, UINT8)), call("less", A, const(4, UINT8)))
    assert kept(both) == [False, True, True, False]
    assert kept(call("not", both)) == [True, False, False, True]


def test_a_constant_that_the_column_cannot_hold_is_still_compared() -> None:
    small = col("i", INT8)
    batch = pa.record_batch({"i": pa.array([-1, 100], pa.int8())})
    assert kept(call("less", small, const(1000, UINT64)), batch) == [True, True]
    assert kept(call("greater", small, const(2**63, UINT64)), batch) == [False, False]


def test_numbers_are_conditions_and_null_is_false() -> None:
    assert kept(B) == [False, True, False, True]
    assert kept(N) == [False, True, False, False]
    assert kept(const(1, UINT8)) == [True] * 4
    assert kept(const(0, UINT8)) == [False] * 4


def test_not_of_null_is_null() -> None:
    assert kept(call("not", call("equals", N, const(1, UINT8)))) == [False, False, True, False]
    assert kept(call("not", N)) == [False, False, True, False]


def test_in_values() -> None:
    assert kept(in_values(A, [2, 4])) == [False, True, False, True]
    assert kept(in_values(A, [2, 4], negated=True)) == [True, False, True, False]
    nullable = InValues(Nullable(UINT8), N, pa.array([1], pa.int64()), (1,), True)
    found = evaluate(nullable, BATCH, ENVIRONMENT)
    assert found.to_pylist() == [None, 0, 1, None]


def test_subqueries_are_looked_up_in_their_answers() -> None:
    plan = values({"v": (INT64, [1, 4])})
    condition = InSubquery(UINT8, (A,), plan, False)
    answers = {condition.number: Lookup([pa.array([1, 4])], 2)}
    assert evaluate(condition, BATCH, ENVIRONMENT, answers).to_pylist() == [1, 0, 0, 1]
    scalar = ScalarSubquery(INT64, plan)
    assert evaluate(scalar, BATCH, ENVIRONMENT, {scalar.number: pa.scalar(7)}).as_py() == 7
    with pytest.raises(InternalError):
        evaluate(scalar, BATCH, ENVIRONMENT)


def test_if_divides_only_where_it_may() -> None:
    guarded = call("if", call("equals", B, const(0, UINT8)), const(0, INT64), call("intDiv", A, B))
    assert evaluate_array(guarded, BATCH, ENVIRONMENT).to_pylist() == [0, 2, 0, 2]


def test_multi_if_takes_the_first_true_condition() -> None:
    zero, two = const(0, UINT8), const(2, UINT8)
    chosen = call(
        "multiIf",
        call("equals", B, zero),
        const(-1, INT64),
        call("equals", call("intDiv", A, B), two),
        A,
        call("intDiv", const(100, INT64), B),
    )
    assert evaluate_array(chosen, BATCH, ENVIRONMENT).to_pylist() == [-1, 2, -1, 4]


@pytest.mark.parametrize("name", ["and", "or"])
def test_and_and_or_stop_at_what_decides(name: str) -> None:
    first = call("notEquals" if name == "and" else "equals", B, const(0, UINT8))
    second = call("equals", call("intDiv", A, B), const(2, UINT8))
    expected = {"and": [False, True, False, True], "or": [True, True, True, True]}
    assert kept(call(name, first, second)) == expected[name]


def test_lazy_and_keeps_null_apart_from_false() -> None:
    second = call("equals", call("intDiv", A, call("plus", B, const(1, UINT8))), const(1, UINT8))
    both = call("and", call("equals", N, const(1, UINT8)), second)
    assert evaluate_array(both, BATCH, ENVIRONMENT).to_pylist() == [None, 1, 0, None]


def test_an_empty_batch_and_constant_branches() -> None:
    guarded = call("if", const(1, UINT8), A, call("intDiv", A, const(0, INT64)))
    assert evaluate_array(guarded, BATCH, ENVIRONMENT).to_pylist() == [1, 2, 3, 4]
    assert evaluate_array(guarded, BATCH.slice(0, 0), ENVIRONMENT).to_pylist() == []


def test_casts_give_the_target_type() -> None:
    cast = Cast(FLOAT64, A)
    assert evaluate_array(cast, BATCH, ENVIRONMENT).type == pa.float64()


def test_an_unknown_expression_is_a_bug() -> None:
    with pytest.raises(InternalError):
        evaluate(Expression(INT64), BATCH, ENVIRONMENT)

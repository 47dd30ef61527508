"""The law of state, merge and finalize: no cut of the rows and no merge tree changes a result."""

from __future__ import annotations

import datetime
import decimal
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olapdb import functions
from olapdb.functions import Aggregate, Groups
from olapdb.types import DataType

pytestmark = pytest.mark.feature("aggregates")

GROUPS = 4
_BITS64 = st.integers(-(2**63), 2**63 - 1)
_FEW = st.integers(-3, 3)
VALUES: dict[str, st.SearchStrategy[object]] = {
    "UInt8": st.integers(0, 255),
    "Int64": st.one_of(_FEW, _BITS64),
    "UInt64": st.integers(0, 2**64 - 1),
    "Float64": st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1.5, float("nan")])),
    "Decimal(38, 2)": st.decimals(
        -(10**30), 10**30, places=2, allow_nan=False, allow_infinity=False
    ),
    "String": st.one_of(st.sampled_from(["", "a", "b", "ab", "ä"]), st.text(max_size=20)),
    "Date": st.dates(datetime.date(1970, 1, 1), datetime.date(2100, 1, 1)),
    "Bool": st.booleans(),
}
_NUMBERS = ("UInt8", "Int64", "UInt64", "Float64", "Decimal(38, 2)", "Nullable(Int64)")
_ANY = (
    "Int64",
    "Float64",
    "String",
    "Date",
    "Nullable(String)",
    "Nullable(Int64)",
    "Decimal(38, 2)",
)

_REGRESSIONS = ("slope", "intercept", "count", "r2", "avgx", "avgy", "sxx", "syy", "sxy")
CASES: list[tuple[str, tuple[object, ...], tuple[str, ...]]] = [
    ("count", (), ()),
    ("count", (), ("Nullable(Int64)",)),
    *(("sum", (), (t,)) for t in _NUMBERS),
    *(("avg", (), (t,)) for t in _NUMBERS),
    *((n, (), (t,)) for n in ("min", "max", "any") for t in _ANY),
    *(
        (n, (), a)
        for n in ("argMin", "argMax")
        for a in (
            ("String", "Int64"),
            ("Int64", "Float64"),
            ("Nullable(String)", "Nullable(Int64)"),
            ("Date", "String"),
        )
    ),
    *((n, (), (t,)) for n in ("uniqExact", "uniq") for t in _ANY),
    ("uniqExact", (), ("String", "Int64")),
    ("uniq", (), ("String", "Int64")),
    ("groupUniqArray", (), ("Int64",)),
    ("groupUniqArray", (3,), ("String",)),
    ("quantile", (0.9,), ("Float64",)),
    ("quantiles", (0.0, 0.5, 1.0), ("Int64",)),
    ("quantile", (), ("Nullable(Int64)",)),
    ("quantile", (), ("Date",)),
    ("stddevPop", (), ("UInt8",)),
    ("skewPop", (), ("UInt8",)),
    ("topK", (3,), ("UInt8",)),
    ("topK", (2, 3, "counts"), ("String",)),
    ("topKWeighted", (3,), ("String", "UInt8")),
    ("entropy", (), ("UInt8",)),
    ("groupConcat", (",",), ("String",)),
    ("groupConcat", (",", 2), ("String",)),
    ("retention", (), ("Bool", "Bool", "Bool")),
    ("windowFunnel", (50,), ("UInt8", "Bool", "Bool", "Bool")),
    ("windowFunnel", (5, "strict_increase"), ("Date", "Bool", "Bool")),
    ("sequenceNextNode", ("forward", "first_match"), ("Date", "String", "Bool", "Bool")),
    ("sequenceNextNode", ("backward", "tail"), ("UInt8", "String", "Bool", "Bool", "Bool")),
    ("windowFunnel", (50, "strict_order"), ("UInt8", "Bool", "Bool", "Bool")),
    ("windowFunnel", (50, "strict_deduplication"), ("UInt8", "Bool", "Bool", "Bool")),
    ("windowFunnel", (50, "strict_once"), ("UInt8", "Bool", "Bool", "Bool")),
    ("deltaSum", (), ("Int64",)),
    ("groupBitmap", (), ("UInt8",)),
    ("groupNumericIndexedVector", (), ("UInt8", "Int64")),
    ("groupNumericIndexedVector", ("BSI", 6, 0), ("UInt8", "Int64")),
    ("uniqCombined", (), ("Int64",)),
    ("quantileTDigest", (0.3,), ("Float64",)),
    ("quantilesTiming", (0.1, 0.9), ("UInt8",)),
    ("quantileExactLow", (), ("Int64",)),
    ("quantileExactInclusive", (0.3,), ("Int64",)),
    ("kurtSamp", (), ("UInt8",)),
    ("varSamp", (), ("Nullable(Int64)",)),
    ("anyLast", (), ("String",)),
    ("quantileExactWeighted", (0.3,), ("Int64", "UInt8")),
    ("quantilesExactWeighted", (0.0, 1.0), ("Float64", "UInt8")),
    ("quantileDeterministic", (0.5,), ("Int64", "Int64")),
    ("groupArrayMovingSum", (2,), ("Int64",)),
    ("groupArrayMovingAvg", (), ("UInt8",)),
    ("maxIntersections", (), ("UInt8", "UInt8")),
    ("maxIntersectionsPosition", (), ("UInt8", "UInt8")),
    ("intervalLengthSum", (), ("UInt8", "UInt8")),
    ("rankCorr", (), ("UInt8", "UInt8")),
    ("argAndMin", (), ("String", "Int64")),
    ("argAndMax", (), ("Nullable(String)", "Nullable(Int64)")),
    ("uniqUpTo", (2,), ("Nullable(String)",)),
    ("uniqUpTo", (3,), ("String", "Int64")),
    ("groupArrayInsertAt", (), ("String", "UInt8")),
    ("groupArrayInsertAt", (7, 20), ("Int64", "UInt8")),
    ("groupArraySample", (2, 5), ("String",)),
    ("cramersV", (), ("UInt8", "Bool")),
    ("sparkbar", (5,), ("UInt8", "Int64")),
    ("welchTTest", (0.9,), ("UInt8", "Bool")),
    ("approx_top_k", (3,), ("UInt8",)),
    ("corrMatrix", (), ("UInt8", "Bool")),
    ("exponentialMovingAverage", (5,), ("UInt8", "UInt8")),
    ("largestTriangleThreeBuckets", (4,), ("Int64", "UInt8")),
    ("stochasticLinearRegression", (0.01, 0.1, 3, "Adam"), ("UInt8", "Bool")),
    ("stochasticLogisticRegression", (0.01, 0.1, 3, "Nesterov"), ("Bool", "UInt8")),
    ("quantileBFloat16", (0.3,), ("Int64",)),
    ("quantilesDD", (0.01, 0.3, 0.9), ("Int64",)),
    ("quantileGK", (10, 0.3), ("Decimal(38, 2)",)),
    ("quantileTDigestWeighted", (0.3,), ("Int64", "UInt8")),
    ("quantilesInterpolatedWeighted", (0.3, 0.7), ("UInt8", "UInt8")),
    ("histogram", (4,), ("UInt8",)),
    ("gini", (), ("UInt8",)),
    ("categoricalInformationValue", (), ("UInt8", "Bool")),
    ("studentTTestOneSample", (), ("UInt8", "UInt8")),
    ("anyHeavy", (), ("String",)),
    ("sequenceMatch", ("(?1)(?t>2)(?2)",), ("UInt8", "Bool", "Bool")),
    ("sequenceCount", ("(?1).*(?2)",), ("UInt8", "Bool", "Bool")),
    ("sequenceMatchEvents", ("(?1).*(?2).(?1)",), ("UInt8", "Bool", "Bool")),
    ("anyHeavy", (), ("Nullable(Int64)",)),
    ("singleValueOrNull", (), ("Nullable(Int64)",)),
    ("boundingRatio", (), ("Float64", "UInt8")),
    ("deltaSumTimestamp", (), ("Int64", "UInt8")),
    ("deltaSumTimestamp", (), ("UInt8", "Date")),
    ("sumKahan", (), ("Float64",)),
    ("sumKahan", (), ("UInt8",)),
    ("any_respect_nulls", (), ("Nullable(Int64)",)),
    ("anyLast_respect_nulls", (), ("Nullable(String)",)),
    ("first_value", (), ("Nullable(Int64)",)),
    ("groupArray", (), ("String",)),
    ("groupArray", (2,), ("Int64",)),
    ("groupArraySorted", (3,), ("Int64",)),
    ("groupArraySorted", (2,), ("String",)),
    ("groupArrayLast", (2,), ("Int64",)),
    *((f"regr_{name}", (), ("Float64", "Int64")) for name in _REGRESSIONS),
    ("simpleLinearRegression", (), ("Int64", "Float64")),
    ("groupBitXor", (), ("UInt64",)),
    ("sumWithOverflow", (), ("UInt8",)),
    ("sumIf", (), ("Int64", "UInt8")),
    ("argMaxIf", (), ("String", "Int64", "UInt8")),
    ("avgIf", (), ("Nullable(Int64)", "UInt8")),
    ("quantileIf", (0.5,), ("Float64", "UInt8")),
    ("sumOrNull", (), ("Int64",)),
    ("minOrDefault", (), ("Nullable(Int64)",)),
    ("sumOrNullIf", (), ("Int64", "UInt8")),
    ("sumDistinct", (), ("Int64",)),
    ("sumArgMin", (), ("Int64", "Float64")),
    ("avgArgMax", (), ("Nullable(Int64)", "String")),
    ("groupUniqArrayArgMin", (), ("String", "Nullable(Int64)")),
    ("countArgMax", (), ("Date",)),
    *(
        ("quantilesExact", (0.0, 0.3, 1.0), (t,))
        for t in ("Int64", "Float64", "Decimal(38, 2)", "Date")
    ),
    ("quantileExact", (0.9,), ("Nullable(Int64)",)),
    ("sumCount", (), ("Nullable(Int64)",)),
    ("sumCount", (), ("UInt8",)),
    ("avgWeighted", (), ("UInt8", "Float64")),
    ("covarPop", (), ("UInt8", "Int64")),
    ("corr", (), ("Nullable(Int64)", "UInt8")),
    ("maxArgMinIf", (), ("String", "Int64", "UInt8")),
]


@dataclass(frozen=True)
class Drawn:
    """Rows by group, the cuts that make pieces of them, and the order of merges."""

    columns: list[pa.Array]
    codes: np.ndarray
    cuts: list[int]
    order: list[int]


def _values(type_name: str) -> st.SearchStrategy[object]:
    if type_name.startswith("Nullable("):
        return st.one_of(st.none(), VALUES[type_name[9:-1]])
    return VALUES[type_name]


@st.composite
def _rows(draw: st.DrawFn, types: tuple[DataType, ...]) -> Drawn:
    count = draw(st.integers(0, 40))
    columns = [
        pa.array(draw(st.lists(_values(t.name), min_size=count, max_size=count)), t.arrow)
        for t in types
    ]
    codes = draw(st.lists(st.integers(0, GROUPS - 1), min_size=count, max_size=count))
    cuts = sorted(draw(st.lists(st.integers(0, count), max_size=4)))
    order = draw(st.lists(st.integers(0, 10), min_size=10, max_size=10))
    return Drawn(columns, np.array(codes, np.int64), cuts, order)


def _states(aggregate: Aggregate, drawn: Drawn) -> list[pa.Array]:
    """Return the state of each piece of the rows; require valid Arrow of the declared state
    type."""
    made = []
    for start, stop in zip([0, *drawn.cuts], [*drawn.cuts, len(drawn.codes)], strict=True):
        pieces = [c.slice(start, stop - start) for c in drawn.columns]
        state = aggregate.state(pieces, Groups(drawn.codes[start:stop], GROUPS))
        assert state.type == aggregate.state_type.arrow
        state.validate(full=True)
        made.append(state)
    return made


def _merged_by_tree(aggregate: Aggregate, states: list[pa.Array], order: list[int]) -> pa.Array:
    """Merge neighbouring states two at a time, in a drawn order, then merge the rest."""
    states = list(states)
    for pick in order:
        if len(states) == 1:
            break
        at = pick % (len(states) - 1)
        states[at : at + 2] = [_merged(aggregate, states[at : at + 2])]
    return _merged(aggregate, states)


def _merged(aggregate: Aggregate, states: list[pa.Array]) -> pa.Array:
    codes = np.tile(np.arange(GROUPS, dtype=np.int64), len(states))
    merged = aggregate.merge(pa.concat_arrays(states), Groups(codes, GROUPS))
    assert merged.type == aggregate.state_type.arrow
    return merged


def _bits(array: pa.Array) -> object:
    """Return a value that compares floats by their bits: NaN equals itself, -0.0 differs from
    0.0."""
    return repr(array.to_pylist())


def _close(left: object, right: object) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return all(_close(left[k], right[k]) for k in left)
    if isinstance(left, float) and isinstance(right, float):
        return left == pytest.approx(right, rel=1e-9, abs=1e-300, nan_ok=True) or bool(
            np.isnan(left) or np.isnan(right) or np.isinf(left) or np.isinf(right)
        )
    return left == right


@pytest.mark.parametrize(("name", "parameters", "type_names"), CASES)
def test_no_cut_and_no_merge_tree_shows(
    name: str, parameters: tuple[object, ...], type_names: tuple[str, ...]
) -> None:
    types = tuple(functions.parse_type(t) for t in type_names)
    aggregate = functions.resolve_aggregate(name, parameters, types)

    @settings(max_examples=25)
    @given(_rows(types))
    def check(drawn: Drawn) -> None:
        whole = (
            aggregate.state(drawn.columns, Groups(drawn.codes, GROUPS))
            if types
            else (aggregate.state([], Groups(drawn.codes, GROUPS)))
        )
        cut = _merged_by_tree(aggregate, _states(aggregate, drawn), drawn.order)
        if aggregate.merge_class == "float":
            magnitude = _all_finite_and_small(drawn.columns)
            if magnitude:
                pairs = zip(whole.to_pylist(), cut.to_pylist(), strict=True)
                assert all(_close(a, b) for a, b in pairs)
        else:
            assert _bits(whole) == _bits(cut)
            assert _bits(aggregate.finalize(whole)) == _bits(aggregate.finalize(cut))
        finished = aggregate.finalize(cut)
        assert finished.type == aggregate.result_type.arrow
        finished.validate(full=True)

    check()


def _all_finite_and_small(columns: list[pa.Array]) -> bool:
    """Return whether sums of the columns neither cancel nor overflow, so a relative error has a
    bound."""
    for column in columns:
        if pa.types.is_floating(column.type):
            known = [v for v in column.to_pylist() if v is not None]
            if not all(np.isfinite(v) and 0 <= v < 1e100 for v in known):
                return False
    return True


@pytest.mark.parametrize("size", [8_192, 8_193, 70_000])
def test_sketches_of_many_values_do_not_depend_on_cuts(size: int) -> None:
    generator = np.random.default_rng(size)
    values = pa.array(generator.normal(size=size) * 10.0 ** generator.integers(-5, 6, size))
    for name, parameters in (("quantile", (0.9,)), ("uniq", ())):
        aggregate = functions.resolve_aggregate(name, parameters, [functions.parse_type("Float64")])
        whole = aggregate.state([values], Groups(np.zeros(size, np.int64), 1))
        pieces = [values.slice(at, 997) for at in range(0, size, 997)]
        states = [aggregate.state([p], Groups(np.zeros(len(p), np.int64), 1)) for p in pieces]
        left = states[0]
        for state in states[1:]:
            left = aggregate.merge(
                pa.concat_arrays([left, state]), Groups(np.zeros(2, np.int64), 1)
            )
        assert left.equals(whole)


def test_a_bucketed_quantile_is_within_one_percent() -> None:
    generator = np.random.default_rng(7)
    values = generator.lognormal(3, 2, 50_000) * generator.choice([-1.0, 1.0], 50_000)
    levels = (0.01, 0.1, 0.25, 0.75, 0.9, 0.99)
    aggregate = functions.resolve_aggregate("quantiles", levels, [functions.parse_type("Float64")])
    state = aggregate.state([pa.array(values)], Groups(np.zeros(len(values), np.int64), 1))
    assert len(state.field("values")[0].as_py()) == 0
    found = aggregate.finalize(state)[0].as_py()
    exact = np.quantile(values, levels)
    assert all(abs(f - e) <= 0.01 * abs(e) for f, e in zip(found, exact, strict=True))


@pytest.mark.parametrize("distinct", [1_000, 65_536, 300_000])
def test_uniq_is_exact_to_its_sample_and_within_two_percent_beyond(distinct: int) -> None:
    values = pa.array(np.arange(distinct, dtype=np.int64) * 7919)
    aggregate = functions.resolve_aggregate("uniq", (), [functions.parse_type("Int64")])
    groups = Groups(np.zeros(distinct, np.int64), 1)
    found = aggregate.finalize(aggregate.state([values], groups))[0].as_py()
    assert found == distinct if distinct <= 65_536 else abs(found / distinct - 1) < 0.02


_ACERO = [
    case
    for case in CASES
    if functions.resolve_aggregate(
        case[0], case[1], [functions.parse_type(t) for t in case[2]]
    ).acero()
    is not None
]


@pytest.mark.parametrize(("name", "parameters", "type_names"), _ACERO)
def test_acero_computes_the_very_same_state(
    name: str, parameters: tuple[object, ...], type_names: tuple[str, ...]
) -> None:
    types = tuple(functions.parse_type(t) for t in type_names)
    aggregate = functions.resolve_aggregate(name, parameters, types)
    leaves = aggregate.acero()
    assert leaves is not None

    @settings(max_examples=25)
    @given(_rows(types))
    def check(drawn: Drawn) -> None:
        if not len(drawn.codes):
            return
        present, codes = np.unique(drawn.codes, return_inverse=True)
        state = aggregate.state(drawn.columns, Groups(codes.reshape(-1), len(present)))
        names = [str(i) for i in range(len(drawn.columns))]
        table = pa.table([*drawn.columns, pa.array(codes.reshape(-1))], names=[*names, "key"])
        wanted = [
            (
                [] if leaf.argument is None else str(leaf.argument),
                leaf.function.removeprefix("hash_"),
                leaf.options,
            )
            for leaf in leaves
        ]
        made = pa.TableGroupBy(table, "key", use_threads=False).aggregate(wanted).sort_by("key")
        computed = [made.column(i + 1).combine_chunks() for i in range(len(leaves))]
        assert aggregate.from_acero(computed).equals(state)

    check()


def test_decimal_sums_are_exact() -> None:
    values = [decimal.Decimal(10**35 + i) / 100 for i in range(50)]
    data_type = functions.parse_type("Decimal(38, 2)")
    aggregate = functions.resolve_aggregate("sum", (), [data_type])
    state = aggregate.state([pa.array(values, data_type.arrow)], Groups(np.zeros(50, np.int64), 1))
    assert aggregate.finalize(state)[0].as_py() == sum(values)

"""The formatter's text of any tree parses to the same tree."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from olapdb import errors
from olapdb.sql import nodes
from olapdb.sql.format import column_name, to_sql
from olapdb.sql.parser import parse_expression, parse_one, parse_query
from olapdb.types import DATE, STRING, UINT8, Array, DateTime, Decimal, Nullable
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("sql")

_WORDS = st.sampled_from(
    [
        "a",
        "b",
        "t",
        "x1",
        "date",
        "when",
        "select",
        "from",
        "left",
        "key",
        "a b",
        "it's",
        "`",
        "é",
        "null",
        "case",
        "interval",
        "count",
        "1a",
        "end",
        "not",
        "in",
        "as",
        "final",
        "\\",
        "a\nb",
    ]
)
_FUNCTIONS = st.sampled_from(
    [
        "f",
        "sum",
        "plus",
        "minus",
        "multiply",
        "divide",
        "modulo",
        "intDiv",
        "equals",
        "less",
        "and",
        "or",
        "not",
        "negate",
        "concat",
        "like",
        "notLike",
        "isNull",
        "isNotNull",
        "arrayElement",
        "tupleElement",
        "if",
        "multiIf",
        "any",
        "left",
        "replace",
        "isNotDistinctFrom",
        "tuple",
        "array",
        "caseWithExpression",
        "quantile",
        "match",
        "xor",
    ]
)
_TYPES = st.sampled_from(
    [UINT8, STRING, DATE, Nullable(STRING), Array(UINT8), Decimal(10, 2), DateTime("UTC")]
)


def _number(value: float) -> nodes.Literal:
    return nodes.Literal(value)


_LITERALS = st.one_of(
    st.integers(-(2**63), 2**64 - 1).map(_number),
    st.floats(allow_nan=False).map(_number),
    st.text(max_size=6).map(nodes.Literal),
    st.sampled_from([None, True, False]).map(nodes.Literal),
)
_IDENTIFIERS = st.lists(_WORDS, min_size=1, max_size=3).map(lambda p: nodes.Identifier(tuple(p)))
_PARAMETERS = st.one_of(
    st.builds(nodes.Parameter, st.just("p"), st.none(), _TYPES),
    st.builds(nodes.Parameter, st.just("name"), st.none()),
    st.builds(nodes.Parameter, st.none(), st.integers(0, 3)),
)


def _tuple_of(
    strategy: st.SearchStrategy[nodes.Expression], smallest: int = 0, largest: int = 3
) -> st.SearchStrategy[tuple[nodes.Expression, ...]]:
    return st.lists(strategy, min_size=smallest, max_size=largest).map(tuple)


def _may_be_an_amount(node: nodes.Expression) -> bool:
    """Return whether an expression is no text: as the amount of an interval a text begins as a number."""
    return not isinstance(node, nodes.Literal) or not isinstance(node.value, str)


def _compound(inner: st.SearchStrategy[nodes.Expression]) -> st.SearchStrategy[nodes.Expression]:
    several = _tuple_of(inner)
    order = st.lists(
        st.builds(nodes.OrderItem, inner, st.booleans(), st.sampled_from([None, True, False])),
        max_size=2,
    ).map(tuple)
    window = st.builds(
        nodes.WindowSpec,
        several,
        order,
        st.just("ROWS"),
        st.just(nodes.FrameBound("PRECEDING", nodes.Literal(1))),
        st.just(nodes.FrameBound("CURRENT")),
    )
    return st.one_of(
        st.builds(nodes.Function, _FUNCTIONS, several),
        st.builds(nodes.Function, st.just("quantile"), _tuple_of(inner, 1), _tuple_of(inner, 1)),
        st.builds(
            nodes.Function,
            st.just("sum"),
            _tuple_of(inner, 1),
            st.just(()),
            st.booleans(),
            st.none() | inner,
            st.none() | window | st.just("w"),
            st.sampled_from([None, "RESPECT", "IGNORE"]),
        ),
        st.builds(nodes.ArrayLiteral, several),
        st.builds(nodes.TupleLiteral, several),
        st.builds(nodes.Cast, inner, _TYPES),
        st.builds(nodes.In, inner, _tuple_of(inner, 1).map(nodes.TupleLiteral), st.booleans()),
        st.builds(nodes.Alias, inner, _WORDS),
        st.builds(nodes.Lambda, st.lists(_WORDS, max_size=2).map(tuple), inner),
        st.builds(
            nodes.IntervalLiteral,
            inner.filter(_may_be_an_amount),
            st.sampled_from(["Day", "Second", "Quarter"]),
        ),
        st.builds(nodes.Subquery, st.builds(nodes.Select, _tuple_of(inner, 1))),
        st.builds(nodes.Exists, st.builds(nodes.Select, _tuple_of(inner, 1))),
    )


_EXPRESSIONS: st.SearchStrategy[nodes.Expression] = st.recursive(
    st.one_of(_LITERALS, _IDENTIFIERS, _PARAMETERS), _compound, max_leaves=12
)


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(_EXPRESSIONS)
def test_any_expression_reads_back(expression: nodes.Expression) -> None:
    written = to_sql(expression)
    assert parse_expression(written) == expression, written
    assert column_name(expression)


_RELATIONS: st.SearchStrategy[nodes.Relation] = st.recursive(
    st.one_of(
        st.builds(
            nodes.TableReference,
            st.builds(nodes.TableName, _WORDS, st.none() | _WORDS),
            st.none() | _WORDS,
            st.booleans(),
            st.none() | _EXPRESSIONS,
        ),
        st.builds(
            nodes.TableFunction, st.just("numbers"), _tuple_of(_LITERALS), st.none() | _WORDS
        ),
        st.builds(nodes.SubqueryRelation, st.builds(nodes.Select, _tuple_of(_LITERALS, 1)), _WORDS),
    ),
    lambda inner: st.one_of(
        st.builds(
            nodes.Join,
            inner,
            inner,
            st.sampled_from(["INNER", "LEFT", "FULL"]),
            st.sampled_from(["", "ANY", "ASOF"]),
            _EXPRESSIONS,
        ),
        st.builds(nodes.Join, inner, inner, st.just("CROSS")),
        st.builds(
            nodes.Join,
            inner,
            inner,
            st.just("LEFT"),
            st.just("SEMI"),
            st.none(),
            st.lists(_WORDS, min_size=1, max_size=2).map(tuple),
        ),
        st.builds(nodes.ArrayJoin, inner, _tuple_of(_EXPRESSIONS, 1, 2), st.booleans()),
    ),
    max_leaves=3,
)
_ORDER = st.lists(
    st.builds(
        nodes.OrderItem,
        _EXPRESSIONS,
        st.booleans(),
        st.sampled_from([None, True, False]),
        st.none() | st.just("en"),
    ),
    max_size=2,
).map(tuple)
_SELECTS = st.builds(
    nodes.Select,
    _tuple_of(_EXPRESSIONS, 1),
    st.lists(
        st.builds(nodes.WithItem, _WORDS, st.none(), _EXPRESSIONS)
        | st.builds(nodes.WithItem, _WORDS, st.builds(nodes.Select, _tuple_of(_LITERALS, 1))),
        max_size=2,
    ).map(tuple),
    distinct=st.booleans(),
    source=st.none() | _RELATIONS,
    prewhere=st.none() | _EXPRESSIONS,
    where=st.none() | _EXPRESSIONS,
    group_by=st.none()
    | st.just("ALL")
    # GROUP BY () is no key at all, so no tree has the empty tuple as its only key
    | _tuple_of(_EXPRESSIONS, 1, 2).map(lambda k: () if k == (nodes.TupleLiteral(()),) else k),
    having=st.none() | _EXPRESSIONS,
    qualify=st.none() | _EXPRESSIONS,
    order_by=_ORDER
    | st.builds(nodes.OrderByAll, st.booleans(), st.sampled_from([None, True, False])),
    limit_by=st.none()
    | st.builds(nodes.LimitBy, _LITERALS, st.just("ALL") | _tuple_of(_EXPRESSIONS, 1, 2)),
    limit=st.none() | _LITERALS,
    settings=st.sampled_from([(), (nodes.Setting("a", 1), nodes.Setting("b", "x"))]),
)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(_SELECTS)
def test_any_select_reads_back(select: nodes.Select) -> None:
    written = to_sql(select)
    assert parse_query(written) == select, written


_ONE = nodes.Select((nodes.Literal(1),))
_SET_OPERATIONS: st.SearchStrategy[nodes.Query] = st.recursive(
    st.just(_ONE)
    | st.just(nodes.Select((nodes.Literal(1),), limit=nodes.Literal(2)))
    | st.just(nodes.Select((nodes.Literal(1),), settings=(nodes.Setting("a", 1),))),
    lambda inner: st.builds(
        nodes.SetOperation,
        inner,
        inner,
        st.sampled_from(["UNION", "EXCEPT", "INTERSECT"]),
        st.sampled_from(["", "ALL", "DISTINCT"]),
        st.sampled_from([(), (nodes.WithItem("x", _ONE),)]),
        settings=st.sampled_from([(), (nodes.Setting("b", 2),)]),
    ),
    max_leaves=6,
)


@settings(max_examples=100)
@given(_SET_OPERATIONS)
def test_any_set_operation_reads_back(query: nodes.Query) -> None:
    written = to_sql(query)
    assert parse_query(written) == query, written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a+b*c", "a + (b * c)"),
        ("(a+b)*c", "(a + b) * c"),
        ("a and b or c", "(a AND b) OR c"),
        ("-(-a)", "-(-a)"),
        ("-(1)", "-(1)"),
        ("not a", "NOT a"),
        ("t.1.2", "(t.1).2"),
        ("f(a).x", "tupleElement(f(a), 'x')"),
        ("a::Int8", "CAST(a, 'Int8')"),
        ("case when a then b end", "multiIf(a, b, NULL)"),
        ("a in (1)", "a IN (1)"),
        ("a not in (select 1)", "a NOT IN (SELECT 1)"),
        ("a between 1 and 2", "(a >= 1) AND (a <= 2)"),
        ("x->x+1", "(x -> (x + 1))"),
        ("a || 'b'", "concat(a, 'b')"),
        ("`a b`.`select`", "`a b`.`select`"),
        ("'it''s\n'", "'it\\'s\\n'"),
        ("1.50", "1.50"),
        ("interval a+1 day", "INTERVAL (a + 1) DAY"),
    ],
)
def test_written_form(text: str, expected: str) -> None:
    assert to_sql(parse_expression(text)) == expected


def test_create_materialized_view_is_written_as_dbt_reads_it() -> None:
    written = to_sql(parse_one("create materialized view d.v to d.t (k UInt32) as select k from s"))
    assert written == "CREATE MATERIALIZED VIEW d.v TO d.t (`k` UInt32) AS SELECT k FROM s"


def test_statements_without_a_text_are_refused() -> None:
    with pytest.raises(errors.NotSupportedError):
        to_sql(parse_one("USE d"))


_NAMED = """
1 + 2, number + 1, -number, -1, - 1, -(1), 1.0, 1.5, 1e3, 0x1F, 'a\\'b\\n', NULL, true, [1, 2], [number]
(1, 2), (number, 1), [], tuple(1, 2), (1,), (1, 'a', NULL), [[1], [2]], tuple(), ()
1 AND 2 AND 3, (1 AND 2) AND 3, 1 AND (2 AND 3), 1 BETWEEN 0 AND 2 AND 3, 1 NOT BETWEEN 1 AND 2
1 OR 2 OR 3, 'a' || 'b' || 'c', ('a' || 'b') || 'c'
number IN (1), number IN (1, 2), number NOT IN (1, 2), number IN [1, 2], (number, 1) IN ((1, 2), (3, 4))
5::UInt8, CAST(5 AS UInt8), CAST(5, 'UInt8'), -1::Int8, CAST(number AS Nullable(String))
INTERVAL 1 DAY, DATE '2020-01-01', TIMESTAMP '2020-01-01 00:00:00', now() - INTERVAL '1 day'
CASE WHEN 1 THEN 2 END, CASE WHEN 1 THEN 2 ELSE 3 END, CASE number WHEN 1 THEN 2 ELSE 3 END, 1 ? 2 : 3
1 IS NULL, 1 IS NOT NULL, 1 IS DISTINCT FROM 2, 1 <=> 2, NOT 1, NOT (1) = 0, not(1) + 5, 5 DIV 2, 5 MOD 2
'a' LIKE 'b', 'a' NOT LIKE 'b', 'a' ILIKE 'b', 'a' NOT ILIKE 'b', 'a' REGEXP 'b'
EXTRACT(YEAR FROM today()), EXTRACT(DAY FROM today()), EXTRACT(WEEK FROM now()), EXTRACT(DOW FROM now())
SUBSTRING('abc' FROM 1 FOR 2), TRIM(BOTH 'a' FROM 'aba'), TRIM('a'), TRIM(LEADING 'a' FROM 'ab'), POSITION('a' IN 'ba')
DATE_ADD(DAY, 1, today()), DATE_ADD(today(), INTERVAL 1 DAY), DATEDIFF(DAY, today(), today()), DATE_SUB(MONTH, 1, today())
arrayMap(x -> x + number, [1, 2]), arrayMap((x, y) -> x + y, [1], [2]), (1, 2).1, [1, 2][1], map('a', 1)['a']
1 = 2 IS NULL, NOT 1 IS NULL, 2 > 1 BETWEEN 0 AND 1, 1 < 2 = 1, 1 + 2 || 'a', - 1 * 2, 2 - -1, -2 % 3
1e16, 1e20, 1e21, 1e-7, 0.000001, 0.000015, 18446744073709551616, inf, -inf, 123456789.123
""".strip().splitlines()


@pytest.mark.parametrize("columns", _NAMED)
def test_column_names_are_those_of_clickhouse(columns: str, oracle: Oracle) -> None:
    text = f"SELECT {columns} FROM numbers(1)"
    query = parse_query(text)
    assert isinstance(query, nodes.Select)
    assert [column_name(column) for column in query.columns] == list(oracle.query(text).names)


_AGGREGATES = """
count(), count(*), uniq(number), quantile(0.5)(number), COUNT(number), sum(number) FILTER (WHERE number > 1), count(DISTINCT number)
sum(number) OVER (PARTITION BY number ORDER BY number), row_number() OVER w, sum(number) OVER (ROWS 1 PRECEDING)
""".strip().splitlines()


@pytest.mark.parametrize("columns", _AGGREGATES)
def test_names_of_aggregates(columns: str, oracle: Oracle) -> None:
    window = " WINDOW w AS (ORDER BY number)" if " w" in columns else ""
    text = f"SELECT {columns} FROM numbers(1){window}"
    query = parse_query(text)
    assert isinstance(query, nodes.Select)
    assert [column_name(column) for column in query.columns] == list(oracle.query(text).names)


@pytest.mark.parametrize("columns", _NAMED)
def test_what_is_written_means_the_same_to_clickhouse(columns: str, oracle: Oracle) -> None:
    text = f"SELECT {columns} FROM numbers(1)"
    written = to_sql(parse_query(text))
    assert oracle.query(written).types == oracle.query(text).types

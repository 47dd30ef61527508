"""Text indexes never skip a row of an answer, whatever the texts, the tokenizer and the condition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.execute.pruning.text_index import literal_runs
from olapdb.sql.literals import quote_string

pytestmark = pytest.mark.feature("engines")

TOKENIZERS = (
    "splitByNonAlpha",
    "splitByString([', ', ' '])",
    "splitByRegexp('[0-9]+')",
    "asciiCJK",
    "ngrams(2)",
    "sparseGrams(3, 5)",
    "array",
)
COLUMNS = {
    "s": "String",
    "n": "Nullable(String)",
    "l": "LowCardinality(String)",
    "f": "FixedString(6)",
    "a": "Array(String)",
    "an": "Array(Nullable(String))",
}
pieces = st.sampled_from(
    ["ab", "a", "b", "B", "12", " ", ",", ":", ".", "_", "%", "é", "中", "\\", "k"]
)
texts = st.lists(pieces, max_size=5).map("".join)
CONDITIONS = (
    "{c} = {x}",
    "{c} != {x}",
    "{c} IN ({x}, {y})",
    "{c} NOT IN ({x}, {y})",
    "{c} LIKE {p}",
    "{c} NOT LIKE {p}",
    "{c} ILIKE {p}",
    "startsWith({c}, {x})",
    "endsWith({c}, {x})",
    "match({c}, {r})",
    "multiSearchAny({c}, [{x}, {y}])",
    "hasTokenOrNull({c}, {x})",
    "NOT ({c} = {x})",
    "{c} = {x} OR {c} LIKE {p}",
    "{c} LIKE {p} AND {c} != {y}",
    "isNull({c})",
    "empty({c})",
    "hasPhrase({c}, {x})",
    "position({c}, {x}) > 0",
    "lower({c}) = {x}",
    "{x} = concat({c}, 'b')",
    "concat({c}, 'b') IN ({x}, {y})",
)
BOTH = (
    "hasAnyTokens({c}, {x})",
    "hasAllTokens({c}, {x}, {t})",
    "hasAllTokens({c}, [{x}, {y}], {t})",
    "hasAnyTokens({c}, [{x}, {y}], {t})",
    "hasAnyTokens({c}, {y}, 'ngrams(2)')",
    "NOT hasAllTokens({c}, {x}, {t})",
)
ARRAYS = (
    "has({c}, {x})",
    "hasAny({c}, [{x}, {y}])",
    "hasAll({c}, [{x}, {y}])",
    "NOT has({c}, {x})",
    "empty({c})",
    "{c} = [{x}]",
    "has({c}, {x}) OR hasAny({c}, [{y}])",
)


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with olapdb.connect(":memory:", settings={"inline_bytes_max": 0}) as opened:
        opened.execute("SYSTEM STOP MERGES")
        yield opened


def fill(connection: Connection, tokenizer: str, rows: list[str], preprocessor: str = "") -> None:
    """Create `t` with a row of each column for each text, in granules of two rows, and an index
    over each column."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    indexes = ", ".join(
        f"INDEX i_{name} {name} TYPE text(tokenizer = {tokenizer}"
        + (f", preprocessor = {preprocessor.format(name)})" if preprocessor else ")")
        for name in COLUMNS
    )
    connection.execute("DROP TABLE IF EXISTS t")
    connection.execute(
        f"CREATE TABLE t (id UInt64, {columns}, {indexes}) ENGINE = MergeTree ORDER BY id"
        " SETTINGS index_granularity = 2"
    )
    values = []
    for at, text in enumerate(rows):
        quoted, other = quote_string(text), quote_string(rows[at - 1])
        fixed = quote_string(text.encode()[:6].decode("utf-8", "ignore"))
        nullable = "NULL" if at % 4 == 1 else quoted
        array = "[]" if at % 5 == 2 else f"[{quoted}, {other}]"
        values.append(
            f"({at}, {quoted}, {nullable}, {quoted}, {fixed}, {array}, [{nullable}, {other}])"
        )
    connection.execute(f"INSERT INTO t VALUES {', '.join(values)}")


def answer(connection: Connection, where: str, indexes: int) -> object:
    """Return the ids of the rows, or the class of the error."""
    try:
        return connection.execute(
            f"SELECT id FROM t WHERE {where} ORDER BY id SETTINGS use_skip_indexes = {indexes}"
        ).fetchall()
    except olapdb.Error as error:
        return type(error)


def assert_same(connection: Connection, where: str) -> None:
    """Require one answer with and without indexes; a condition that fails on rows may fail on none
    of those that are left."""
    without = answer(connection, where, 0)
    if isinstance(without, list):
        assert answer(connection, where, 1) == without, where


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@settings(max_examples=15)
@given(data=st.data())
def test_no_row_is_lost(connection: Connection, tokenizer: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(texts, min_size=1, max_size=9))
    fill(connection, tokenizer, rows)
    for name in COLUMNS:
        conditions = (*BOTH, *(ARRAYS if name in ("a", "an") else CONDITIONS))
        for condition in data.draw(st.lists(st.sampled_from(conditions), max_size=6)):
            known = st.one_of(st.sampled_from(rows), texts)
            x, y = data.draw(known), data.draw(known)
            pattern = data.draw(st.sampled_from(["{0}", "%{0}%", "{0}%", "%{0}", "{1}%{0}_"]))
            regexp = data.draw(
                st.sampled_from(["{0}", ".{0}+", "^{0}", "{0}*.b?", "[ab]{0}$", "a|{0}"])
            )
            where = condition.format(
                c=name,
                x=quote_string(x),
                y=quote_string(y),
                p=quote_string(pattern.format(x, y)),
                r=quote_string(regexp.format(x)),
                t=quote_string(tokenizer),
            )
            assert_same(connection, where)


PREPROCESSORS = ("lower({0})", "upper({0})", "concat({0}, 'b')", "reverse({0})")


@pytest.mark.parametrize("tokenizer", ["splitByNonAlpha", "ngrams(2)", "array"])
@settings(max_examples=6)
@given(data=st.data())
def test_preprocessors(connection: Connection, tokenizer: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(texts, min_size=1, max_size=9))
    preprocessor = data.draw(st.sampled_from(PREPROCESSORS))
    fill(connection, tokenizer, rows, preprocessor)
    known = st.one_of(st.sampled_from(rows), texts)
    for name in COLUMNS:
        is_array = name in ("a", "an")
        conditions = ARRAYS if is_array else [c for c in CONDITIONS if "hasPhrase" not in c]
        for condition in data.draw(st.lists(st.sampled_from(conditions), max_size=6)):
            x, y = data.draw(known), data.draw(known)
            where = condition.format(
                c=name,
                x=quote_string(x),
                y=quote_string(y),
                p=quote_string(f"%{x}%"),
                r=quote_string(x),
                t=quote_string(tokenizer),
            )
            assert_same(connection, where)
        for search in ("hasAnyTokens", "hasAllTokens"):
            x, t = quote_string(data.draw(known)), quote_string(tokenizer)
            processed = preprocessor.format("e")
            searched = (
                f"arrayMap(e -> {processed}, {name})" if is_array else preprocessor.format(name)
            )
            explicit = f"{search}({searched}, {preprocessor.format(x)}, {t})"
            for implicit in (f"{search}({name}, {x})", f"{search}({name}, {x}, {t})"):
                assert answer(connection, implicit, 1) == answer(connection, explicit, 0), implicit
            both = f"({search}({name}, {x}) AND id > 2) OR id = 0"
            explicit = f"({explicit} AND id > 2) OR id = 0"
            assert answer(connection, both, 1) == answer(connection, explicit, 0), both


@settings(max_examples=60)
@given(
    pattern=st.lists(
        st.sampled_from(
            ["a", "b", "é", ".", "*", "+", "?", "^", "$", "[ab]", "\\.", "\\d", "\\w+", "-"]
        ),
        max_size=8,
    ).map("".join),
    text=st.text(st.sampled_from("abé.-1"), max_size=10),
)
@example(pattern="é*a", text="a")
@example(pattern="ab+", text="abb")
@example(pattern="a**b", text="b")
def test_matches_contain_the_literal_runs(connection: Connection, pattern: str, text: str) -> None:
    runs = literal_runs(pattern.encode())
    try:
        ((matches,),) = connection.execute(
            f"SELECT match({quote_string(text)}, {quote_string(pattern)})"
        ).fetchall()
    except olapdb.Error:
        return
    if matches:
        assert all(run in text.encode() for run in runs or ())

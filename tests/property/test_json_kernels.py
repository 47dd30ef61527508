"""JSON: the compiled kernels find the tokens and the rows that the forms in numpy find."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import olapdb
from olapdb.formats.json_row_blocks import row_spans
from olapdb.functions.json.index import DEPTH_MAX, JsonIndex, build_index
from olapdb.functions.kernels.escapes import spans
from olapdb.native.library import library, without_kernels
from olapdb.observation import Counts, counting

pytestmark = pytest.mark.feature("formats")

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=8,
)
DOCUMENTS = st.builds(json.dumps, VALUES, ensure_ascii=st.booleans(), indent=st.none() | st.just(1))
MARKS = st.lists(
    st.sampled_from(
        [
            *'{}[]:,"\\ \n0u1-.eE+a',
            "true",
            "null",
            '"a"',
            "\\u00e9",
            "\\ud83d\\ude00",
            "\\ud83d",
            "\x01",
            "é",
        ]
    ),
    max_size=14,
).map("".join)


def fields_of(texts: list[str]) -> list[list[int]]:
    """Return the fields of the texts' index as lists."""
    index: JsonIndex = build_index(pa.array(texts, pa.string()))
    return [getattr(index, field.name).tolist() for field in dataclasses.fields(index)]


@given(st.lists(DOCUMENTS | MARKS, max_size=5))
@example(['{"a": [1, {"b": 2}], "c": {}}', "", "[1,]", '{"a": 1,}', "[1 2]", "1 2", "]"])
@example(
    [
        "1e100",
        "1e308",
        "1.7e308",
        "1.8e308",
        "-2e308",
        "1e309",
        "0e999",
        "0.001e311",
        "0.001e312",
        "1e1000",
        "1e0400",
    ]
)
@example(
    [
        '"\\ud83d\\ude00"',
        '"\\ud83d"',
        '"\\ude00"',
        '"\\ud83d\\n"',
        '"\\u12"',
        '"\\q"',
        '"\\\\"',
        '"\\""',
        '"',
    ]
)
@example(
    [
        "[" * DEPTH_MAX + "]" * DEPTH_MAX,
        "[" * DEPTH_MAX + "1" + "]" * DEPTH_MAX,
        "[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1),
    ]
)
@example(
    ['12"abc"', "tru", "nulll", "01", "-", "1.", ".5", "1e", "1e+", "+1", "NaN", "-0", "-0.0e-5"]
)
def test_tokens_of_texts(texts: list[str]) -> None:
    compiled = fields_of(texts)
    with without_kernels():
        assert fields_of(texts) == compiled


@given(
    st.lists(DOCUMENTS | MARKS, max_size=5), st.sampled_from([" ", "\n", ","]), st.integers(0, 1)
)
@example(['{"a": "}"}', '{"b": "\\""}', "\\{", '\\"{"'], "\n", 0)
def test_rows_of_a_stream(texts: list[str], between: str, depth: int) -> None:
    data = np.frombuffer(between.join(texts).encode(), np.uint8)
    compiled = [ends.tolist() for ends in row_spans(data, depth)]
    with without_kernels():
        assert [ends.tolist() for ends in row_spans(data, depth)] == compiled


@given(
    st.binary(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6)
)
def test_texts_of_spans(data: bytes, bounds: list[tuple[int, int]]) -> None:
    bytes_ = np.frombuffer(data, np.uint8)
    within = [sorted((min(a, len(data)), min(b, len(data)))) for a, b in bounds]
    starts, ends = (np.array([pair[side] for pair in within], np.int64) for side in (0, 1))
    found = spans(bytes_, starts, ends).cast(pa.binary()).to_pylist()
    assert found == [data[start:end] for start, end in within]


def test_a_span_beyond_the_data_is_an_error() -> None:
    with pytest.raises(IndexError):
        spans(np.zeros(3, np.uint8), np.array([1]), np.array([5]))


@pytest.mark.skipif(library() is None, reason="kernels are counted")
@pytest.mark.parametrize(
    ("query", "kernels"),
    [
        (
            """SELECT * FROM format(JSONEachRow, 'a UInt8', '{"a": 1}')""",
            {"json_index", "json_rows", "join_spans"},
        ),
        ("""SELECT JSONExtractInt(materialize('{"a": 1}'), 'a')""", {"json_index"}),
        ("""SELECT * FROM format(CSV, 'a String', '"x"')""", {"csv_shape"}),
    ],
)
def test_what_reads_calls_the_kernels(query: str, kernels: set[str]) -> None:
    counts = Counts()
    with olapdb.connect() as connection, counting(counts):
        connection.execute(query).fetchall()
    assert kernels <= {name.removeprefix("olapdb_") for name in counts.kernels}

"""JSON functions over random documents, beside Python's json."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pyarrow as pa
import pytest

import olapdb
from olapdb.functions.json.index import build_index

pytestmark = pytest.mark.feature("functions")

STRINGS = ("", "a", "b", 'q"t', "back\\slash", "é😀", "line\nbreak", "\x01\x1f", "/", "{[,:]}")


def document(draw: random.Random, depth: int) -> Any:
    """Draw a JSON value with at most `depth` levels of containers."""
    kind = draw.randrange(8 if depth else 6)
    if kind == 6:
        return [document(draw, depth - 1) for _ in range(draw.randrange(4))]
    if kind == 7:
        return {draw.choice(STRINGS): document(draw, depth - 1) for _ in range(draw.randrange(4))}
    values = (None, draw.random() < 0.5, draw.randint(-5, 300), draw.choice((0.5, -2.25, 1e300)))
    return draw.choice((*values, draw.choice(STRINGS), 2**63 + 1))


def written(draw: random.Random, value: Any) -> str:
    """Write a value with a random use of spaces and escapes."""
    space = draw.choice((None, 1))
    return draw.choice(("", " ", "\n")) + json.dumps(
        value, ensure_ascii=draw.random() < 0.5, indent=space
    )


def is_valid(text: str) -> bool:
    """Return whether Python, without its extensions, and Float64 take the text."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        value = json.loads(text, parse_constant=refuse)
        json.dumps(value).encode()
        return not any(math.isinf(number) for number in numbers_of(value)) and not halves(value)
    except ValueError:
        return False


def numbers_of(value: Any) -> list[float]:
    """Return the floats in a value."""
    if isinstance(value, dict):
        return [n for v in value.values() for n in numbers_of(v)]
    if isinstance(value, list):
        return [n for v in value for n in numbers_of(v)]
    return [value] if isinstance(value, float) else []


def halves(value: Any) -> bool:
    """Return whether a text in the value has half of a surrogate pair."""
    return any(0xD800 <= ord(c) < 0xE000 for c in json.dumps(value, ensure_ascii=False))


def column(texts: list[str]) -> pa.Array:
    return pa.array(texts, pa.string())


def test_valid_documents_and_damaged_ones() -> None:
    draw = random.Random(1)
    texts = []
    for _ in range(3_000):
        text = written(draw, document(draw, 3))
        if draw.random() < 0.6 and text:
            at = draw.randrange(len(text))
            text = (
                text[:at] + draw.choice(("", '"', "\\", ",", "]", "{", "1", "\t")) + text[at + 1 :]
            )
        texts.append(text)
    valid = build_index(column(texts)).valid.tolist()
    wrong = [t for t, v in zip(texts, valid, strict=True) if v != is_valid(t)]
    assert not wrong, wrong[:5]
    assert 0.2 < sum(valid) / len(valid) < 0.9


def test_a_document_read_back_is_the_document() -> None:
    draw = random.Random(2)
    values = [document(draw, 4) for _ in range(1_000)]
    texts = [written(draw, v) for v in values]
    connection = olapdb.connect()
    rows = query(connection, "JSONExtractRaw(s)", texts)
    for value, raw in zip(values, rows, strict=True):
        assert json.loads(raw) == value


def query(connection: olapdb.Connection, expression: str, texts: list[str]) -> list[Any]:
    """Return the values of an expression of `s` for the texts, in order."""
    connection.session.execute("CREATE OR REPLACE TABLE j (i UInt64, s String) ENGINE = Memory")
    connection.insert("j", pa.table({"i": range(len(texts)), "s": texts}))
    result = connection.session.execute(f"SELECT {expression} AS v FROM j ORDER BY i")
    return [row["v"] for row in result.read_all().to_pylist()]


def test_paths_lead_where_they_do_in_python() -> None:
    draw = random.Random(3)
    values = [document(draw, 3) for _ in range(1_000)]
    texts = [written(draw, v) for v in values]
    connection = olapdb.connect()
    for path in (("a",), (1,), (-1,), ("a", 2), (2, "b"), (-1, -2)):
        shown = ", ".join(repr(step) for step in path)
        has = query(connection, f"JSONHas(s, {shown})", texts)
        lengths = query(connection, f"JSONLength(s, {shown})", texts)
        for value, found, length in zip(values, has, lengths, strict=True):
            expected, there = walk(value, path)
            assert found == there, (value, path)
            assert length == (len(expected) if isinstance(expected, dict | list) else 0)


def walk(value: Any, path: tuple[str | int, ...]) -> tuple[Any, bool]:
    """Return the value at the path and whether there is one."""
    for step in path:
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return None, False
            value = value[step]
            continue
        members = (
            list(value.values() if isinstance(value, dict) else value or ())
            if isinstance(value, dict | list)
            else []
        )
        at = step - 1 if step > 0 else len(members) + step
        if not 0 <= at < len(members):
            return None, False
        value = members[at]
    return value, True


def test_a_column_is_indexed_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [json.dumps({"a": n, "b": ["x"] * (n % 7)}) for n in range(500)]
    connection = olapdb.connect()
    whole = query(connection, "(JSONExtractInt(s, 'a'), JSONLength(s, 'b'))", texts)
    monkeypatch.setattr("olapdb.functions.json.extract.BYTES_MAX", 100)
    assert query(connection, "(JSONExtractInt(s, 'a'), JSONLength(s, 'b'))", texts) == whole
    assert [tuple(row.values()) for row in whole] == [(n, n % 7) for n in range(500)]

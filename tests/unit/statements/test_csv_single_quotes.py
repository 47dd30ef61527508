"""CSV with values in single quotes has the rows of the same CSV with double quotes, wherever it is cut into blocks."""

from __future__ import annotations

import io
import random

import pytest

from olapdb.formats.blocks import BLOCK_BYTES
from olapdb.formats.csv_single_quotes import with_double_quotes

pytestmark = pytest.mark.feature("formats")

PIECES = ("a", "'", '"', "\n", ",", " ", "''", '""', "b'c")


def _rows(count: int) -> list[list[str]]:
    source = random.Random(7)
    return [
        ["".join(source.choices(PIECES, k=source.randrange(6))) for _ in range(3)]
        for _ in range(count)
    ]


def _written(rows: list[list[str]], quotes: str) -> bytes:
    source = random.Random(8)
    lines = []
    for row in rows:
        chosen = [(source.choice(quotes), value) for value in row]
        lines.append(",".join(q + value.replace(q, q * 2) + q for q, value in chosen))
    return ("\n".join(lines) + "\n").encode()


def test_values_in_single_quotes_become_values_in_double_quotes() -> None:
    rows = _rows(2000)
    with with_double_quotes(io.BytesIO(_written(rows, "'\"")), ",") as stream:
        assert stream.read() == _written(rows, '"')


def test_a_block_does_not_end_within_a_value() -> None:
    row = b"'a,\nb''c','d'\n"
    count = BLOCK_BYTES // len(row) + 1000
    with with_double_quotes(io.BytesIO(row * count), ",") as stream:
        assert stream.read() == b'"a,\nb\'c","d"\n' * count


def test_a_quote_within_a_value_without_quotes_means_nothing() -> None:
    data = b"it's,1\n'it''s',2\n"
    with with_double_quotes(io.BytesIO(data), ",") as stream:
        assert stream.read() == b"it's,1\n\"it's\",2\n"

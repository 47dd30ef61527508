"""Columns in a compact form: which batches can be joined as they are, and their plain form."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from olapdb.execute.operators.compact_columns import (
    bytes_of_rows,
    decoded,
    have_one_form,
    is_compact,
    joined_batches,
)
from olapdb.functions.kernels.decimal_width import shortened

pytestmark = pytest.mark.feature("select")

TEXTS = pa.array(["a", "b", "c"])
PRICES = pa.array([Decimal("1.25"), None, Decimal("-3.00")], pa.decimal128(9, 2))


def batch(codes: list[int | None], texts: pa.Array = TEXTS) -> pa.RecordBatch:
    column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), texts)
    return pa.RecordBatch.from_arrays([column, shortened(PRICES)], ["text", "price"])


def test_batches_of_one_dictionary_are_joined_by_their_codes() -> None:
    first, second = batch([0, 2, None]), batch([1, 1, 0])
    assert have_one_form(first, second)
    joined = joined_batches([first, second])
    assert joined.column(0).dictionary.equals(TEXTS)
    assert decoded(joined).to_pydict() == {
        "text": ["a", "c", None, "b", "b", "a"],
        "price": PRICES.to_pylist() * 2,
    }


def test_batches_of_other_dictionaries_or_types_are_not_joined() -> None:
    first = batch([0, 1, 2])
    assert not have_one_form(first, batch([0, 1, 2], pa.array(["x", "y", "z"])))
    assert not have_one_form(first, decoded(first))
    assert is_compact(first)
    assert not is_compact(decoded(first))


def test_columns_to_keep_stay_compact() -> None:
    rows = decoded(batch([0, 1, 2]), ["price"])
    assert rows.schema.types == [pa.string(), pa.decimal64(9, 2)]
    assert bytes_of_rows(batch([0, 1, 2]).column(0)) == 12


def test_rows_without_columns_are_counted() -> None:
    rows = batch([0, 1, 2]).select([])
    assert joined_batches([rows, rows]).num_rows == 6

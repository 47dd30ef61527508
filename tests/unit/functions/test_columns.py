"""Columns in other forms: texts of FixedString slices, which Arrow's kernels of letters take."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from olapdb.functions.kernels import columns

pytestmark = pytest.mark.feature("functions")


@pytest.mark.parametrize("start", [0, 1, 3])
def test_letters_of_a_slice_of_fixed_strings(start: int) -> None:
    values = pa.array([b"AB", b"cd", None, b"Ef"], pa.binary(2))
    texts = columns.text(values.slice(start))
    texts.validate(full=True)
    lower = pc.ascii_lower(texts)
    lower.validate(full=True)
    assert lower.to_pylist() == ["ab", "cd", None, "ef"][start:]
    assert columns.binary(values.slice(start)).to_pylist() == values.to_pylist()[start:]
    assert len(columns.text(values.slice(4))) == 0

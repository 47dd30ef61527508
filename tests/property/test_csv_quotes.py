"""The quoted values of CSV: the compiled kernel finds what the form in numpy finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from olapdb.formats.csv_quotes import inside_quotes, shape_of
from olapdb.native.library import without_kernels

pytestmark = pytest.mark.feature("formats")

ROWS = st.text('""",,\n\r \tab', max_size=40).map(str.encode)


def ends_of_values(data: bytes, delimiter: str) -> list[int]:
    """Return the positions of the delimiters and line feeds outside quotes."""
    values = np.frombuffer(data, np.uint8)
    ends = (values == ord(delimiter)) | (values == ord("\n"))
    return np.flatnonzero(ends & ~inside_quotes(data, delimiter)).tolist()


@given(ROWS, st.sampled_from(",\ta"))
@example(b'"a" "b"\n', ",")
@example(b'"a""', ",")
@example(b'a "b\n", "c" d\n', ",")
@example(b'"a"\t"b"\n', "\t")
def test_shapes_of_rows(data: bytes, delimiter: str) -> None:
    compiled, ends = shape_of(data, delimiter), ends_of_values(data, delimiter)
    with without_kernels():
        assert shape_of(data, delimiter) == compiled
        assert ends_of_values(data, delimiter) == ends

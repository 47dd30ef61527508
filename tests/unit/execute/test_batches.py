"""Chunked columns as one array."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from olapdb.compute.batches import single_chunk
from olapdb.errors import NotSupportedError

pytestmark = pytest.mark.feature("select")


def test_an_array_and_a_single_chunk_are_not_copied() -> None:
    array = pa.array([1, 2, 3])
    assert single_chunk(array) is array
    one = single_chunk(pa.chunked_array([array]))
    assert one.buffers()[1].address == array.buffers()[1].address


def test_chunks_are_joined_in_their_order() -> None:
    assert single_chunk(pa.chunked_array([[1, 2], [], [3]])).to_pylist() == [1, 2, 3]
    assert single_chunk(pa.chunked_array([], pa.string())).type == pa.string()


def test_text_beyond_two_gib_is_refused_with_advice() -> None:
    """The text is of untouched zeros, which take no memory."""
    text_bytes = (1 << 30) + 8
    text = pa.StringArray.from_buffers(
        1,
        pa.py_buffer(np.array([0, text_bytes], np.int32)),
        pa.py_buffer(np.zeros(text_bytes, np.uint8)),
    )
    with pytest.raises(NotSupportedError, match="2 GiB") as raised:
        single_chunk(pa.chunked_array([text, text]))
    assert "fewer rows" in str(raised.value)

"""Values of part files in the engine's types, also those that an older version of olapdb wrote."""

from __future__ import annotations

import pyarrow as pa
import pytest

from olapdb import errors
from olapdb.functions import parse_type
from olapdb.storage.stored_values import as_named, as_stored

pytestmark = pytest.mark.feature("storage")

_SUMS = pa.struct([("sum", pa.uint64()), ("count", pa.uint64())])
_SEEN = pa.struct([("seen", pa.uint8()), ("state", _SUMS)])


@pytest.mark.parametrize(
    ("stored", "wanted"), [(_SEEN, _SUMS), (_SEEN, pa.uint64()), (pa.uint64(), _SUMS)]
)
def test_states_with_other_parts_are_an_error_not_null(
    stored: pa.DataType, wanted: pa.DataType
) -> None:
    values = pa.chunked_array([pa.nulls(2, pa.list_(stored))])
    with pytest.raises(errors.NotSupportedError, match="older version"):
        as_stored(values, pa.list_(wanted))


def test_values_of_the_same_parts_are_cast() -> None:
    stored = pa.list_(pa.struct([("a", pa.timestamp("ms")), ("b", pa.list_(pa.int32()))]))
    wanted = pa.list_(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))]))
    values = pa.chunked_array([pa.array([[{"a": 5, "b": [1]}], None], stored)])
    assert as_stored(values, wanted).to_pylist() == [[{"a": 5, "b": [1]}], None]


def test_a_file_may_name_a_type_that_no_statement_takes_any_more() -> None:
    name = "AggregateFunction(sumIfIf, UInt8, UInt8, UInt8)"
    arrow = parse_type(name).arrow
    values = pa.chunked_array([pa.nulls(1, arrow)])
    assert as_named(values, name).type == arrow

"""Columns of batches in a compact form, which the scan of a table has and some operators take: texts as
dictionaries, Decimals of at most 18 digits with 64 bits."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from olapdb.compute.batches import rows_only
from olapdb.functions.kernels.decimal_width import lengthened
from olapdb.storage.column_chunks import are_one_array

_COMPACT = frozenset({pa.DictionaryType, pa.Decimal64Type})


def is_compact(batch: pa.RecordBatch) -> bool:
    """Return whether a column of the batch has a compact form: a dictionary, or Decimals of 64 bits."""
    return not _COMPACT.isdisjoint(map(type, batch.schema.types))


def decoded(batch: pa.RecordBatch, keep: Collection[str] = ()) -> pa.RecordBatch:
    """Return the batch with texts in place of dictionaries and Decimals of 128 bits in place of those of 64,
    except for the columns in `keep`."""
    if not is_compact(batch):
        return batch
    names = batch.schema.names
    arrays = [
        column if name in keep else plain_column(column)
        for name, column in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names)


def plain_column(column: pa.Array) -> pa.Array:
    """Return a column of a batch without its compact form."""
    if isinstance(column, pa.DictionaryArray):
        return column.dictionary_decode()
    return lengthened(column)


def is_coded_set(states: pa.Array) -> bool:
    """Return whether states are sets of codes of a dictionary, see `coded_sets`."""
    is_list = pa.types.is_list(states.type) or pa.types.is_fixed_size_list(states.type)
    return is_list and bool(pa.types.is_dictionary(states.type.value_type))


def bytes_of_rows(column: pa.Array) -> int:
    """Return the bytes of a column in memory; of a dictionary those of the codes alone."""
    values = column.indices if isinstance(column, pa.DictionaryArray) else column
    arrow = values.type
    if not values.null_count and pa.types.is_primitive(arrow):
        return len(values) * int(arrow.bit_width) // 8  # `nbytes` takes ten times as long
    return int(values.nbytes)


def have_one_form(left: pa.RecordBatch, right: pa.RecordBatch) -> bool:
    """Return whether the columns of two batches have the same types, and the same dictionaries in memory."""
    return left.schema == right.schema and all(
        have_one_dictionary(a, b) for a, b in zip(left.columns, right.columns, strict=True)
    )


def have_one_dictionary(left: pa.Array, right: pa.Array) -> bool:
    """Return whether two columns have no dictionary, or both have the same one in memory."""
    if not isinstance(left, pa.DictionaryArray) or not isinstance(right, pa.DictionaryArray):
        return isinstance(left, pa.DictionaryArray) == isinstance(right, pa.DictionaryArray)
    return left.indices.type == right.indices.type and are_one_array(
        left.dictionary, right.dictionary
    )


def joined_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of batches that `have_one_form` as one batch."""
    first = batches[0]
    if len(batches) == 1:
        return first
    if not first.num_columns:
        return rows_only(sum(batch.num_rows for batch in batches))
    columns = []
    for at, column in enumerate(first.columns):
        if isinstance(column, pa.DictionaryArray):
            codes = pa.concat_arrays([batch.column(at).indices for batch in batches])
            columns.append(pa.DictionaryArray.from_arrays(codes, column.dictionary, safe=False))
        else:
            columns.append(pa.concat_arrays([batch.column(at) for batch in batches]))
    return pa.RecordBatch.from_arrays(columns, schema=first.schema)

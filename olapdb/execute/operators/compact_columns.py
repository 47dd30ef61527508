"""Columns of batches in a compact form, which the scan of a table has and some operators take: texts as
dictionaries, Decimals of at most 18 digits with 64 bits."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from olapdb.functions.kernels.decimal_width import lengthened

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

"""HiveText: lines as Hive stores them, with a control character of its own for each depth."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Format, Header, Writer
from olapdb.formats.texts import body, joined_rows, shown, with_null
from olapdb.functions.kernels import columns

_NULL = "\\N"
_PLAIN = (
    types.String
    | types.Boolean
    | types.Integer
    | types.Float
    | types.Decimal
    | types.Date
    | types.Date32
    | types.DateTime
    | types.DateTime64
    | types.Nothing
)
_WORDS = (("nan", "NaN"), ("-inf", "-Infinity"), ("inf", "Infinity"))


class HiveTextWriter(Writer):
    """A writer of HiveText. Raises NotSupportedError for types that Hive lacks."""

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the lines of the rows."""
        return body(self.rows(batch))

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the line of each row."""
        texts = [
            _texts(column, data_type, self.header, 1)
            for column, data_type in zip(batch.columns, self.header.types, strict=True)
        ]
        return joined_rows(texts, chr(1), "", "\n")


def _texts(array: pa.Array, data_type: types.DataType, header: Header, level: int) -> pa.Array:
    r"""Return values as texts at nesting depth `level`: the separators between elements depend on the depth. Map keys
    and values are separated by the next depth's character. NULL is `\N`; texts are not escaped."""
    if isinstance(data_type, types.Nullable):
        data_type = data_type.inner
    valid = columns.validity(array)
    if valid is not None:
        present = _texts(array.filter(pa.array(valid)), data_type, header, level)
        return with_null(columns.scatter(present, np.asarray(valid)), _NULL)
    separator = chr(level + 1)
    match data_type:
        case types.Array(inner):
            offsets, elements = columns.elements_of(array)
            members = _texts(elements, inner, header, level + 1)
            return pc.binary_join(columns.lists_from(offsets, members), separator)
        case types.Map(key, value):
            offsets = columns.offsets_of(array)
            entries = slice(int(offsets[0]), int(offsets[-1]))
            keys = _texts(array.keys[entries], key, header, level + 2)
            values = _texts(array.items[entries], value, header, level + 2)
            pairs = pc.binary_join_element_wise(keys, values, chr(level + 2))
            return pc.binary_join(columns.lists_from(offsets - offsets[0], pairs), separator)
        case types.Tuple(elements=kinds) if kinds:
            fields = zip(columns.struct_fields(array), kinds, strict=True)
            members = [_texts(field, kind, header, level + 1) for field, kind in fields]
            return joined_rows(members, separator)
        case types.Float():
            texts = shown(array, data_type, header)
            for word, written in _WORDS:
                texts = pc.if_else(pc.equal(texts, word), written, texts)
            return texts
        case _ if isinstance(data_type, _PLAIN) and not isinstance(data_type, types.WideNumber):
            return with_null(shown(array, data_type, header), _NULL)
        case _:
            raise errors.NotSupportedError(
                f"HiveText does not write a column of type {data_type}.",
                hint="Write toString(…) of it.",
            )


FORMATS = (Format("HiveText", "Lines as Hive stores them.", HiveTextWriter),)

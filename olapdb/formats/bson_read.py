"""Reads BSONEachRow: the elements of all documents of a block at once.

The end of an element is a function of the byte at which it begins, so that the elements of documents are
found by powers of two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from olapdb import errors, types
from olapdb.formats.absent import apart
from olapdb.formats.base import Input, Reader, Rows, Structure
from olapdb.formats.byte_positions import ByteBlock, blocks_of_rows
from olapdb.formats.heads import no_structure, unknown_field
from olapdb.formats.row_binary_read import byte_width, scalars_of
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.escapes import spans
from olapdb.records import dataclass

_DOUBLE, _STRING, _DOCUMENT, _ARRAY, _BINARY, _OBJECT_ID, _BOOL = 1, 2, 3, 4, 5, 7, 8
_TIME, _NULL, _CODE, _SYMBOL, _INT32, _INT64 = 9, 10, 13, 14, 16, 18
_FIXED = np.full(256, -1, np.int64)
for _kind, _bytes in (
    *((_DOUBLE, 8), (_STRING, 4), (_DOCUMENT, 0), (_ARRAY, 0), (_BINARY, 5), (_OBJECT_ID, 12)),
    *((_BOOL, 1), (_TIME, 8), (_NULL, 0), (_CODE, 4), (_SYMBOL, 4), (_INT32, 4), (_INT64, 8)),
):
    _FIXED[_kind] = _bytes
_SIZED = np.isin(np.arange(256), [_STRING, _DOCUMENT, _ARRAY, _BINARY, _CODE, _SYMBOL])
"""Kinds whose value begins with a number of bytes."""
_NAMES = {
    _DOUBLE: "Double",
    _STRING: "String",
    _DOCUMENT: "Document",
    _ARRAY: "Array",
    _BINARY: "Binary",
    _OBJECT_ID: "ObjectId",
    _BOOL: "Bool",
    _TIME: "Datetime",
    _CODE: "JavaScript code",
    _SYMBOL: "Symbol",
    _INT32: "Int32",
    _INT64: "Int64",
}


@dataclass(frozen=True)
class _Elements:
    """Elements of documents, one array entry each: the number of its document, its BSON type code, and where its name
    and its value begin."""

    owners: np.ndarray
    kinds: np.ndarray
    names: np.ndarray
    values: np.ndarray


class _Documents:
    """The bytes of a block of documents, with tables of element positions."""

    def __init__(self, block: ByteBlock) -> None:
        """Take the block."""
        self.block = block

    def numbers(self, at: np.ndarray) -> np.ndarray:
        """Return the little-endian 32-bit integers at the positions."""
        rows = self.block.bytes_at(np.minimum(at, self.block.beyond), 4)
        return rows.view("<i4")[:, 0].astype(np.int64)

    @cached_property
    def _zeros(self) -> np.ndarray:
        """Return for each position the position of the first zero byte from there on."""
        size = len(self.block.data)
        places = np.where(self.block.data == 0, np.arange(size), size)
        return np.minimum.accumulate(places[::-1])[::-1]

    @cached_property
    def _step(self) -> np.ndarray:
        """Return for each position the position after the element that begins there; the end of a document maps to
        itself."""
        at = np.arange(self.block.beyond + 1)
        kinds = self.block.data[at]
        values = np.minimum(
            self._zeros[np.minimum(at + 1, self.block.beyond)] + 1, self.block.beyond
        )
        sizes = np.where(_SIZED[kinds], np.maximum(self.numbers(values), 0), 0) + _FIXED[kinds]
        ends = np.where(_FIXED[kinds] < 0, self.block.beyond, self.block.moved(values, sizes))
        return np.where(kinds == 0, at, ends)

    def elements(self, documents: np.ndarray) -> _Elements:
        """Return all elements of the documents that begin at the positions, in order. Raises IncorrectData for an
        unknown type code."""
        step, at = self._step, self.block.moved(documents, 4)
        owners = np.arange(len(at))
        while True:
            kept = (self.block.data[at] != 0) & (at <= self.block.size)
            if not kept.any():
                at, owners = at[kept], owners[kept]
                break
            further = step[at]
            more = (self.block.data[further] != 0) & (further <= self.block.size) & (further != at)
            if not more.any():
                at, owners = at[kept], owners[kept]
                break
            at = np.concatenate((at, further[more]))
            owners = np.concatenate((owners, owners[more]))
            step = step[step]
        order = np.lexsort((at, owners))
        at, owners = at[order], owners[order]
        kinds = self.block.data[at]
        if (_FIXED[kinds] < 0).any():
            wrong = int(kinds[np.argmax(_FIXED[kinds] < 0)])
            raise errors.IncorrectData(f"BSON has no readable kind {wrong:#x}.")
        return _Elements(owners, kinds, at + 1, self._zeros[at + 1] + 1)

    def names(self, elements: _Elements) -> pa.Array:
        """Return the names of elements."""
        return spans(self.block.data, elements.names, elements.values - 1)


# --- values


def _values(
    documents: _Documents, kinds: np.ndarray, at: np.ndarray, data_type: types.DataType
) -> pa.Array:
    """Decode the values at the positions `at`, with type codes `kinds`, as `data_type`; BSON null gives NULL. Raises
    IllegalColumn for a kind that the type cannot hold."""
    valid = kinds != _NULL
    if not valid.all():
        present = _values(documents, kinds[valid], at[valid], data_type)
        return columns.scatter(present, valid)
    block = documents.block
    match data_type:
        case types.Nullable(inner) | types.LowCardinality(inner):
            return _values(documents, kinds, at, inner)
        case types.SimpleAggregateFunction(inner=inner):
            return _values(documents, kinds, at, inner)
        case types.Array(inner):
            _check(kinds, data_type, (_ARRAY,))
            elements = documents.elements(at)
            values = _values(documents, elements.kinds, elements.values, inner)
            return columns.lists_from(_offsets(elements, len(at)), values)
        case types.Map(key, value):
            _check(kinds, data_type, (_DOCUMENT,))
            elements = documents.elements(at)
            offsets = pa.array(_offsets(elements, len(at)), pa.int32())
            items = _values(documents, elements.kinds, elements.values, value)
            return pa.MapArray.from_arrays(
                offsets, documents.names(elements).cast(key.arrow), items
            )
        case types.Tuple():
            return _tuples(documents, kinds, at, data_type)
        case types.Float():
            _check(kinds, data_type, (_DOUBLE, _INT32, _INT64))
            floats = block.bytes_at(at, 8).view("<f8")[:, 0]
            values = np.where(kinds == _DOUBLE, floats, _integers(block, kinds, at).astype(float))
            return columns.from_values(
                values.astype(columns.dtype_of(data_type.arrow)), data_type.arrow
            )
        case types.String():
            _check(kinds, data_type, (_STRING, _BINARY, _SYMBOL, _CODE, _OBJECT_ID))
            return _texts(documents, kinds, at)
        case types.FixedString() | types.UUID() | types.IPv6() | types.WideNumber():
            return _fixed(documents, kinds, at, data_type)
        case types.Decimal() if byte_width(data_type) > 8:
            return _fixed(documents, kinds, at, data_type)
        case _:
            _check(kinds, data_type, (_INT32, _INT64, _BOOL, _TIME))
            rows = _integers(block, kinds, at).view(np.uint8).reshape(len(at), 8)
            return scalars_of(np.ascontiguousarray(rows[:, : byte_width(data_type)]), data_type)


def _check(kinds: np.ndarray, data_type: types.DataType, allowed: Sequence[int]) -> None:
    """Raise IllegalColumn for the first type code that is not in `allowed`."""
    wrong = ~np.isin(kinds, allowed)
    if wrong.any():
        name = _NAMES[int(kinds[np.argmax(wrong)])]
        raise errors.IllegalColumn(f"Cannot insert BSON {name} into column with type {data_type}.")


def _offsets(elements: _Elements, rows: int) -> np.ndarray:
    """Return the offsets that cut elements into documents; shape (rows + 1,)."""
    return columns.offsets_from_counts(np.bincount(elements.owners, minlength=rows))


def _integers(block: ByteBlock, kinds: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return integers, times and Bools as int64."""
    long = block.bytes_at(at, 8).view("<i8")[:, 0]
    short = block.bytes_at(at, 4).view("<i4")[:, 0].astype(np.int64)
    values = np.where(kinds == _INT32, short, long)
    return np.where(kinds == _BOOL, (block.data[at] != 0).astype(np.int64), values)


def _span(
    documents: _Documents, kinds: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the start and end of the bytes of each text or binary. Raises IncorrectData for impossible sizes."""
    sizes = documents.numbers(at)
    starts = np.where(kinds == _BINARY, at + 5, np.where(kinds == _OBJECT_ID, at, at + 4))
    counts = np.where(kinds == _BINARY, sizes, np.where(kinds == _OBJECT_ID, 12, sizes - 1))
    if ((counts < 0) | (starts + counts > documents.block.size)).any():
        raise errors.IncorrectData("A text of BSON has a size that does not fit its document.")
    return starts, starts + counts


def _texts(documents: _Documents, kinds: np.ndarray, at: np.ndarray) -> pa.Array:
    """Decode strings and binaries as texts."""
    starts, ends = _span(documents, kinds, at)
    return spans(documents.block.data, starts, ends)


def _fixed(
    documents: _Documents, kinds: np.ndarray, at: np.ndarray, data_type: types.DataType
) -> pa.Array:
    """Decode binaries of fixed size, such as UUIDs. Raises IncorrectData for another size."""
    _check(kinds, data_type, (_BINARY, _STRING, _OBJECT_ID))
    starts, ends = _span(documents, kinds, at)
    width = byte_width(data_type)
    if (ends - starts != width).any():
        raise errors.IncorrectData(f"A value of {data_type} has {width} bytes in BSON.")
    return scalars_of(documents.block.bytes_at(starts, width), data_type)


def _tuples(
    documents: _Documents, kinds: np.ndarray, at: np.ndarray, data_type: types.Tuple
) -> pa.Array:
    """Decode tuples: of arrays by position, of documents by the names of the type. Raises IncorrectData unless each has
    each element of the type once and nothing else, or if a null is no value of its type."""
    _check(kinds, data_type, (_ARRAY, _DOCUMENT))
    elements = documents.elements(at)
    width = len(data_type.elements)
    fields = _fields_of(documents, elements, kinds == _ARRAY, data_type.names or ())
    known = (fields >= 0) & (fields < width)
    met = np.bincount(elements.owners[known] * width + fields[known], minlength=len(at) * width)
    if not known.all() or (met != 1).any():
        raise errors.IncorrectData(
            f"A BSON array or document has other elements than {data_type}, or one of them twice."
        )
    parts = []
    for field, kind in enumerate(data_type.elements):
        column = _column(documents, elements, np.flatnonzero(fields == field), kind, len(at))
        if column.null_count and not types.is_nullable(kind):
            raise errors.IncorrectData(f"BSON has a null for an element of {data_type}.")
        parts.append(column)
    return columns.structs_from(parts, data_type.arrow, rows=len(at))


def _fields_of(
    documents: _Documents, elements: _Elements, is_array: np.ndarray, names: Sequence[str]
) -> np.ndarray:
    """Return for each element which one of a tuple it is: in an array its position, in a document that of its name
    among `names`, -1 for another name. `is_array` has an entry for each owner."""
    fields = np.arange(len(elements.owners)) - np.searchsorted(elements.owners, elements.owners)
    numbers = {name: number for number, name in enumerate(names)}
    in_array = is_array[elements.owners]
    if not in_array.all():
        for name, places in _by_name(documents, elements).items():
            in_document = places[~in_array[places]]
            fields[in_document] = numbers.get(name, -1)
    return fields


def _by_name(documents: _Documents, elements: _Elements) -> Mapping[str, np.ndarray]:
    """Return for each element name the positions in `elements` that have it, in order of first appearance."""
    encoded = documents.names(elements).dictionary_encode()
    codes = columns.numpy_values(encoded.indices)
    return {
        name: np.flatnonzero(codes == code)
        for code, name in enumerate(encoded.dictionary.to_pylist())
    }


def _column(
    documents: _Documents,
    elements: _Elements,
    places: np.ndarray | None,
    data_type: types.DataType,
    rows: int,
) -> pa.Array:
    """Decode the values of one name, one for each of `rows` documents; NULL where a document lacks it, the last of
    several. `places` are the positions in `elements`, None for no such name."""
    kinds = np.full(rows, _NULL, np.uint8)
    at = np.zeros(rows, np.int64)
    if places is not None:
        kinds[elements.owners[places]] = elements.kinds[places]
        at[elements.owners[places]] = elements.values[places]
    if (kinds == _NULL).all():
        return pa.nulls(rows, data_type.arrow)
    return _values(documents, kinds, at, data_type)


# --- reader


def _document_ends(block: ByteBlock, at: np.ndarray) -> np.ndarray:
    """Return for each position the position after the document that begins there."""
    sizes = block.bytes_at(at, 4).view("<i4")[:, 0].astype(np.int64)
    return np.where(sizes < 5, block.beyond, block.moved(at, np.maximum(sizes, 0)))


def _blocks(source: Input) -> Iterator[tuple[_Documents, np.ndarray]]:
    """Yield blocks of documents and the position of each document. Raises CannotReadAllData for an incomplete one."""
    for block, at in blocks_of_rows(source.stream, _document_ends, "BSONEachRow", "document"):
        yield _Documents(block), at


def _read(source: Input) -> Iterator[Rows]:
    """Yield the rows of one block at a time. Raises IncorrectData for an unknown name unless the settings skip it, and for
    a name that a document has twice."""
    structure = source.structure or ()
    wanted = dict(structure)
    for documents, at in _blocks(source):
        elements = documents.elements(at)
        by_name = _by_name(documents, elements)
        if not source.settings.boolean("input_format_skip_unknown_fields"):
            for name in by_name:
                if name not in wanted:
                    raise unknown_field(name, wanted)
        arrays: dict[str, pa.Array] = {}
        absent: dict[str, np.ndarray] = {}
        for name, kind in structure:
            if source.needed is not None and name not in source.needed:
                continue
            places = by_name.get(name)
            _check_once(elements, places, name)
            arrays[name] = _column(documents, elements, places, kind, len(at))
            if name in source.absent_apart:
                mask = np.ones(len(at), bool)
                mask[elements.owners[places] if places is not None else []] = False
                absent[name] = mask
        kinds = tuple(
            types.make_nullable(wanted[name]) if array.null_count else wanted[name]
            for name, array in arrays.items()
        )
        yield from apart(Rows(tuple(arrays), kinds, tuple(arrays.values()), len(at)), absent)


def _check_once(elements: _Elements, places: np.ndarray | None, name: str) -> None:
    """Raise IncorrectData if a document has two of the elements at the places, which have one name."""
    if places is not None and (np.diff(elements.owners[places]) == 0).any():
        raise errors.IncorrectData(
            f"Duplicate field found while parsing BSONEachRow format: {name}."
        )


def _type_of(documents: _Documents, kinds: np.ndarray, at: np.ndarray) -> types.DataType | None:
    """Return the data type of values of these type codes; None if all are null. Raises CannotExtractTableStructure if
    they have no common type."""
    present = kinds != _NULL
    kinds, at = kinds[present], at[present]
    known = set(kinds.tolist())
    if not known:
        return None
    if known <= _SIMPLE.keys():
        simple_types = {_SIMPLE[kind] for kind in known}
        if simple_types == {types.INT32, types.INT64}:
            return types.INT64
        if len(simple_types) == 1:
            return simple_types.pop()
    if known == {_ARRAY}:
        elements = documents.elements(at)
        inner = _type_of(documents, elements.kinds, elements.values)
        return None if inner is None else types.Array(types.make_nullable(inner))
    if known == {_DOCUMENT}:
        return _type_of_documents(documents, at)
    raise no_structure(f"values are {', '.join(_NAMES[kind] for kind in sorted(known))}")


def _type_of_documents(documents: _Documents, at: np.ndarray) -> types.DataType | None:
    """Return the type of nested documents: a Map if all values have one type, else a named Tuple; None if unknown."""
    elements = documents.elements(at)
    members = {
        name: _type_of(documents, elements.kinds[places], elements.values[places])
        for name, places in _by_name(documents, elements).items()
    }
    known = {name: kind for name, kind in members.items() if kind is not None}
    if not known:
        return None
    if len(set(known.values())) == 1:
        return types.Map(types.STRING, types.make_nullable(next(iter(known.values()))))
    return types.Tuple(tuple(map(types.make_nullable, known.values())), tuple(known))


_SIMPLE: Mapping[int, types.DataType] = {
    _DOUBLE: types.FLOAT64,
    _STRING: types.STRING,
    _BINARY: types.STRING,
    _SYMBOL: types.STRING,
    _CODE: types.STRING,
    _OBJECT_ID: types.FixedString(12),
    _BOOL: types.BOOL,
    _TIME: types.DateTime64(6, "UTC"),
    _INT32: types.INT32,
    _INT64: types.INT64,
}


def _infer(source: Input) -> Structure:
    """Return the columns that the elements of the first documents define."""
    first = next(_blocks(source), None)
    if first is None:
        raise no_structure("they have no rows")
    documents, at = first
    rows = max(source.settings.integer("input_format_max_rows_to_read_for_schema_inference"), 1)
    elements = documents.elements(at[:rows])
    structure = []
    for name, places in _by_name(documents, elements).items():
        kind = _type_of(documents, elements.kinds[places], elements.values[places])
        if kind is None:
            raise no_structure(f"all values of {name} are null")
        structure.append((name, types.make_nullable(kind)))
    return tuple(structure)


READER = Reader(_infer, _read, named=True)

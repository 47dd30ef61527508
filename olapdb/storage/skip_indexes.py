"""Skip indexes of a part: for each block of granules, which values an expression can have.

An index lies in the Parquet file between the last row group and the footer, as an Arrow IPC stream
of one record batch with a row for each block; the footer's metadata holds its position
(`olapdb.index.<name>`).  Other readers of Parquet do not see it.

    minmax         low, high (of the expression's type), nulls
    set(n)         values, a list, null where there are more than n
    bloom_filter   bits, hashes; a value may occur where all its `hashes` bits are set.  Bit i of a
                   value with hash h is (low half + i * high half) modulo the number of bits (Kirsch
                   and Mitzenmacher 2006), h by olapdb.functions.kernels.hashing
    tokenbf_v1     the same, of the words of the texts; their number of bits and hashes is given
    ngrambf_v1     the same, of their n-grams
    text           the tokens of the whole part, each with its granules: see `text_index`

Over a tuple, minmax and the filters have these columns for each element, prefixed with its number and
a dot (`0.low`); a set has structs of distinct tuples.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import CorruptedData, InternalError
from olapdb.functions.kernels.columns import from_scalars
from olapdb.functions.kernels.hashing import hash_values
from olapdb.functions.strings.tokenizers import Tokenizer
from olapdb.model.schema import BLOOM_RATE, SkipIndex, Table
from olapdb.records import dataclass
from olapdb.storage.text_filters import part_hashes
from olapdb.storage.text_index import is_text_index, text_index, texts_type

METADATA_PREFIX = "olapdb.index."
DEFAULT_FALSE_POSITIVES = BLOOM_RATE
_BITS_MIN = 64
_SETTINGS = (
    "expression",
    "type",
    "argument",
    "granularity",
    "parameters",
    "tokenizer",
    "preprocessor",
)


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """The position of an index in a file, and its definition: type, expression, ids of its
    columns."""

    offset: int
    size_bytes: int
    crc: int
    column_ids: tuple[int, ...]
    value_type: str
    expression: str
    type: str
    argument: float
    granularity: int
    parameters: tuple[int, ...] = ()
    tokenizer: str = ""
    preprocessor: str = ""

    def to_json(self) -> str:
        """Return the place and definition as JSON, for the footer's metadata."""
        return json.dumps({name: getattr(self, name) for name in self.__dataclass_fields__})

    @classmethod
    def of_json(cls, text: bytes) -> IndexPlace:
        """Parse the text of `to_json`."""
        facts = json.loads(text)
        lists = {name: tuple(facts.get(name, ())) for name in ("column_ids", "parameters")}
        return cls(**{**facts, **lists})

    def matches_definition(self, index: SkipIndex, table: Table, arrow: pa.DataType) -> bool:
        """Return whether the stored index matches the table's current definition over values of
        type `arrow`. It does not if a column was dropped and added again, renamed or retyped."""
        if self.value_type != str(arrow):
            return False
        if any(getattr(self, name) != getattr(index, name) for name in _SETTINGS):
            return False
        return self.column_ids == column_ids(index, table)


def column_ids(index: SkipIndex, table: Table) -> tuple[int, ...]:
    """Return the ids of the index's columns; 0 for one that the table lacks."""
    columns = (table.column(name) for name in index.columns)
    return tuple(column.id if column is not None else 0 for column in columns)


def indexed_type(index: SkipIndex, arrow: pa.DataType) -> pa.DataType:
    """Return the type under which the index takes the values of its expression, of type `arrow`."""
    return texts_type(arrow) if index.type == "text" else arrow


def build_index(index: SkipIndex, values: pa.Array, granule_rows: int) -> bytes:
    """Return the index over a part's values, given in the part's order, as an Arrow IPC stream."""
    if index.type == "text":
        return _stream(text_index(values, Tokenizer.parse(index.tokenizer), granule_rows))
    if pa.types.is_struct(values.type) and index.type != "set":
        return _stream(_of_elements([_batch(index, v, granule_rows) for v in values.flatten()]))
    return _stream(_batch(index, values, granule_rows))


def element_of(batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
    """Return the index of one element, numbered from 0, of an index over a tuple."""
    prefix = f"{number}."
    names = [name for name in batch.schema.names if name.startswith(prefix)]
    return batch.select(names).rename_columns([name.removeprefix(prefix) for name in names])


def _of_elements(elements: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the index over a tuple from the indexes of its elements."""
    return pa.record_batch(
        {
            f"{number}.{name}": element.column(name)
            for number, element in enumerate(elements)
            for name in element.schema.names
        }
    )


def _batch(index: SkipIndex, values: pa.Array, granule_rows: int) -> pa.RecordBatch:
    """Return the index over values that are no tuples, or that a set keeps whole."""
    blocks = list(_row_blocks(values, granule_rows * index.granularity))
    match index.type:
        case "minmax":
            return _minmax(blocks, values.type)
        case "set":
            return _sets(blocks, values.type, int(index.argument))
        case "bloom_filter":
            return _filters(_bloom(block, index.argument) for block in blocks)
        case "tokenbf_v1" | "ngrambf_v1":
            return _filters(_text_filter(block, index) for block in blocks)
    raise InternalError(f"An index {index.type} is not made of blocks.")


def _stream(batch: pa.RecordBatch) -> bytes:
    """Return the batch as an Arrow IPC stream; a text index is compressed."""
    sink = pa.BufferOutputStream()
    compression = "zstd" if is_text_index(batch) else None
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def stored_index(
    index: SkipIndex, table: Table, arrow: pa.DataType, offset: int, data: bytes
) -> IndexPlace:
    """Return the description of an index whose bytes `data` were written at `offset`."""
    return IndexPlace(
        offset,
        len(data),
        zlib.crc32(data),
        column_ids(index, table),
        str(arrow),
        index.expression,
        index.type,
        index.argument,
        index.granularity,
        index.parameters,
        index.tokenizer,
        index.preprocessor,
    )


def parse_index(place: IndexPlace, data: bytes) -> pa.RecordBatch:
    """Return the index as one batch, a row for each block. Raises CorruptedData if the CRC
    differs."""
    if zlib.crc32(data) != place.crc:
        raise CorruptedData(f"The index on {place.expression} is damaged.")
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()


def bloom_contains(
    batch: pa.RecordBatch, hashes: np.ndarray, *, all_of_them: bool = False
) -> np.ndarray:
    """Return which blocks may contain any of the hashed values, or all of them; bool, shape
    (blocks,)."""
    may_contain = np.zeros(batch.num_rows, bool)
    for at, (bits, count) in enumerate(
        zip(batch.column("bits"), batch.column("hashes").to_pylist(), strict=True)
    ):
        stored = np.frombuffer(bits.as_buffer(), np.uint8)
        places = _bit_positions(hashes, count, len(stored) * 8)
        set_bits = (stored[places >> np.uint64(3)] >> (places & np.uint64(7)).astype(np.uint8)) & 1
        contained = set_bits.all(axis=1)
        may_contain[at] = bool(contained.all() if all_of_them else contained.any())
    return may_contain


def _row_blocks(values: pa.Array, rows: int) -> Iterator[pa.Array]:
    """Split the values into stretches of `rows` rows; the last may be shorter."""
    for start in range(0, len(values), rows):
        yield values.slice(start, rows)


def _minmax(blocks: list[pa.Array], arrow: pa.DataType) -> pa.RecordBatch:
    """Build a minmax index: lowest and highest value and number of nulls for each block."""
    ends = [pc.min_max(block) for block in blocks]
    return pa.record_batch(
        {
            "low": from_scalars([end["min"] for end in ends], arrow),
            "high": from_scalars([end["max"] for end in ends], arrow),
            "nulls": pa.array([block.null_count for block in blocks], type=pa.int64()),
        }
    )


def _sets(blocks: list[pa.Array], arrow: pa.DataType, values_max: int) -> pa.RecordBatch:
    """Build a set index: the distinct values of each block, null for a block with more than
    `values_max` (0: no limit)."""
    distinct = [_distinct(block) for block in blocks]
    sets = [
        values_of_block if not values_max or len(values_of_block) <= values_max else None
        for values_of_block in distinct
    ]
    lengths = [0 if values_of_block is None else len(values_of_block) for values_of_block in sets]
    flat = pa.concat_arrays(
        [values_of_block for values_of_block in sets if values_of_block is not None]
        or [pa.nulls(0, arrow)]
    )
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), type=pa.int32())
    mask = pa.array([values_of_block is None for values_of_block in sets])
    return pa.record_batch({"values": pa.ListArray.from_arrays(offsets, flat, mask=mask)})


def _distinct(values: pa.Array) -> pa.Array:
    """Return the distinct values; tuples are grouped by their elements, as Arrow has no hash of
    structs."""
    if not pa.types.is_struct(values.type):
        return pc.unique(values)
    names = [str(number) for number in range(values.type.num_fields)]
    groups = pa.table(values.flatten(), names=names).group_by(names).aggregate([]).combine_chunks()
    arrays = [groups.column(name).chunk(0) for name in names]
    return pa.StructArray.from_arrays(arrays, fields=list(values.type))


def _filters(filters: Iterable[tuple[bytes, int]]) -> pa.RecordBatch:
    """Build an index of Bloom filters, each given by its bits and its number of hashes."""
    filters = list(filters)
    return pa.record_batch(
        {
            "bits": pa.array([bits for bits, _ in filters], type=pa.binary()),
            "hashes": pa.array([count for _, count in filters], type=pa.uint8()),
        }
    )


def _bloom(values: pa.Array, false_positives: float) -> tuple[bytes, int]:
    """Return (bits, number of hashes for each value) of a filter sized for the block's distinct
    values."""
    if pa.types.is_list(values.type):
        values = pc.list_flatten(values)
    hashes = np.unique(hash_values(pc.drop_null(values)))
    # As many bits and hashes as the accepted share of false positives asks for.
    per_value = -math.log(false_positives) / math.log(2) ** 2
    bits = max(_BITS_MIN, -(-math.ceil(len(hashes) * per_value) // 8) * 8)
    count = max(1, round(per_value * math.log(2)))
    return _filled(hashes, count, bits), count


def _text_filter(values: pa.Array, index: SkipIndex) -> tuple[bytes, int]:
    """Return (bits, number of hashes) of a filter of the words or n-grams of the block's texts."""
    if pa.types.is_list(values.type):
        values = pc.list_flatten(values)
    size_bytes, count = index.parameters[-3:-1]
    return _filled(part_hashes(index, values), count, size_bytes * 8), count


def _filled(hashes: np.ndarray, count: int, bits: int) -> bytes:
    """Return a filter of `bits` bits in which the bits of all hashes are set."""
    filled = np.zeros(bits, bool)
    filled[_bit_positions(hashes, count, bits).ravel()] = True
    return np.packbits(filled, bitorder="little").tobytes()


def _bit_positions(hashes: np.ndarray, count: int, bits: int) -> np.ndarray:
    """Return the numbers of the bits that each hash sets, from 0, by double hashing; shape (hashes,
    count)."""
    low = hashes & np.uint64(0xFFFFFFFF)
    high = (hashes >> np.uint64(32)) | np.uint64(1)
    steps = np.arange(count, dtype=np.uint64)
    return (low[:, None] + steps[None, :] * high[:, None]) % np.uint64(bits)

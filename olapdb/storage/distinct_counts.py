"""Numbers of distinct values, by sketches that are written with each part.

A sketch is a HyperLogLog of 256 registers (Flajolet and others, 2007, with linear counting of few
values): 256 bytes a column in the key-value metadata of the part's file, an error of about 7 %.  The
registers of several parts merge into those of all their rows.  They are estimates: nothing but the order
of joins, and what is worth an attempt, may depend on them.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.config import tuning
from olapdb.errors import Error
from olapdb.functions.kernels.hashing import hash_values
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.native import hashes as native_hashes
from olapdb.native.library import library
from olapdb.storage.reader import PartReader
from olapdb.storage.store import Store

METADATA_KEY = "olapdb.distinct"
REGISTERS = 256
_INDEX_BITS = 8
_RANK_BITS = 52
"""Bits of a hash of which the leading zeros count; so many fit a float without rounding."""
_RANK_MASK = np.uint64((1 << _RANK_BITS) - 1)
_CHUNK_ROWS = 1 << 15
_PARTS_MAX = 32
"""Parts of a table whose sketches are read, the largest ones."""
_READ_ROWS_MAX = 1_000
"""Parts of fewer rows are read: they were written without sketches."""
_KNOWN_SHARE_MIN = 0.9
"""The part of a table's rows whose sketches must be known."""

DistinctCounts = Callable[[Table, str], "float | None"]
"""(table, column) -> about how many distinct values it has; None where that is not known."""


def is_sketched(data_type: types.DataType) -> bool:
    """Return whether columns of the type have sketches: those that keys and conditions compare."""
    return isinstance(
        types.plain(data_type),
        types.Integer
        | types.Enum
        | types.Boolean
        | types.String
        | types.Decimal
        | types.Date
        | types.Date32
        | types.DateTime
        | types.DateTime64
        | types.Time
        | types.Time64,
    )


def sketch(values: pa.ChunkedArray) -> np.ndarray:
    """Return the registers of a column's values without NULL; uint8, shape (REGISTERS,)."""
    registers = np.zeros(REGISTERS, np.uint8)
    for chunk in values.chunks:
        array = chunk.dictionary if isinstance(chunk, pa.DictionaryArray) else chunk
        for start in range(0, len(array), _CHUNK_ROWS):
            piece = array.slice(start, _CHUNK_ROWS)
            if piece.null_count:
                piece = pc.drop_null(piece)
            raise_registers(registers, hash_values(piece))
    return registers


def raise_registers(registers: np.ndarray, hashes: np.ndarray) -> None:
    """Raise each register in place to the greatest rank of the hashes that belong to it. A rank is the position, from
    1, of the first 1 bit of a hash behind the bits that choose the register."""
    if library() is not None:
        native_hashes.raise_registers(registers, hashes, _INDEX_BITS, _RANK_BITS)
        return
    rest = hashes & _RANK_MASK
    # A rank that no register lacks changes nothing: of many rows few are looked at.
    least = int(registers.min())
    if least:
        is_high = rest < np.uint64(1 << (_RANK_BITS - least))
        hashes, rest = hashes[is_high], rest[is_high]
    ranks = _RANK_BITS + 1 - np.frexp(rest.astype(np.float64))[1]
    index = (hashes >> np.uint64(64 - _INDEX_BITS)).astype(np.int64)
    seen = np.zeros((REGISTERS, _RANK_BITS + 2), bool)
    seen[index, ranks] = True
    highest = _RANK_BITS + 1 - np.argmax(seen[:, ::-1], axis=1)
    np.maximum(registers, np.where(seen.any(axis=1), highest, 0), out=registers, casting="unsafe")


def estimate(registers: np.ndarray) -> float:
    """Return about how many distinct values the registers have met."""
    empty = int((registers == 0).sum())
    constant = 0.7213 / (1 + 1.079 / REGISTERS)
    raw = constant * REGISTERS**2 / float(np.ldexp(1.0, -registers.astype(np.int64)).sum())
    if raw <= 2.5 * REGISTERS and empty:
        return REGISTERS * math.log(REGISTERS / empty)
    return raw


def encode_sketches(sketches: Mapping[int, np.ndarray]) -> str:
    """Return the sketches of columns, by column id, as text for the part's file."""
    return json.dumps(
        {
            column_id: base64.b85encode(registers.tobytes()).decode()
            for column_id, registers in sketches.items()
        },
        separators=(",", ":"),
    )


def distinct_counts(store: Store, snapshot: Snapshot) -> DistinctCounts:
    """Return a function that gives the distinct values of a table's columns, each merged once a
    snapshot."""

    def of(table: Table, name: str) -> float | None:
        """Return about how many distinct values a column has; None if the parts that have sketches are too small a
        share of the table."""
        return snapshot.derived(
            ("distinct", table.id, name), lambda: _merged(store, snapshot, table, name)
        )

    return of


def _merged(store: Store, snapshot: Snapshot, table: Table, name: str) -> float | None:
    """Return the estimated number of distinct values over the largest parts of a table; None if these are too small a
    share of it."""
    column = table.column(name)
    if column is None or not is_sketched(column.type):
        return None
    parts = [part for part in snapshot.parts(table.id) if part.rows]
    largest = sorted(parts, key=lambda part: part.rows, reverse=True)[:_PARTS_MAX]
    registers = np.zeros(REGISTERS, np.uint8)
    known_rows = 0
    for part in largest:
        of_part = _of_part(PartReader(store, snapshot, part, table), part, column.id, name)
        if of_part is not None:
            known_rows += part.rows
            np.maximum(registers, of_part, out=registers)
    total_rows = sum(part.rows for part in parts)
    if known_rows < _KNOWN_SHARE_MIN * total_rows or not known_rows:
        return None
    return min(max(estimate(registers), 1.0), float(total_rows))


def _of_part(reader: PartReader, part: Part, column_id: int, name: str) -> np.ndarray | None:
    """Return the registers of a part, those of a small part from its rows. None for a larger part
    without, and one that cannot be read: the query that reads its rows will say so."""
    try:
        if part.inline or part.rows < _READ_ROWS_MAX:
            rows = reader.read([name])
            return sketch(rows.column(name)) if name in rows.column_names else None
        text = reader.metadata(METADATA_KEY)
    except Error:
        return None
    return None if text is None else _decode(text, column_id)


def _decode(text: bytes, column_id: int) -> np.ndarray | None:
    """Return the registers of one column of `encode_sketches`; None if it has none, or if they are
    damaged: a query may not fail for an estimate."""
    try:
        encoded = json.loads(text)[str(column_id)]
        registers = np.frombuffer(base64.b85decode(encoded), np.uint8)
    except (ValueError, TypeError, LookupError):
        return None
    if len(registers) != REGISTERS or registers.max() > _RANK_BITS + 1:
        return None
    return registers


def wants_sketches(rows: int) -> bool:
    """Return whether a part of `rows` rows is large enough to get sketches."""
    return rows >= tuning.SKETCH_ROWS_MIN

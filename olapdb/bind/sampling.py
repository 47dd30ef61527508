"""`FROM t SAMPLE 1/10 OFFSET 1/2`: a range of the sampling key's values."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa

from olapdb.errors import (
    ArgumentOutOfBound,
    BadArguments,
    InternalError,
    SamplingNotSupported,
    SyntaxError,
)
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.expressions import Constant
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.types import FLOAT64, DataType, Integer
from olapdb.types.arrow_values import scalar_of

SAMPLE_FACTOR = "_sample_factor"
"""The virtual column by which a count of sampled rows is multiplied."""


@dataclass(frozen=True, slots=True)
class SampleShare:
    """A share of the rows: the values of the sampling key from `offset` on, as shares of all values
    that its type has. `size` 0 means all rows."""

    size: Fraction
    offset: Fraction
    of_rows: bool = False
    """True if a number of rows was asked for, of which the table's number of rows makes a share."""

    @property
    def factor(self) -> Constant:
        """The value of the virtual column `_sample_factor`: one over the share of rows that is read."""
        value = 1.0 / float(self.size) if self.size else 1.0
        return Constant(FLOAT64, scalar_of(value, pa.float64()))

    def condition(self, key: sql.Expression, data_type: DataType) -> sql.Expression | None:
        """Return the condition on the sampling key, an unsigned integer; None if all rows meet it."""
        if not isinstance(data_type, Integer):
            raise InternalError(f"A sampling key of type {data_type}.")
        values = 1 << data_type.bits
        first = int(self.offset * values)
        end = int((self.offset + self.size) * values) if self.size else values
        conditions: list[sql.Expression] = []
        if first > 0:
            conditions.append(_comparison("greaterOrEquals", key, first))
        if end < values:
            conditions.append(_comparison("less", key, end))
        if first >= values or first == end:
            return sql.Literal(0)
        if len(conditions) > 1:
            return sql.Function("and", tuple(conditions))
        return conditions[0] if conditions else None


def sample_of(source: sql.TableReference, table: Table, snapshot: Snapshot) -> SampleShare | None:
    """Return the sample that FROM asks for, None without SAMPLE.

    Raises SamplingNotSupported for a table without SAMPLE BY, SyntaxError unless it is a number,
    ArgumentOutOfBound for an OFFSET of all rows."""
    if source.sample is None:
        return None
    if not table.sampling_key:
        raise sampling_refused(f"{table.database}.{table.name} has no SAMPLE BY", source)
    size = _ratio(source.sample)
    offset = _ratio(source.sample_offset) if source.sample_offset is not None else Fraction(0)
    of_rows = size > 1 or offset > 1
    if of_rows:
        rows = sum(part.rows for part in snapshot.parts(table.id))
        size, offset = _share(size, rows), _share(offset, rows)
    if size == 1:
        size = Fraction(0)
    if offset and not size:
        raise ArgumentOutOfBound(
            "OFFSET of a SAMPLE that takes all rows.",
            hint="SAMPLE 1/10 OFFSET 1/2 takes a tenth of the rows from the middle on.",
            position=source.position,
        )
    return SampleShare(size, offset, of_rows)


def sampling_refused(what: str, source: sql.Relation) -> SamplingNotSupported:
    """Return the error for SAMPLE of a source that has no sampling key."""
    return SamplingNotSupported(
        f"{what}, so SAMPLE is not possible.",
        hint="CREATE TABLE … ORDER BY (k, intHash32(id)) SAMPLE BY intHash32(id).",
        position=source.position,
    )


def _comparison(function: str, key: sql.Expression, bound: int) -> sql.Function:
    """Return the comparison of the key with a constant."""
    return sql.Function(function, (key, sql.Literal(bound, str(bound))))


def _share(number: Fraction, rows: int) -> Fraction:
    """Return a number of rows as a share of all rows, a share itself."""
    if number <= 1:
        return number
    return min(Fraction(1), number / rows) if rows else Fraction(1)


def _ratio(node: sql.Expression) -> Fraction:
    """Return `0.1`, `1/10` or `10000` exactly. Raises SyntaxError for anything else.

    Also raises BadArguments."""
    match node:
        case sql.Literal(value=int() | float(), text=text) if text and not text.startswith("-"):
            return Fraction(text)
        case sql.Function(name="divide", arguments=(dividend, divisor)):
            below = _ratio(divisor)
            if not below:
                raise BadArguments("SAMPLE divides by zero.", position=node.position)
            return _ratio(dividend) / below
    raise SyntaxError(
        "SAMPLE and its OFFSET are numbers: 0.1, 1/10 or a number of rows.", position=node.position
    )

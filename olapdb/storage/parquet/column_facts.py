"""What kernels find out about the values of a column while they encode it: its bounds, NULLs, and a sketch of its distinct
values. Nothing else then needs to read the column for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from olapdb.records import dataclass


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """Facts about the values of a column in some row groups.

    `ends` has the least and the greatest value of each row group that has a range, as Parquet stores them, without
    NaN. `registers` are those of a sketch as `distinct_counts.sketch` makes it, None where it was not asked for."""

    nulls: int
    has_nan: bool
    ends: tuple[tuple[bytes, bytes], ...]
    registers: np.ndarray | None

    def joined(self, other: ColumnFacts) -> ColumnFacts:
        """Return the facts about these row groups followed by those of `other`. Both have a sketch, or neither has."""
        registers = self.registers
        if registers is not None and other.registers is not None:
            registers = np.maximum(registers, other.registers)
        return replace(
            self,
            nulls=self.nulls + other.nulls,
            has_nan=self.has_nan or other.has_nan,
            ends=self.ends + other.ends,
            registers=registers,
        )

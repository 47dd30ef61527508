"""groupConcat: the texts of a group in row order, joined."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.aggregates.ordered import GroupArray


@dataclass(frozen=True)
class GroupConcat(GroupArray):
    """groupConcat([delimiter[, limit]]): the texts in row order, at most `limit` of them, joined.

    State: Array(String). The binder turns other values into texts."""

    delimiter: str = ""
    limit: int | None = None

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the joined texts; an empty text for an empty group."""
        return pc.binary_join(states, self.delimiter)

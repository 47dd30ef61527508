"""groupConcat: the texts of a group in row order, joined."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import IllegalTypeOfArgument, NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates.ordered import GroupArray
from olapdb.functions.aggregates.signatures import (
    array_limit,
    illegal_argument,
    require_count,
    state_type_of,
)
from olapdb.functions.base import Aggregate
from olapdb.records import dataclass
from olapdb.types import STRING, Array, DataType, String, plain


@dataclass(frozen=True)
class GroupConcat(GroupArray):
    """groupConcat([delimiter[, limit]]): the texts in row order, at most `limit` of them, joined.

    State: Array(String). The binder turns other values into texts."""

    delimiter: str = ""
    limit: int | None = None

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the joined texts; an empty text for an empty group."""
        return pc.binary_join(states, self.delimiter)


def group_concat(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve groupConcat([delimiter[, limit]]) of texts.

    Raises IllegalTypeOfArgument and NumberOfArgumentsDoesntMatch."""
    require_count(name, types, 1)
    if not isinstance(plain(types[0]), String):
        raise illegal_argument(name, types[0], "a String")
    if len(parameters) > 2:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name} takes two parameters, the delimiter and the limit."
        )
    delimiter = parameters[0] if parameters else ""
    if not isinstance(delimiter, str):
        raise IllegalTypeOfArgument(f"The delimiter of {name} is a String, not {delimiter!r}.")
    limit = array_limit(name, parameters[1:])
    state = state_type_of(name, (delimiter, *limit) if parameters else (), types, Array(STRING))
    return GroupConcat(
        name,
        parameters,
        types,
        STRING,
        state,
        delimiter=delimiter,
        limit=int(str(limit[0])) if limit else None,
        merge_class="ordered",
    )

"""sequenceNextNode: the value that follows a chain of events in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates.group_kernels import (
    drop_null_rows,
    element_groups,
    order_keys,
    take_rows,
)
from olapdb.functions.aggregates.signatures import illegal_argument, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import order_by
from olapdb.records import dataclass
from olapdb.types import (
    INT64,
    STRING,
    UINT8,
    UINT64,
    Array,
    Boolean,
    DataType,
    Date,
    DateTime,
    Integer,
    String,
    Tuple,
    make_nullable,
    plain,
)

_DIRECTIONS = ("forward", "backward")
_BASES = ("head", "tail", "first_match", "last_match")
_REQUIRED = 3
_EVENTS_MAX = 64


@dataclass(frozen=True)
class NextNode(Aggregate):
    """sequenceNextNode(direction, base)(time, value, base condition, event1, …): the value of the row
    behind the events, or before them, where the first event is the base; NULL without it.

    State: Array(Tuple(time Int64, value String, held UInt64, base UInt8)), the rows sorted; `held`
    has a bit for each event."""

    forward: bool
    base: str

    @property
    def events(self) -> int:
        """Return the number of events of the chain."""
        return len(self.argument_types) - _REQUIRED

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's rows; those with a NULL in any argument are left out."""
        arguments, groups = drop_null_rows(arguments, groups)
        time, value, base, *events = arguments
        held = np.zeros(len(groups.codes), np.uint64)
        for bit, condition in enumerate(events):
            held |= (columns.numpy_values(condition) != 0).astype(np.uint64) << np.uint64(bit)
        times = columns.numpy_values(time).astype(np.int64)
        bases = (columns.numpy_values(base) != 0).astype(np.uint8)
        fields = [
            columns.from_values(times, pa.int64()),
            value.cast(self.state_type.arrow.value_type[1].type),
            columns.from_values(held, pa.uint64()),
            columns.from_values(bases, pa.uint8()),
        ]
        return self._sorted(fields, groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Join the rows of each group's states."""
        offsets, rows = columns.elements_of(states)
        return self._sorted(columns.struct_fields(rows), element_groups(offsets, groups))

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return each group's value, or NULL."""
        offsets, rows = columns.elements_of(states)
        _, values, held_field, base_field = columns.struct_fields(rows)
        held, bases = columns.numpy_values(held_field), columns.numpy_values(base_field) != 0
        starts, ends = offsets[:-1], offsets[1:]
        positions = self._bases(offsets, held, bases)
        valid = (positions >= 0) & (ends - starts > self.events)
        step = 1 if self.forward else -1
        for event in range(self.events):
            at = positions + step * event
            inside = valid & (at >= starts) & (at < ends)
            places = np.where(inside, at, 0)
            bits = held[places] if len(held) else np.zeros(len(places), np.uint64)
            valid = inside & (bits >> np.uint64(event) & np.uint64(1) != 0)
        at = positions + step * self.events
        valid &= (at >= starts) & (at < ends)
        return take_rows(values, np.where(valid, at, -1))

    def _bases(self, offsets: np.ndarray, held: np.ndarray, bases: np.ndarray) -> np.ndarray:
        """Return for each group the position of the row that must hold the first event of the chain; -1 if there is
        none."""
        starts, ends = offsets[:-1], offsets[1:]
        positions = np.full(len(starts), -1, np.int64)
        filled = np.flatnonzero(ends > starts)
        if self.base in ("head", "tail"):
            chosen = (starts if self.base == "head" else ends - 1)[filled]
            positions[filled] = np.where(bases[chosen], chosen, -1)
            return positions
        matches = np.flatnonzero(bases & (held & np.uint64(1) != 0))
        owners = columns.parents_of(offsets)[matches]
        if self.base == "first_match":
            matches, owners = matches[::-1], owners[::-1]
        positions[owners] = matches  # the last one written stays
        return positions

    def _sorted(self, fields: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Build the states from rows, sorted in each group by time, value and conditions."""
        times, values, held, bases = fields
        keys = [columns.numpy_values(bases), columns.numpy_values(held), order_keys(values)]
        order = order_by(groups.codes, columns.numpy_values(times), *reversed(keys))
        sorted_fields = [take_rows(field, order) for field in fields]
        rows = columns.structs_from(sorted_fields, self.state_type.arrow.value_type)
        counts = np.bincount(groups.codes, minlength=groups.count)
        return columns.lists_from(columns.offsets_from_counts(counts), rows)


def sequence_next_node(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve sequenceNextNode(direction, base)(time, value, base condition, event1, …).

    Raises NumberOfArgumentsDoesntMatch, BadArguments and IllegalTypeOfArgument."""
    if len(parameters) != 2:
        raise NumberOfArgumentsDoesntMatch(f"{name} has two parameters: a direction and a base.")
    direction, base = parameters
    if direction not in _DIRECTIONS or base not in _BASES:
        raise BadArguments(
            f"{name} has no direction {direction!r} with the base {base!r}.",
            hint=f"Directions are {', '.join(_DIRECTIONS)}, bases {', '.join(_BASES)}.",
        )
    if (direction, base) in (("forward", "tail"), ("backward", "head")):
        raise BadArguments(f"Nothing lies {direction} of the {base} in {name}.")
    least = _REQUIRED + 1 if str(base).endswith("_match") else _REQUIRED
    if not least <= len(types) <= _EVENTS_MAX + _REQUIRED:
        raise NumberOfArgumentsDoesntMatch(
            f"{name} takes a time, a value, a condition of the base, and "
            f"{least - _REQUIRED} to {_EVENTS_MAX} events."
        )
    time = plain(types[0])
    if not isinstance(time, Date | DateTime) and not (
        isinstance(time, Integer) and not time.signed
    ):
        raise illegal_argument(name, types[0], "a Date, DateTime or unsigned integer")
    if not isinstance(plain(types[1]), String):
        raise illegal_argument(name, types[1], "a String")
    for data_type in types[2:]:
        if plain(data_type) != UINT8 and not isinstance(plain(data_type), Boolean):
            raise illegal_argument(name, data_type, "a condition (UInt8)")
    fields = ("time", "value", "held", "base")
    rows = Array(Tuple((INT64, STRING, UINT64, UINT8), fields))
    state = state_type_of(name, parameters, types, rows)
    result = make_nullable(STRING)
    return NextNode(
        name, parameters, types, result, state, forward=direction == "forward", base=str(base)
    )

"""Recognizes an INSERT, and rows, that were delivered before (rule 12).

There are three ways to deliver once; each holds alone, and all hold together:

    token      names the whole INSERT: a second one does nothing
    offsets    where its rows lie in the streams that they come from, {'orders-0': (4711, 4730)}:
               from the first, up to, without, the second; the stored position must be the first
    keys       rows whose key was accepted are dropped, see `olapdb.ingest.deduplicate`

The commit that records them requires the state by which they were judged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field

import pyarrow as pa

from olapdb.errors import BadArguments, OffsetHole
from olapdb.ingest.deduplicate import Admission
from olapdb.model.changes import Change, RecordOffset, RecordToken
from olapdb.model.requirements import OffsetIs, Requirement, SchemaIs, TokenIsNew
from olapdb.model.schema import Table
from olapdb.records import dataclass
from olapdb.runtime.services import Services

STREAMS_MAX = 10_000
STREAM_NAME_BYTES_MAX = 1_000
POSITION_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """A range of positions of a stream, from `first` up to, without, `after`."""

    stream: str
    first: int
    after: int


OffsetRanges = tuple[OffsetRange, ...]


def parse_offsets(offsets: Mapping[str, Sequence[int]] | None) -> OffsetRanges:
    """Return `{stream: (from, to)}` as ranges; raise BadArguments that names the wrong entry."""
    if not offsets:
        return ()
    if not isinstance(offsets, Mapping):
        raise BadArguments(
            f"offsets are a mapping, not {type(offsets).__name__}.", hint=_OFFSETS_HINT
        )
    if len(offsets) > STREAMS_MAX:
        raise BadArguments(f"An INSERT has offsets of {STREAMS_MAX} streams at most.")
    return tuple(_offset_range(stream, pair) for stream, pair in sorted(offsets.items(), key=str))


def read_offsets(text: str) -> OffsetRanges:
    """Parse the setting `source_offsets`, JSON such as '{"orders-0": [4711, 4730]}'; "" gives
    none. Raises BadArguments."""
    if not text:
        return ()
    try:
        offsets = json.loads(text, object_pairs_hook=_pairs)
    except ValueError:
        raise BadArguments(
            f"source_offsets is no JSON: {text[:100]!r}.", hint=_SETTING_HINT
        ) from None
    if not isinstance(offsets, dict):
        raise BadArguments("source_offsets is no JSON object.", hint=_SETTING_HINT)
    return parse_offsets(offsets)


_OFFSETS_HINT = (
    "Give offsets={'orders-0': (4711, 4730)}: from, and the first that does not belong to it."
)
_SETTING_HINT = "Give source_offsets = '{\"orders-0\": [4711, 4730]}'."


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object's pairs as a dict; raise BadArguments for a repeated stream."""
    offsets = dict(pairs)
    if len(offsets) != len(pairs):
        raise BadArguments("source_offsets names a stream twice.", hint=_SETTING_HINT)
    return offsets


def _offset_range(stream: object, pair: object) -> OffsetRange:
    """Return the range of one stream from `pair`: its first offset and the one after its last.
    Raises BadArguments if the name is no text, or the pair is not two ascending whole numbers."""
    if not isinstance(stream, str) or not 0 < len(stream.encode()) <= STREAM_NAME_BYTES_MAX:
        raise BadArguments(
            f"A stream's name is a text of 1 to {STREAM_NAME_BYTES_MAX} bytes, not {stream!r}.",
            hint=_OFFSETS_HINT,
        )
    if not isinstance(pair, Sequence) or isinstance(pair, str | bytes) or len(pair) != 2:
        raise BadArguments(f"The offsets of stream {stream} are no pair.", hint=_OFFSETS_HINT)
    if any(isinstance(offset, bool) or not isinstance(offset, int) for offset in pair):
        raise BadArguments(
            f"The offsets of stream {stream} are no whole numbers.", hint=_OFFSETS_HINT
        )
    first, after = int(pair[0]), int(pair[1])
    if not 0 <= first < after <= POSITION_MAX:
        raise BadArguments(
            f"The offsets of stream {stream}, from {first} to {after}, hold nothing.",
            hint="From is at least 0 and less than to. Leave out a stream that brought nothing.",
        )
    return OffsetRange(stream, first, after)


# --- one INSERT -----------------------------------------------------------------------------------


@dataclass
class Delivery:
    """The delivery guards of one INSERT, while it runs. `positions` are the last seen positions
    of its streams."""

    services: Services
    table: Table
    token: str | None = None
    offset_ranges: OffsetRanges = ()
    admission: Admission | None = None
    positions: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, services: Services, table: Table, token: str | None, offset_ranges: OffsetRanges
    ) -> Delivery:
        """Return the guards of an INSERT into the table, with its key admission if it
        deduplicates."""
        return cls(services, table, token, offset_ranges, Admission.of(services, table))

    @property
    def dropped(self) -> int:
        """Return the number of rows that were not inserted, since their keys existed."""
        return 0 if self.admission is None else self.admission.dropped

    @property
    def has_records(self) -> bool:
        """Return whether there is something to commit even if every row was dropped."""
        return bool(self.offset_ranges or self.dropped)

    def is_duplicate(self) -> bool:
        """Return whether the table already has the token, or all of the offsets. The INSERT is then
        finished and must not fire views, which might fail.

        Raises OffsetHole, naming the stream, if positions are missing before a range, if the table
        has a range in part, or if it has the ranges of some streams but not of others."""
        if self.token and self.services.catalog.violated((TokenIsNew(self.table.id, self.token),)):
            return True
        if not self.offset_ranges:
            return False
        source_offsets = self.services.catalog.source_offsets(self.table.id)
        self.positions = {
            source_offset.stream: source_offset.position for source_offset in source_offsets
        }
        old = [offset_range for offset_range in self.offset_ranges if self._is_stored(offset_range)]
        if old and len(old) < len(self.offset_ranges):
            known = ", ".join(stored.stream for stored in old)
            new = ", ".join(
                offset_range.stream
                for offset_range in self.offset_ranges
                if offset_range not in old
            )
            raise OffsetHole(
                f"{self._table_name} has what the INSERT brings of {known}, but not of {new}.",
                hint="Nothing was inserted; cut an INSERT as it was when it was sent first, or send"
                " the new streams alone.",
            )
        return bool(old)

    def _is_stored(self, offsets: OffsetRange) -> bool:
        """Return whether the table has the whole range; False for a new stream, or if the range
        begins where the stored positions end. Raise OffsetHole if positions in between are missing,
        or if the table has the range in part."""
        position = self.positions.get(offsets.stream)
        if position is None or position == offsets.first:
            return False
        if offsets.after <= position:
            return True
        if offsets.first > position:
            raise OffsetHole(
                f"Stream {offsets.stream} of {self._table_name} stands at {position}, the INSERT"
                f" begins at {offsets.first}: {offsets.first - position} are missing.",
                hint=f"Nothing was inserted; send from {position} on.",
            )
        raise OffsetHole(
            f"Stream {offsets.stream} of {self._table_name} stands at {position}, the INSERT"
            f" goes from {offsets.first} to {offsets.after}: a part of it is there.",
            hint=f"Nothing was inserted; send from {position} on.",
        )

    @property
    def _table_name(self) -> str:
        """Return "database.table" of the target, for messages."""
        return f"{self.table.database}.{self.table.name}"

    def admit(self, block: pa.Table) -> pa.Table:
        """Return the rows whose keys are new; the block itself where all are."""
        return block if self.admission is None else self.admission.admit(block)

    def restart(self, table: Table) -> None:
        """Prepare to admit the same blocks once more, to the table's current version."""
        self.table = table
        if self.admission is not None:
            self.admission.restart(table)

    def requirements(self) -> list[Requirement]:
        """Return the requirements on which the guards' answers depend, the token and offsets
        before the keys."""
        needed: list[Requirement] = []
        if self.offset_ranges or self.admission is not None:
            # An INSERT without blocks has no other requirement on the schema.
            needed.append(SchemaIs(self.table.id, self.table.version))
        # Token and offsets come before the keys: a retry after a successful first attempt must
        # see that the whole INSERT is a duplicate, not that its keys exist.
        if self.token:
            needed.append(TokenIsNew(self.table.id, self.token))
        needed += [
            OffsetIs(self.table.id, offset_range.stream, self.positions.get(offset_range.stream))
            for offset_range in self.offset_ranges
        ]
        if self.admission is not None:
            needed += self.admission.requirements()
        return needed

    def changes(self) -> list[Change]:
        """Return the changes that record the token, the offsets and the keys."""
        made: list[Change] = []
        if self.token:
            made.append(RecordToken(self.table.id, self.token))
        made += [
            RecordOffset(self.table.id, offset_range.stream, offset_range.after, self.token or "")
            for offset_range in self.offset_ranges
        ]
        if self.admission is not None:
            made += self.admission.changes()
        return made

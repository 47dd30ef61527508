"""mergeTreePartInfo and isMergeTreePartCoveredBy: what names of parts of ClickHouse say.

A name is partition_minBlock_maxBlock_level[_mutation]; before it may stand the prefix of a detached
part, which this module does not take: ClickHouse's own functions refuse it as well.
"""

from __future__ import annotations

from typing import NamedTuple

from olapdb.errors import BadArguments
from olapdb.functions import scalar
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.types import INT64, STRING, UINT8, FixedString, String, Tuple

_INFO = Tuple(
    (STRING, STRING, STRING, INT64, INT64, INT64, INT64),
    ("partition_id", "prefix", "suffix", "min_block", "max_block", "level", "mutation"),
)


class _Name(NamedTuple):
    """A parsed name of a data part of ClickHouse: partition, block range, level and mutation."""

    partition: bytes
    first: int
    last: int
    level: int
    mutation: int


def _parsed(name: bytes) -> _Name:
    """Return the partition and the numbers in the name of a part, 0 for a mutation that it lacks. Raises BadArguments
    if it is none."""
    partition, *numbers = name.rstrip(b"\0").split(b"_")
    if len(numbers) not in (3, 4) or not partition or not all(n.isdigit() for n in numbers):
        raise BadArguments(f"Invalid MergeTree part name: '{name.decode(errors='replace')}'.")
    first, last, level, mutation = (int(number) for number in [*numbers, b"0"][:4])
    return _Name(partition, first, last, level, mutation)


def _info(name: bytes) -> dict[str, object]:
    """Return the fields of a part name by their names, for the tuple of mergeTreePartInfo."""
    part = _parsed(name)
    return dict(zip(_INFO.names, (part.partition, b"", b"", *part[1:]), strict=True))


def _covers(inner: bytes, outer: bytes) -> int:
    """Return 1 if the part `outer` covers the part `inner`: all its blocks, with a level and mutation at least as
    high; else 0."""
    less, more = _parsed(inner), _parsed(outer)
    return int(
        less.partition == more.partition
        and more.first <= less.first
        and less.last <= more.last
        and less.level <= more.level
        and less.mutation <= more.mutation
    )


_TEXTS = (String, FixedString)

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    define_by_value(
        "mergeTreePartInfo",
        scalar.fixed_rule(_INFO, _TEXTS, "the name of a part"),
        _info,
        insensitive=True,
    ),
    define_by_value(
        "isMergeTreePartCoveredBy",
        scalar.fixed_rule(UINT8, _TEXTS, "the name of a part"),
        _covers,
        count=2,
        insensitive=True,
    ),
)

"""One: a row for each file, whose data are not read; virtual columns say which file it is."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb import errors
from olapdb.formats.base import Format, Input, Reader, Rows, Structure
from olapdb.types import UINT8


def _infer(source: Input) -> Structure:
    """Return the single column, `dummy` of type UInt8, whose values are not read from the data."""
    return (("dummy", UINT8),)


def _read(source: Input) -> Iterator[Rows]:
    """Yield one row without columns. Raises BadArguments for wanted columns other than one UInt8."""
    if source.structure is not None and [kind for _, kind in source.structure] != [UINT8]:
        raise errors.BadArguments("Format One has one column, of type UInt8.")
    yield Rows((), (), (), 1)


FORMATS = (
    Format("One", "A row for each file, whose data are not read.", reader=Reader(_infer, _read)),
)

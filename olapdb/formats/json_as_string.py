"""JSONAsString: each object of the data is one text."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb import errors, types
from olapdb.formats.base import Format, Input, Reader, Rows, Structure
from olapdb.formats.json_row_blocks import RowBlocks


def _infer(source: Input) -> Structure:
    """Return the one column of JSONAsString."""
    return (("json", types.STRING),)


def _read(source: Input) -> Iterator[Rows]:
    """Yield the objects as texts, as they are. Raises BadArguments for other columns than a String."""
    structure = source.structure or _infer(source)
    if len(structure) != 1 or not isinstance(types.plain(structure[0][1]), types.String):
        raise errors.BadArguments(
            "JSONAsString reads into one column of type String.",
            hint="Name it: INSERT INTO t (column) FORMAT JSONAsString …",
        )
    try:
        for texts in RowBlocks(source, b"{").texts():
            yield Rows((structure[0][0],), (types.STRING,), (texts,), len(texts))
    except errors.CannotParseInput as error:
        raise errors.IncorrectData(error.message, hint=error.hint) from None


FORMATS = (Format("JSONAsString", "Each JSON object is one String.", reader=Reader(_infer, _read)),)

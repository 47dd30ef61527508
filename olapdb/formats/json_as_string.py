"""JSONAsString and JSONAsObject: each object of the data is one text, or one value of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from olapdb import errors, types
from olapdb.formats.base import Format, Input, Reader, Rows, Structure
from olapdb.formats.json_row_blocks import RowBlocks


def _infer(source: Input) -> Structure:
    """Return the single String column of JSONAsString."""
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


def _infer_object(source: Input) -> Structure:
    """Return the single JSON column of JSONAsObject."""
    return (("json", types.Json()),)


def _read_objects(source: Input) -> Iterator[Rows]:
    """Yield the objects as texts, which become values of JSON. Raises BadArguments for other columns."""
    structure = source.structure or _infer_object(source)
    if len(structure) != 1 or not isinstance(structure[0][1], types.Json):
        raise errors.BadArguments(
            "JSONAsObject reads into one column of type JSON.",
            hint="Name it: INSERT INTO t (column) FORMAT JSONAsObject …",
        )
    texts_of_name = replace(source, structure=((structure[0][0], types.STRING),))
    yield from _read(texts_of_name)


FORMATS = (
    Format("JSONAsString", "Each JSON object is one String.", reader=Reader(_infer, _read)),
    Format(
        "JSONAsObject",
        "Each JSON object is one value of JSON.",
        reader=Reader(_infer_object, _read_objects),
    ),
)

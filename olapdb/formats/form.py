"""Form: one row as a web form sends it, name=value between &."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

import pyarrow as pa

from olapdb import types
from olapdb.formats.base import Format, Input, Reader, Rows, Structure
from olapdb.formats.heads import no_structure, unknown_field
from olapdb.formats.inference import Guess, type_of_texts
from olapdb.functions.kernels import columns

_TEXT = types.Nullable(types.STRING)


def _fields(source: Input) -> dict[str, pa.Array]:
    """Return the value of each name, as an array of one text; the first value of a repeated name."""
    fields: dict[str, pa.Array] = {}
    for part in source.stream.read().rstrip(b"\r\n").split(b"&"):
        name, _, value = part.partition(b"=")
        if part:
            shown = unquote_to_bytes(name).decode("utf-8", "surrogateescape")
            text = columns.text(pa.array([unquote_to_bytes(value)], pa.binary()))
            fields.setdefault(shown, text)
    return fields


def _infer(source: Input) -> Structure:
    """Infer the columns: numbers where the text is one, else texts."""
    fields = _fields(source)
    if not fields:
        raise no_structure("they have no fields")
    guess = Guess.of(source.settings)
    kinds = {name: type_of_texts(text, guess=guess) for name, text in fields.items()}
    numbers = (types.INT64, types.UINT64, types.FLOAT64)
    return tuple(
        (name, types.make_nullable(kind if kind in numbers else types.STRING))
        for name, kind in kinds.items()
    )


def _read(source: Input) -> Iterator[Rows]:
    """Yield the single row. Raises IncorrectData for an unknown name unless the settings skip it."""
    fields = _fields(source)
    if not fields:
        return
    if source.structure is not None:
        wanted = [name for name, _ in source.structure]
        if not source.settings.boolean("input_format_skip_unknown_fields"):
            for name in fields:
                if name not in wanted:
                    raise unknown_field(name, wanted)
        fields = {name: fields[name] for name in wanted if name in fields}
    if source.needed is not None:
        fields = {name: text for name, text in fields.items() if name in source.needed}
    yield Rows(tuple(fields), (_TEXT,) * len(fields), tuple(fields.values()), 1)


FORMATS = (
    Format("Form", "One row, name=value between &.", reader=Reader(_infer, _read, named=True)),
)

"""Reads JSON, JSONCompact, JSONColumns and the like: documents that are one JSON value, read as a
whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from olapdb import errors
from olapdb.formats.base import Input, Reader, Rows, Structure
from olapdb.formats.heads import numbered_names
from olapdb.formats.json_array_rows import array_rows, infer_array_texts
from olapdb.formats.json_read import (
    index_of,
    infer_object_texts,
    inferred_type,
    is_needed,
    object_rows,
    rows_of_tokens,
)
from olapdb.formats.name_matching import SETTING, matched_names
from olapdb.functions import parse_type
from olapdb.functions.json import paths
from olapdb.functions.json.index import ARRAY, OBJECT, JsonIndex
from olapdb.functions.kernels.escapes import spans

Form: TypeAlias = Literal["objects", "arrays", "columns", "column arrays", "columns and meta"]


def _document(source: Input) -> JsonIndex:
    """Parse the whole stream; return its JSON index. Raises IncorrectData if it is no JSON."""
    data = source.stream.read()
    return index_of(pa.array([data], pa.binary()).cast(pa.string()), 1)


def _members(index: JsonIndex, container: int) -> dict[str, int]:
    """Return the token of each member's value of an object, by name."""
    _, values = paths.members_of(index, np.array([container]))
    return dict(zip(paths.keys_of(index, values - 2).to_pylist(), values.tolist(), strict=True))


def _elements(index: JsonIndex, container: int) -> np.ndarray:
    """Return the tokens of an array's elements."""
    return paths.members_of(index, np.array([container]))[1]


def _texts(index: JsonIndex, tokens: np.ndarray) -> pa.Array:
    """Return the source texts of the objects or arrays at the tokens."""
    return spans(index.data, index.start[tokens], index.end[index.close[tokens]])


def _strings(index: JsonIndex, tokens: list[int]) -> list[str]:
    """Return the decoded contents of string tokens."""
    texts: list[str] = paths.keys_of(index, np.array(tokens, np.int64)).to_pylist()
    return texts


def _rows(index: JsonIndex) -> tuple[Structure | None, pa.Array]:
    """Return the columns in the document's "meta" (None without it) and the rows in its "data". Raises IncorrectData
    for a document without them."""
    root = int(index.root[0])
    if index.kind[root] != OBJECT:
        return None, _texts(index, _elements(index, root))
    members = _members(index, root)
    if "data" not in members:
        raise errors.IncorrectData("The document has no member data with its rows.")
    structure = _named_columns(index, members)
    return structure, _texts(index, _elements(index, members["data"]))


def _named_columns(index: JsonIndex, members: dict[str, int]) -> Structure | None:
    """Return the columns in the document's "meta"; None without it."""
    if "meta" not in members:
        return None
    columns = [_members(index, int(at)) for at in _elements(index, members["meta"])]
    names = _strings(index, [column["name"] for column in columns])
    kinds = _strings(index, [column["type"] for column in columns])
    return tuple(zip(names, map(parse_type, kinds), strict=True))


def _columns(
    source: Input, index: JsonIndex, form: Form
) -> tuple[Structure | None, dict[str, int]]:
    """Return the columns in the document's "meta" (None without it) and the token of each column's array. Raises
    CannotParseInput or IncorrectData for a document of another form."""
    root = int(index.root[0])
    if form == "column arrays":
        if index.kind[root] != ARRAY:
            raise errors.CannotParseInput("The document is no array of columns.")
        arrays = _elements(index, root).tolist()
        known = source.structure
        names = numbered_names(len(arrays)) if known is None else [name for name, _ in known]
        if len(names) != len(arrays):
            raise errors.IncorrectData(
                f"The document has {len(arrays)} columns, not {len(names)}: {', '.join(names)}."
            )
        return None, dict(zip(names, arrays, strict=True))
    if index.kind[root] != OBJECT:
        raise errors.CannotParseInput("The document is no object of columns.")
    members = _members(index, root)
    if form == "columns":
        return None, members
    if "data" not in members or index.kind[members["data"]] != OBJECT:
        raise errors.IncorrectData("The document has no member data with its columns.")
    return _named_columns(index, members), _members(index, members["data"])


def _infer(source: Input, form: Form) -> Structure:
    """Return the columns that the document names, else infer them from the values."""
    index = _document(source)
    if form not in ("objects", "arrays"):
        named, members = _columns(source, index, form)
        if named is not None:
            return named
        return tuple(
            (n, inferred_type(index, _elements(index, at), source)) for n, at in members.items()
        )
    structure, texts = _rows(index)
    if structure is not None:
        return structure
    return (
        infer_object_texts(source, texts)
        if form == "objects"
        else infer_array_texts(source, texts, None)
    )


def _read(source: Input, form: Form) -> Iterator[Rows]:
    """Yield all rows of the document as one batch. Raises IncorrectData."""
    index = _document(source)
    if form not in ("objects", "arrays"):
        _, members = _columns(source, index, form)
        if source.structure is not None:
            own = [name for name, _ in source.structure]
            named = matched_names(list(members), own, source.settings.text(SETTING))
            members = dict(zip(named, members.values(), strict=True))
        wanted = members if source.structure is None else [name for name, _ in source.structure]
        chosen = [
            (name, _elements(index, members[name]))
            for name in wanted
            if name in members and is_needed(name, source)
        ]
        if len({len(tokens) for _, tokens in chosen}) > 1:
            raise errors.IncorrectData(
                "The columns of the document have different numbers of values."
            )
        yield rows_of_tokens(index, chosen, source, 1)
        return
    _, texts = _rows(index)
    if len(texts):
        blocks = iter((texts,))
        read = (
            object_rows(source, blocks) if form == "objects" else array_rows(source, blocks, None)
        )
        yield from read


def document_reader(form: Form) -> Reader:
    """Return the reader of documents of a form: rows as objects, rows as arrays, or columns."""
    return Reader(
        partial(_infer, form=form),
        partial(_read, form=form),
        named=form not in ("arrays", "column arrays"),
    )

"""JSON texts as values of the type JSON: each path of an object with its type and value, sorted by path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import IncorrectData
from olapdb.functions.base import Environment
from olapdb.functions.dynamic.infer import Inference, refuse_depth
from olapdb.functions.dynamic.stored import default_text, stored_texts
from olapdb.functions.json import paths
from olapdb.functions.json.extract import json_slices
from olapdb.functions.json.index import OBJECT, SCALAR, JsonIndex, build_index
from olapdb.functions.json.read import ValueReader
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types.arrow import JSON_PATHS
from olapdb.types.arrow_values import from_numpy

_SHOWN_BYTES = 80


@dataclass(frozen=True)
class Entries:
    """Paths of rows: the number of each one's row (int64), its name, the name of its value's type, and the text that
    keeps the value."""

    rows: np.ndarray
    paths: pa.Array
    types: pa.Array
    values: pa.Array


def objects_of_texts(texts: pa.Array, data_type: types.Json, environment: Environment) -> pa.Array:
    """Return JSON texts, none of them NULL, as values of the type.

    Raises IncorrectData, with its row, for a text that is no object, for a path that an object has twice, and for
    a value that is none of the type of its path."""
    parts = []
    texts = columns.text(texts)
    for first, rows in json_slices(texts):
        index = build_index(texts.slice(first, rows))
        _refuse_others(texts, first, index)
        try:
            parts.append(ObjectReader(index, environment).objects(index.root, data_type))
        except IncorrectData as error:
            raise error if error.row is None else error.at_row(first + error.row) from None
    return pa.concat_arrays(parts) if parts else pa.nulls(0, JSON_PATHS)


def _refuse_others(texts: pa.Array, first: int, index: JsonIndex) -> None:
    """Raise IncorrectData for the first text that is no JSON object.

    `index` covers a slice of `texts` that begins at row `first`; the error names the row of `texts`."""
    bad = index.kind_of(index.root) != OBJECT
    if not bad.any():
        return
    row = int(np.argmax(bad))
    shown = (
        columns.binary(texts)[first + row]
        .as_py()[:_SHOWN_BYTES]
        .decode("utf-8", "backslashreplace")
    )
    raise IncorrectData(
        f"Cannot read {shown!r} as a JSON object.", hint='Write an object: {"key": value}.'
    ).at_row(first + row)


@dataclass(frozen=True)
class ObjectReader:
    """A reader of objects in an index of JSON texts. `depth` counts the objects around them within whose arrays they
    stand."""

    index: JsonIndex
    environment: Environment
    depth: int = 0

    def dynamic(self, tokens: np.ndarray, *, nullable: bool = False) -> pa.Array:
        """Return values as a Dynamic: NULL for null and for the token -1. `nullable`: elements of arrays are
        Nullable also where none is null, as in JSONExtract."""
        inference = replace(self._inference(types.Json()), nullable=nullable)
        return inference.dynamic(tokens, types.Json())

    def read(self, tokens: np.ndarray, data_type: types.Json) -> tuple[pa.Array, np.ndarray]:
        """Return tokens as values of the JSON type, NULL for tokens that are no objects, and a mask of the objects."""
        is_object = self.index.kind_of(tokens) == OBJECT
        objects = self.objects(tokens[is_object], data_type)
        return (objects if is_object.all() else columns.scatter(objects, is_object)), is_object

    def objects(self, tokens: np.ndarray, data_type: types.Json) -> pa.Array:
        """Return objects as values of the type; `tokens` ascend, and are objects.

        Raises IncorrectData for objects that nest too deep in arrays."""
        refuse_depth(self.index, tokens, self.depth)
        pieces = [self._entries(*leaves, data_type) for leaves in self._leaves(tokens, data_type)]
        pieces += _defaults(pieces, len(tokens), data_type)
        entries = [p for p in pieces if len(p.rows)]
        return _assembled(entries, len(tokens), self._rows_of_texts(tokens))

    def _rows_of_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Return the number of the text in which each token stands."""
        return np.asarray(self.index.row[tokens])

    def _inference(self, data_type: types.Json) -> Inference:
        """Return the inference of the types of values at paths without a declared type."""
        inner = replace(self, depth=self.depth + 1)
        nullable = "schema_inference_make_columns_nullable=0" not in self.environment.changed
        return Inference(
            self.index, self.environment, data_type.nested, inner.objects, nullable=nullable
        )

    def _leaves(
        self, tokens: np.ndarray, data_type: types.Json
    ) -> Iterator[tuple[np.ndarray, pa.Array, np.ndarray]]:
        """Yield (rows, paths, tokens) of the values at the ends of all paths, one depth of nesting at a time."""
        rows = np.arange(len(tokens))
        prefix: pa.Array | None = None
        typed = pa.array([path for path, _ in data_type.typed], pa.string())
        while len(tokens):
            offsets, members = paths.members_of(self.index, tokens)
            owners = columns.parents_of(offsets)
            names = paths.keys_of(self.index, members - 2)
            if prefix is not None:
                names = pc.binary_join_element_wise(prefix.take(from_numpy(owners)), names, ".")
            keep = _kept(names, data_type)
            members, owners = members[keep], owners[keep]
            names = names if keep.all() else names.filter(pa.array(keep))
            is_typed = (
                np.asarray(pc.is_in(names, typed)) if len(typed) else np.zeros(len(members), bool)
            )
            inner = (self.index.kind_of(members) == OBJECT) & ~is_typed
            leaf = np.flatnonzero(~inner)
            yield rows[owners[leaf]], names.take(from_numpy(leaf)), members[leaf]
            deeper = np.flatnonzero(inner)
            rows, tokens = rows[owners[deeper]], members[deeper]
            prefix = names.take(from_numpy(deeper))

    def _entries(
        self, rows: np.ndarray, names: pa.Array, tokens: np.ndarray, data_type: types.Json
    ) -> Entries:
        """Return the entries to keep of values at paths: typed paths as their type, others as the type inferred; a
        null of an untyped path is left out."""
        pieces: list[Entries] = []
        rest = np.ones(len(rows), bool)
        for path, kind in data_type.typed:
            own = np.flatnonzero(np.asarray(pc.equal(names, path)))
            if len(own):
                rest[own] = False
                texts = self._typed(tokens[own], path, kind)
                labels = columns.as_array(pa.scalar(kind.name), len(own))
                pieces.append(Entries(rows[own], names.take(from_numpy(own)), labels, texts))
        own = np.flatnonzero(rest)
        dynamics = self._inference(data_type).dynamic(tokens[own], data_type.untyped)
        valid = columns.validity(dynamics)
        if valid is not None:
            own, dynamics = own[valid], dynamics.filter(pa.array(valid))
        labels, texts = columns.struct_fields(dynamics)
        pieces.append(Entries(rows[own], names.take(from_numpy(own)), labels, texts))
        return _joined(pieces)

    def _typed(self, tokens: np.ndarray, path: str, data_type: types.DataType) -> pa.Array:
        """Return the texts that keep values of a path with a declared type; null becomes the default of a type without
        NULL.

        Raises IncorrectData with its row for a value that does not convert."""
        read, converted = self.typed_values(tokens, data_type)
        kind = self.index.kind_of(tokens)
        missing = (kind == SCALAR) & (self.index.data[self.index.start[tokens]] == ord("n"))
        bad = ~converted & ~missing
        if bad.any():
            at = int(np.argmax(bad))
            shown = self.index.texts(tokens[at : at + 1])[0].as_py()
            raise IncorrectData(
                f"Cannot read {shown} as {data_type}, the type of the path {path}."
            ).at_row(int(self.index.row[tokens[at]]))
        texts = stored_texts(read, data_type)
        if not missing.any():
            return texts
        filler = pa.scalar(default_text(data_type), pa.string())
        return pc.if_else(pa.array(missing), filler, texts)

    def typed_values(
        self, tokens: np.ndarray, data_type: types.DataType
    ) -> tuple[pa.Array, np.ndarray]:
        """Return tokens as values of a declared type, and a mask of those that convert."""
        plain = types.plain(data_type)
        if isinstance(plain, types.Dynamic):
            return self.dynamic(tokens), np.ones(len(tokens), bool)
        if isinstance(plain, types.Json):
            return self.read(tokens, plain)
        return ValueReader(self.index, self.environment).read(tokens, plain)


def _kept(names: pa.Array, data_type: types.Json) -> np.ndarray:
    """Return a mask of the paths that the type does not skip."""
    keep = np.ones(len(names), bool)
    for path in data_type.skipped:
        keep &= ~np.asarray(pc.equal(names, path))
    for pattern in data_type.skipped_patterns:
        encoded = names.dictionary_encode()
        expression = re.compile(pattern)
        matches = [expression.search(name) is not None for name in encoded.dictionary.to_pylist()]
        codes = columns.numpy_values(encoded.indices)
        keep &= ~np.array(matches, bool)[codes] if len(codes) else keep
    return keep


def _joined(pieces: Sequence[Entries]) -> Entries:
    """Return several sets of entries as one."""
    if len(pieces) == 1:
        return pieces[0]
    return Entries(
        np.concatenate([p.rows for p in pieces]),
        pa.concat_arrays([p.paths for p in pieces]),
        pa.concat_arrays([p.types for p in pieces]),
        pa.concat_arrays([columns.text(p.values) for p in pieces]),
    )


def _defaults(pieces: Sequence[Entries], count: int, data_type: types.Json) -> list[Entries]:
    """Return entries with the default of each typed path, for those of `count` rows that lack the path."""
    defaults = []
    for path, kind in data_type.typed:
        missing = np.ones(count, bool)
        for piece in pieces:
            missing[piece.rows[np.asarray(pc.equal(piece.paths, path))]] = False
        rows = np.flatnonzero(missing)
        texts = pa.scalar(default_text(kind), pa.string())
        parts = (pa.scalar(path), pa.scalar(kind.name), texts)
        defaults.append(Entries(rows, *(columns.as_array(part, len(rows)) for part in parts)))
    return defaults


def _assembled(
    pieces: Sequence[Entries], count: int, rows_of_texts: np.ndarray | None = None
) -> pa.Array:
    """Return entries, in any order, as `count` values of JSON; raise IncorrectData with its row for a path that a
    row has twice."""
    if not pieces:
        return columns.lists_from(
            np.zeros(count + 1, np.int64), pa.nulls(0, JSON_PATHS.value_type)
        ).cast(JSON_PATHS)
    entries = _joined(pieces)
    encoded = entries.paths.dictionary_encode()
    by_name = np.asarray(pc.array_sort_indices(encoded.dictionary))
    ranks = np.empty(len(by_name), np.int64)
    ranks[by_name] = np.arange(len(by_name))
    codes = ranks[columns.numpy_values(encoded.indices)]
    order = np.lexsort((codes, entries.rows))
    rows, codes = entries.rows[order], codes[order]
    twice = np.flatnonzero((rows[1:] == rows[:-1]) & (codes[1:] == codes[:-1]))
    if len(twice):
        at = int(twice[0])
        row = int(rows[at])
        raise IncorrectData(
            f"A JSON object has the path {entries.paths[int(order[at])].as_py()} twice.",
            hint="Write each path once.",
        ).at_row(row if rows_of_texts is None else int(rows_of_texts[row]))
    indices = from_numpy(order)
    parts = [p.take(indices) for p in (entries.paths, entries.types, entries.values)]
    offsets = columns.offsets_from_counts(np.bincount(rows, minlength=count))
    return columns.retype(
        columns.lists_from(offsets, columns.structs_from(parts, JSON_PATHS.value_type)), JSON_PATHS
    )


def from_entries(entries: Entries, count: int) -> pa.Array:
    """Return entries in any order as `count` values of JSON."""
    return _assembled([entries] if len(entries.rows) else [], count)


def entries_of(array: pa.Array) -> Entries:
    """Return the entries of a column of JSON: its rows' paths and values; a NULL has none."""
    offsets, elements = columns.elements_of(array)
    names, kinds, values = columns.struct_fields(elements)
    return Entries(columns.parents_of(offsets), names, kinds, values)

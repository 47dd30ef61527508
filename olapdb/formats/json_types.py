"""The types that JSON values have, where no column says one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.formats.inference import Guess, all_match, type_of_texts
from olapdb.functions.json import paths
from olapdb.functions.json.index import ARRAY, OBJECT, SCALAR, STRING, JsonIndex
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.escapes import spans

_MIXED = types.STRING


def type_of_tokens(index: JsonIndex, tokens: np.ndarray, guess: Guess) -> types.DataType | None:
    """Return the type of the values of tokens: None if all are null or absent, String where they
    have no type in common.

    Objects are tuples with names; numbers are Int64 if all are whole, else Float64; strings that all
    are dates or times are such."""
    kind = index.kind_of(tokens)
    present = tokens >= 0
    scalars = tokens[(kind == SCALAR) & present]
    words = spans(index.data, index.start[scalars], index.end[scalars])
    words = words.filter(pc.not_equal(words, "null"))
    strings = tokens[kind == STRING]
    arrays, objects = tokens[kind == ARRAY], tokens[kind == OBJECT]
    if sum(map(bool, map(len, (words, strings, arrays, objects)))) > 1:
        return _MIXED
    if len(words):
        return _number_type(words, guess)
    if len(strings):
        texts = paths.keys_of(index, strings)
        data_type = type_of_texts(texts, numbers=guess.numbers, guess=guess)
        return types.STRING if data_type == types.BOOL else data_type
    if len(arrays):
        return _array_type(index, arrays, guess)
    if not len(objects):
        return None
    if guess.named_tuples or guess.object_texts:
        return _tuple_type(index, objects, guess) if guess.named_tuples else types.STRING
    members = type_of_tokens(index, paths.members_of(index, objects)[1], guess) or types.STRING
    return types.Map(types.STRING, types.make_nullable(members))


def _array_type(index: JsonIndex, arrays: np.ndarray, guess: Guess) -> types.DataType:
    """Return the type of arrays, one a row: Array(Dynamic) if the elements of each have no type in common, of
    Strings if those of some have one."""
    offsets, elements = paths.members_of(index, arrays)
    if not guess.mixed_arrays and _is_mixed(index, elements):
        return _places_type(index, offsets, elements, guess)
    mixed = _mixed_arrays(index, offsets, elements)
    if guess.mixed_arrays and mixed.any():
        is_dynamic = bool(mixed.all())
        return types.Array(types.Dynamic() if is_dynamic else types.make_nullable(types.STRING))
    nested = elements[index.kind_of(elements) == ARRAY]
    if guess.mixed_arrays and len(nested):
        inner = _nested_type(index, nested, guess)
        if inner is not None:
            return types.Array(inner)
        if len(arrays) == 1:
            return types.Array(types.Dynamic())
    return types.Array(types.make_nullable(type_of_tokens(index, elements, guess) or types.STRING))


def _nested_type(index: JsonIndex, arrays: np.ndarray, guess: Guess) -> types.DataType | None:
    """Return the type of arrays that are the elements of arrays: Array(Dynamic) if the elements of one have no type
    in common; None if the arrays have none."""
    offsets, elements = paths.members_of(index, arrays)
    if _mixed_arrays(index, offsets, elements).any():
        return types.Array(types.Dynamic())
    together = np.array([0, len(elements)])
    if len(elements) and _mixed_arrays(index, together, elements).any():
        return None
    nested = elements[index.kind_of(elements) == ARRAY]
    if len(nested):
        inner = _nested_type(index, nested, guess)
        return None if inner is None else types.Array(inner)
    return types.Array(types.make_nullable(type_of_tokens(index, elements, guess) or types.STRING))


def _mixed_arrays(index: JsonIndex, offsets: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Return for each array whether its elements have no type in common: numbers beside strings, and arrays or
    objects beside anything else. Bools are texts beside strings, and numbers beside numbers."""
    kinds = index.kind_of(elements)
    first = index.data[index.start[elements]]
    words = kinds == SCALAR
    bools = words & np.isin(first, list(b"tf"))
    numbers = words & ~bools & (first != ord("n"))
    owners = columns.parents_of(offsets)

    def has(marks: np.ndarray) -> np.ndarray:
        """Return for each array whether one of its elements is marked."""
        return np.bincount(owners[marks], minlength=len(offsets) - 1) > 0

    strings, nested, objects = has(kinds == STRING), has(kinds == ARRAY), has(kinds == OBJECT)
    plain = has(numbers) | has(bools) | strings
    return np.asarray((has(numbers) & strings) | (nested & (plain | objects)) | (objects & plain))


def _is_mixed(index: JsonIndex, tokens: np.ndarray) -> bool:
    """Return whether the values are of several kinds among numbers, strings, arrays and objects."""
    kinds = index.kind_of(tokens)
    words = tokens[kinds == SCALAR]
    nulls = index.data[index.start[words]] == ord("n")
    nested_kinds = set(kinds[kinds != SCALAR].tolist())
    return len(nested_kinds) + bool((~nulls).any()) > 1


def _places_type(
    index: JsonIndex, offsets: np.ndarray, elements: np.ndarray, guess: Guess
) -> types.DataType:
    """Return the tuple of the element types by position; String if the arrays have different lengths."""
    counts = np.diff(offsets)
    width = int(counts[0])
    if (counts != width).any():
        return _MIXED
    grid = elements.reshape(-1, width)
    elements_types = [
        type_of_tokens(index, grid[:, at], guess) or types.STRING for at in range(width)
    ]
    return types.Tuple(tuple(map(types.make_nullable, elements_types)))


def _number_type(words: pa.Array, guess: Guess) -> types.DataType:
    """Return the type of JSON numbers, true and false."""
    is_bool = all_match(words, "^(true|false)$")
    has_bool = pc.any(pc.match_substring_regex(words, "^[tf]")).as_py()
    if has_bool and not is_bool:  # they are read as 1 and 0
        words = words.filter(pc.match_substring_regex(words, "^[^tf]"))
    return type_of_texts(words, guess=guess) or _MIXED


def _tuple_type(index: JsonIndex, objects: np.ndarray, guess: Guess) -> types.DataType:
    """Return the named tuple of all members that the objects have, sorted by name."""
    _, values = paths.members_of(index, objects)
    keys = paths.keys_of(index, values - 2).dictionary_encode()
    codes = columns.numpy_values(keys.indices)
    names = keys.dictionary.to_pylist()
    if not names:
        return types.STRING
    order = sorted(range(len(names)), key=lambda at: names[at].encode("utf-8", "surrogateescape"))
    elements = [
        types.make_nullable(type_of_tokens(index, values[codes == at], guess) or types.STRING)
        for at in order
    ]
    return types.Tuple(tuple(elements), tuple(names[at] for at in order))

"""Paths into JSON texts: keys of objects, and places of members."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.json.escapes import unescape
from olapdb.functions.json.index import ARRAY, OBJECT, STRING, JsonIndex
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.escapes import spans


def follow(index: JsonIndex, path: Sequence[pa.Array], *, any_case: bool = False) -> np.ndarray:
    """Return the token of each text's value at the path, -1 where there is none.

    An element of the path is a text, the key of an object, or an integer, the place of a member of
    an object or array, from 1, negative from the end. `any_case`: keys match in any case of ASCII
    letters. Of equal keys the first counts."""
    current = index.root
    for step in path:
        if pa.types.is_integer(step.type):
            current = member_at(index, current, columns.numpy_values(step).astype(np.int64))
        else:
            current = _with_key(index, current, step, any_case=any_case)
    return current


def keys_of(index: JsonIndex, keys: np.ndarray) -> pa.Array:
    """Return the decoded texts of tokens that are strings."""
    return unescape(spans(index.data, index.start[keys] + 1, index.end[keys] - 1))


def member_at(index: JsonIndex, current: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return the token of the value at each place in the containers `current`, -1 where there is none; places count
    from 1, or from the end if negative."""
    count = index.members(current)
    place = np.where(place < 0, count + 1 + place, place)
    within = (place >= 1) & (place <= count)
    rank = np.where(index.kind_of(current) == OBJECT, 4 * place - 2, 2 * place - 2)
    result = np.full(len(current), -1, np.int64)
    values = np.flatnonzero(index.is_value)
    rows = index.row[values]
    hit = (
        within[rows] & (current[rows] == index.parent[values]) & (rank[rows] == index.rank[values])
    )
    result[rows[hit]] = values[hit]
    return result


def _with_key(
    index: JsonIndex, current: np.ndarray, key: pa.Array, *, any_case: bool
) -> np.ndarray:
    """Return the token of the value under the key in the objects `current`, -1 where there is none; of equal keys
    the first counts."""
    result = np.full(len(current), -1, np.int64)
    keys = object_keys(index)
    keys = keys[index.parent[keys] == current[index.row[keys]]]
    if not len(keys):
        return result
    names = keys_of(index, keys)
    expected = key.take(pa.array(index.row[keys]))
    if any_case:
        names, expected = pc.ascii_lower(names), pc.ascii_lower(expected)
    equal = columns.numpy_values(pc.equal(names, expected)).astype(bool)
    matching = keys[equal][::-1]
    result[index.row[matching]] = matching + 2  # the key, the colon, the value
    return result


def object_keys(index: JsonIndex) -> np.ndarray:
    """Return the tokens that are keys of objects."""
    strings = np.flatnonzero((index.kind == STRING) & (index.parent >= 0))
    in_object = index.kind[index.parent[strings]] == OBJECT
    return np.asarray(strings[in_object & (index.rank[strings] % 4 == 0)])


def members_of(index: JsonIndex, containers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (offsets, values): the tokens of the values of each container's members.

    `containers` ascend but for -1; what is not a container has no members. The key of a value of an
    object is the token two before it."""
    owner = np.full(len(index.kind) + 1, -1, np.int64)
    rows = np.flatnonzero((containers >= 0) & np.isin(index.kind_of(containers), (OBJECT, ARRAY)))
    owner[containers[rows]] = rows
    values = np.flatnonzero(index.is_value)
    owners = owner[index.parent[values]]
    values, owners = values[owners >= 0], owners[owners >= 0]
    counts = np.bincount(owners, minlength=len(containers))
    return columns.offsets_from_counts(counts), values

"""Functions that search the keys or values of a map, and that change its pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions.arrays.lambda_conditions import any_true, true_elements
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.composition import Term, call, compose
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import stable_order
from olapdb.functions.kernels.nested import count_marked, map_parts
from olapdb.functions.registry import resolve_scalar
from olapdb.functions.scalar import (
    Invocation,
    Resolver,
    ScalarDefinition,
    custom,
    define,
    illegal,
    require,
    standard_call,
)
from olapdb.types import STRING, UINT8, DataType, FixedString, Map, String, plain
from olapdb.types.arrow_values import from_numpy


def _contains_value(whole: Term, value: Term) -> Term:
    """Compose the call that tells whether the map `whole` has the value."""
    if not isinstance(plain(whole.type), Map):
        raise illegal("mapContainsValue", whole.type, "a Map")
    return call("has", call("mapValues", whole), value)


def _like(*, keys: bool, extracts: bool) -> Resolver:
    """Return the resolver of mapContainsKeyLike and the like: LIKE over the keys or, without `keys`, the values. With
    `extracts` the result is the matching pairs, else whether any pair matches."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call for a map of texts and a LIKE pattern."""
        container = plain(arguments[0].type)
        require(name, [container], Map, "a Map")
        assert isinstance(container, Map)
        side = container.key if keys else container.value
        require(name, [plain(side)], (String, FixedString), "a Map of texts")
        like = resolve_scalar("like", [Argument(side), Argument(STRING)])

        def kernel(arrays: list[pa.Array], invocation: Invocation) -> pa.Array:
            """Match each key (value) with its row's pattern; return the map of matching pairs, or with `extracts`
            False whether any matches."""
            offsets, names, values = map_parts(arrays[0])
            patterns = arrays[1].take(from_numpy(columns.parents_of(offsets)))
            side_values = names if keys else values
            matched = like.kernel([side_values, patterns], len(names), invocation.environment)
            matches = columns.as_array(matched, len(names))
            if not extracts:
                return any_true(offsets, matches, arrays)
            keep = true_elements(matches)
            kept = columns.offsets_from_counts(count_marked(offsets, keep))
            mask = pa.array(keep)
            return columns.maps_from(kept, names.filter(mask), values.filter(mask), container.arrow)

        require(name, [plain(arguments[1].type)], String, "a pattern")
        return standard_call(name, arguments, container if extracts else UINT8, kernel)

    return resolve


def _update_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of two maps of one type; raise IllegalTypeOfArgument for others."""
    require(name, types, Map, "a Map")
    if types[0] != types[1]:
        raise IllegalTypeOfArgument(
            f"The maps of {name} are of two types, {types[0]} and {types[1]}.",
            hint="Cast one of them.",
        )
    return types[0]


def _update(arrays: list[pa.Array], invocation: Invocation) -> pa.Array:
    """Return the pairs of the first map whose keys the second lacks, then all pairs of the second:
    the kernel of mapUpdate."""
    container = invocation.result
    assert isinstance(container, Map)
    (old, old_keys, old_values), (new, new_keys, new_values) = (map_parts(a) for a in arrays)
    owners = np.concatenate([columns.parents_of(old), columns.parents_of(new)])
    keys = pa.concat_arrays([old_keys, new_keys])
    values = pa.concat_arrays([old_values, new_values])
    codes = columns.numpy_values(keys.dictionary_encode().indices).astype(np.int64)
    pairs = owners * (int(codes.max(initial=0)) + 1) + codes
    is_new = np.arange(len(pairs)) >= len(old_keys)
    replaced = np.isin(pairs, pairs[is_new]) & ~is_new
    keep = np.flatnonzero(~replaced)
    order = keep[stable_order(owners[keep])]
    counts = np.bincount(owners[keep], minlength=len(arrays[0]))
    rows = pa.array(order)
    return columns.maps_from(
        columns.offsets_from_counts(counts), keys.take(rows), values.take(rows), container.arrow
    )


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    compose("mapContainsValue", _contains_value, count=2),
    custom("mapContainsKeyLike", _like(keys=True, extracts=False), count=2),
    custom("mapContainsValueLike", _like(keys=False, extracts=False), count=2),
    custom("mapExtractKeyLike", _like(keys=True, extracts=True), count=2),
    custom("mapExtractValueLike", _like(keys=False, extracts=True), count=2),
    define("mapUpdate", _update_rule, _update, count=2),
)

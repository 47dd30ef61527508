"""dynamicType, dynamicElement, JSONAllPaths and other functions of Dynamic and JSON."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import BadArguments, UnknownType
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Environment, ScalarCall
from olapdb.functions.dynamic.objects import entries_of
from olapdb.functions.dynamic.parts import call_of, innermost
from olapdb.functions.dynamic.paths import element_of
from olapdb.functions.dynamic.stored import type_named
from olapdb.functions.dynamic.values import kinds
from olapdb.functions.kernels import columns
from olapdb.functions.strings.rendering import display_array
from olapdb.functions.variants.values import in_rows

_PATHS_WITH_TYPES = types.Map(types.STRING, types.STRING)


def _element(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve dynamicElement(d, 'Type') of a Dynamic, or of an array of Dynamic: its values of that type, else NULL or
    empty.

    Raises IllegalTypeOfArgument for other arguments, BadArguments for an unknown type."""
    inner, depth = innermost(arguments[0].type)
    if not isinstance(inner, types.Dynamic):
        raise scalar.illegal(name, arguments[0].type, "a Dynamic, or an Array of such,")
    text = scalar.constant_text(name, arguments, 1, "the name of a type")
    try:
        wanted = type_named(text)
    except UnknownType as error:
        raise BadArguments(
            f"The second argument of {name} is the name of a type, not {text}."
        ) from error
    result = types.make_nullable(wanted)
    return call_of(name, result, lambda array, _: element_of(array, wanted), depth)


def _type(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve dynamicType(d): the name of each value's type, 'None' for NULL."""
    if not isinstance(arguments[0].type, types.Dynamic):
        raise scalar.illegal(name, arguments[0].type, "a Dynamic")

    def names(array: pa.Array, environment: Environment) -> pa.Array:
        """Return the names of the types."""
        return pc.fill_null(columns.struct_fields(array)[0], "None")

    return call_of(name, types.LowCardinality(types.STRING), names)


def _is_shared(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve isDynamicElementInSharedData(d): false for every row, since there is no shared data."""
    if not isinstance(arguments[0].type, types.Dynamic):
        raise scalar.illegal(name, arguments[0].type, "a Dynamic")
    return call_of(
        name, types.BOOL, lambda array, _: columns.as_array(pa.scalar(False), len(array))
    )


def _json_of(name: str, argument: Argument) -> types.Json:
    """Return the type of an argument that is a JSON; raise IllegalTypeOfArgument for another."""
    data_type = types.plain(argument.type)
    if not isinstance(data_type, types.Json):
        raise scalar.illegal(name, argument.type, "a JSON")
    return data_type


def _paths(which: str) -> scalar.Resolver:
    """Return the resolver of a function that lists the paths of a JSON: `which` is "all", "dynamic" (without a type
    of their own) or "shared" (none)."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the function. Raises IllegalTypeOfArgument for an argument that is no JSON."""
        kind = _json_of(name, arguments[0])
        with_types = name.endswith("Types")

        def listed(array: pa.Array, environment: Environment) -> pa.Array:
            """Return the list of each value's paths."""
            entries = entries_of(array)
            keep = columns.as_array(pa.scalar(which != "shared"), len(entries.rows))
            if which == "dynamic" and kind.typed:
                typed = pa.array([path for path, _ in kind.typed], pa.string())
                keep = pc.invert(pc.is_in(entries.paths, typed))
            offsets = _offsets(entries.rows, keep, len(array))
            names = entries.paths.filter(keep)
            if not with_types:
                return columns.lists_from(offsets, names)
            return columns.maps_from(
                offsets, names, entries.types.filter(keep), _PATHS_WITH_TYPES.arrow
            )

        result = _PATHS_WITH_TYPES if with_types else types.Array(types.STRING)
        return call_of(name, result, listed)

    return resolve


def _offsets(rows: object, keep: pa.Array, count: int) -> np.ndarray:
    """Return the offsets of `count` lists of entries: `rows` has each entry's row, the mask `keep` the entries that
    stay."""
    counts = np.bincount(np.asarray(rows)[np.asarray(keep)], minlength=count)
    return columns.offsets_from_counts(counts)


def _values(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve JSONAllValues(j): for each object the values of all paths, as texts."""
    _json_of(name, arguments[0])

    def listed(array: pa.Array, environment: Environment) -> pa.Array:
        """Return the values of each object."""
        entries = entries_of(array)
        pieces, rows = [], []
        for kind in kinds(entries.types, entries.values):
            shown = display_array(kind.values(), kind.type, environment.zone)
            pieces.append(pc.fill_null(columns.text(shown), "NULL"))
            rows.append(kind.rows)
        texts = in_rows(pieces, rows, len(entries.rows), pa.string())
        counts = np.bincount(entries.rows, minlength=len(array))
        return columns.lists_from(columns.offsets_from_counts(counts), texts)

    return call_of(name, types.Array(types.STRING), listed)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("dynamicElement", _element, count=2),
    scalar.custom("dynamicType", _type),
    scalar.custom("isDynamicElementInSharedData", _is_shared),
    scalar.custom("JSONAllPaths", _paths("all")),
    scalar.custom("JSONAllPathsWithTypes", _paths("all")),
    scalar.custom("JSONDynamicPaths", _paths("dynamic")),
    scalar.custom("JSONDynamicPathsWithTypes", _paths("dynamic")),
    scalar.custom("JSONSharedDataPaths", _paths("shared")),
    scalar.custom("JSONSharedDataPathsWithTypes", _paths("shared")),
    scalar.custom("JSONAllValues", _values),
)

"""-ArgMin and -ArgMax: over the rows that have the smallest (largest) key; -Tuple: for each element
of tuples on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from olapdb.errors import NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates import segments
from olapdb.functions.aggregates.combinators import Wrapped
from olapdb.functions.aggregates.extremes import filled, key_of
from olapdb.functions.aggregates.parts import illegal, state_of
from olapdb.functions.base import Aggregate, Groups, MergeClass
from olapdb.functions.kernels import columns
from olapdb.types import (
    AggregateFunction,
    Array,
    DataType,
    Map,
    Tuple,
    is_nullable,
    make_nullable,
    plain,
)

Resolve = Callable[[str, tuple[object, ...], tuple[DataType, ...]], Aggregate]

SUFFIXES = ("ArgMin", "ArgMax", "Tuple")


@dataclass(frozen=True)
class OfExtreme(Wrapped):
    """-ArgMin, -ArgMax: over the rows whose last argument is the group's smallest (largest); all of
    them, where several are. Rows with a NULL are skipped, NaN is the last choice.
    State: Tuple(key Nullable(K), state), the key NULL where there was no row."""

    largest: bool = False

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        (*rest, keys), groups = segments.present(arguments, groups)
        chosen, kept, of_groups = self._chosen(keys, rest, groups)
        return self._pair(of_groups, self.inner.state(chosen, kept))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        keys, inner = columns.struct_fields(states)
        (keys, inner), groups = segments.kept([keys, inner], groups, np.asarray(keys.is_valid()))
        (chosen,), kept, of_groups = self._chosen(keys, [inner], groups)
        return self._pair(of_groups, self.inner.merge(chosen, kept))

    def finalize(self, states: pa.Array) -> pa.Array:
        keys, inner = columns.struct_fields(states)
        values = self.inner.finalize(inner)
        if is_nullable(self.result_type) and not is_nullable(self.inner.result_type):
            rows = np.where(np.asarray(keys.is_valid()), np.arange(len(states)), -1)
            values = filled(segments.take_rows(values, rows), self)
        return values

    def _chosen(
        self, keys: pa.Array, values: Sequence[pa.Array], groups: Groups
    ) -> tuple[list[pa.Array], Groups, pa.Array]:
        """(the values of the rows with their group's extreme key, their groups, the keys)."""
        ordered = key_of(keys, largest=self.largest)
        best = segments.extremes(ordered, groups, largest=self.largest)
        chosen, kept = segments.kept(values, groups, ordered == best[groups.codes])
        rows = segments.extreme_rows(ordered, groups, largest=self.largest)
        return chosen, kept, segments.take_rows(keys, rows)

    def _pair(self, keys: pa.Array, states: pa.Array) -> pa.Array:
        return columns.structs_from([keys, states], self.state_type.arrow)


@dataclass(frozen=True)
class TupleElements(Aggregate):
    """-Tuple: an aggregate for each element of the tuples. State: Tuple of their states."""

    inners: tuple[Aggregate, ...] = ()

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        fields = [columns.struct_fields(one) for one in arguments]
        made = [
            inner.state([own[at] for own in fields], groups) for at, inner in enumerate(self.inners)
        ]
        return columns.structs_from(made, self.state_type.arrow)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        parts = zip(self.inners, columns.struct_fields(states), strict=True)
        made = [inner.merge(one, groups) for inner, one in parts]
        return columns.structs_from(made, self.state_type.arrow)

    def finalize(self, states: pa.Array) -> pa.Array:
        parts = zip(self.inners, columns.struct_fields(states), strict=True)
        made = [inner.finalize(one) for inner, one in parts]
        return columns.structs_from(made, self.result_type.arrow)


def resolve_by_element(
    suffix: str,
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: Resolve,
    above_nulls: Callable[[str], bool],
) -> Aggregate:
    """`name` with one of SUFFIXES; `resolve` makes the aggregate inside, `above_nulls` tells whether
    it has a value over no rows whatever the arguments' types."""
    if suffix == "Tuple":
        return _tuple(name, parameters, types, resolve)
    return _of_extreme(suffix, name, parameters, types, resolve, above_nulls)


def _of_extreme(
    suffix: str,
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: Resolve,
    above_nulls: Callable[[str], bool],
) -> Aggregate:
    if not types:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name}{suffix} takes a key, its last argument."
        )
    key = plain(types[-1])
    if isinstance(key, Array | Map | Tuple | AggregateFunction):
        raise illegal(f"{name}{suffix}", types[-1], "a key that is a single value")
    inner = resolve(name, parameters, types[:-1])
    result = inner.result_type
    if is_nullable(types[-1]) and not above_nulls(name) and not isinstance(result, Array | Tuple):
        result = make_nullable(result)
    spelt = f"{inner.name}{suffix}"
    pair = Tuple((make_nullable(key), inner.state_type.state), ("key", "state"))
    return OfExtreme(
        spelt,
        inner.parameters,
        types,
        result,
        state_of(spelt, inner.parameters, types, pair),
        inner,
        suffix == "ArgMax",
        merge_class=inner.merge_class,
    )


def _tuple(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...], resolve: Resolve
) -> Aggregate:
    spelt = f"{name}Tuple"
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {spelt} takes a Tuple.")
    tuples = [one for one in types if isinstance(one, Tuple) and one.elements]
    if len(tuples) < len(types):
        wrong = next(one for one in types if one not in tuples)
        raise illegal(spelt, wrong, "a Tuple that is not empty")
    sizes = {len(one.elements) for one in tuples}
    if len(sizes) > 1:
        raise illegal(spelt, types[-1], "tuples of one size")
    inners = [
        resolve(name, parameters, elements)
        for elements in zip(*(one.elements for one in tuples), strict=True)
    ]
    states = Tuple(tuple(one.state_type.state for one in inners))
    result = Tuple(tuple(one.result_type for one in inners), tuples[0].names)
    spelt = f"{inners[0].name}Tuple"
    return TupleElements(
        spelt,
        inners[0].parameters,
        types,
        result,
        state_of(spelt, inners[0].parameters, types, states),
        tuple(inners),
        merge_class=_weakest([one.merge_class for one in inners]),
    )


_STRONGEST_FIRST: tuple[MergeClass, ...] = ("exact", "ordered", "float", "sketch")


def _weakest(classes: Sequence[MergeClass]) -> MergeClass:
    """The promise that all of them keep."""
    return max(classes, key=_STRONGEST_FIRST.index)

"""The combinator -Tuple."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from olapdb.errors import NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates.signatures import ResolveAggregate, illegal_argument, state_type_of
from olapdb.functions.base import Aggregate, Groups, MergeClass
from olapdb.functions.kernels import columns
from olapdb.types import DataType, Tuple


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


def resolve_tuple(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
) -> Aggregate:
    spelt = f"{name}Tuple"
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {spelt} takes a Tuple.")
    tuples = [one for one in types if isinstance(one, Tuple) and one.elements]
    if len(tuples) < len(types):
        wrong = next(one for one in types if one not in tuples)
        raise illegal_argument(spelt, wrong, "a Tuple that is not empty")
    sizes = {len(one.elements) for one in tuples}
    if len(sizes) > 1:
        raise illegal_argument(spelt, types[-1], "tuples of one size")
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
        state_type_of(spelt, inners[0].parameters, types, states),
        tuple(inners),
        merge_class=_weakest([one.merge_class for one in inners]),
    )


_STRONGEST_FIRST: tuple[MergeClass, ...] = ("exact", "ordered", "float", "sketch")


def _weakest(classes: Sequence[MergeClass]) -> MergeClass:
    """The promise that all of them keep."""
    return max(classes, key=_STRONGEST_FIRST.index)

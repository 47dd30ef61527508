"""The combinator -Tuple."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.errors import NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates.signatures import ResolveAggregate, illegal_argument, state_type_of
from olapdb.functions.base import Aggregate, Groups, MergeClass
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import DataType, Tuple


@dataclass(frozen=True)
class TupleElements(Aggregate):
    """-Tuple: aggregate each element of the tuples by itself. State: Tuple of the elements' states."""

    inners: tuple[Aggregate, ...] = ()

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return for each group the tuple of its elements' states."""
        fields = [columns.struct_fields(argument) for argument in arguments]
        states = [
            inner.state([argument_fields[index] for argument_fields in fields], groups)
            for index, inner in enumerate(self.inners)
        ]
        return columns.structs_from(states, self.state_type.arrow)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Merge the states of each group element by element."""
        inner_states = zip(self.inners, columns.struct_fields(states), strict=True)
        merged = [inner.merge(inner_state, groups) for inner, inner_state in inner_states]
        return columns.structs_from(merged, self.state_type.arrow)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return for each group the tuple of its elements' results."""
        inner_states = zip(self.inners, columns.struct_fields(states), strict=True)
        results = [inner.finalize(inner_state) for inner, inner_state in inner_states]
        return columns.structs_from(results, self.result_type.arrow)


def resolve_tuple_combinator(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
) -> Aggregate:
    """Return -Tuple of the aggregate `name`; `resolve` resolves that one, for each element.

    Raises NumberOfArgumentsDoesntMatch and IllegalTypeOfArgument."""
    full_name = f"{name}Tuple"
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {full_name} takes a Tuple.")
    tuples = [
        data_type for data_type in types if isinstance(data_type, Tuple) and data_type.elements
    ]
    if len(tuples) < len(types):
        wrong = next(data_type for data_type in types if data_type not in tuples)
        raise illegal_argument(full_name, wrong, "a Tuple that is not empty")
    sizes = {len(tuple_type.elements) for tuple_type in tuples}
    if len(sizes) > 1:
        raise illegal_argument(full_name, types[-1], "tuples of one size")
    inners = [
        resolve(name, parameters, elements)
        for elements in zip(*(tuple_type.elements for tuple_type in tuples), strict=True)
    ]
    states = Tuple(tuple(inner.state_type.state for inner in inners))
    result = Tuple(tuple(inner.result_type for inner in inners), tuples[0].names)
    full_name = f"{inners[0].name}Tuple"
    return TupleElements(
        full_name,
        inners[0].parameters,
        types,
        result,
        state_type_of(full_name, inners[0].parameters, types, states),
        tuple(inners),
        merge_class=_weakest([inner.merge_class for inner in inners]),
    )


_STRONGEST_FIRST: tuple[MergeClass, ...] = ("exact", "ordered", "float", "sketch")


def _weakest(merge_classes: Sequence[MergeClass]) -> MergeClass:
    """Return the weakest of the merge classes, from strong to weak: exact, ordered, float, sketch."""
    return max(merge_classes, key=_STRONGEST_FIRST.index)

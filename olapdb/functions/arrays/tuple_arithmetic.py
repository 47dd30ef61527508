"""Arithmetic of tuples, element by element: tuplePlus, tupleMultiplyByNumber."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from olapdb.errors import NumberOfArgumentsDoesntMatch, TooFewArguments
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.composition import as_call, call, parts_of
from olapdb.functions.kernels import columns
from olapdb.functions.registry import resolve_scalar
from olapdb.types import Tuple, is_nullable, plain


def _elements(name: str, argument: Argument) -> Tuple:
    """Return the type of a tuple argument; raise IllegalTypeOfArgument for anything else."""
    data_type = plain(argument.type)
    if not isinstance(data_type, Tuple) or is_nullable(argument.type):
        raise scalar.illegal(name, argument.type, "a Tuple")
    return data_type


def _by_element(operation: str, *, number: bool = False) -> scalar.Resolver:
    """Return the resolver of `operation` applied elementwise to tuples. With `number` the second argument is one
    number for all elements; there may also be no second argument."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the operation for each element. Raises TooFewArguments, and an error for tuples of different
        lengths."""
        if len(arguments) > 2:
            return _folded(name, arguments)
        left = _elements(name, arguments[0])
        if len(arguments) < 2 and operation != "negate":
            raise TooFewArguments(f"Function {name} takes at least 2 arguments.")
        others = [Argument(t) for t in left.elements]
        rest: list[list[Argument]] = [[] for _ in others]
        if len(arguments) > 1 and number:
            rest = [[Argument(arguments[1].type)] for _ in others]
        elif len(arguments) > 1:
            right = _elements(name, arguments[1])
            if len(right.elements) != len(left.elements):
                raise scalar.illegal(name, right, f"a tuple of {len(left.elements)} elements")
            rest = [[Argument(t)] for t in right.elements]
        calls = [
            resolve_scalar(operation, [first, *more])
            for first, more in zip(others, rest, strict=True)
        ]
        result = Tuple(tuple(call.type for call in calls))

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Apply the call to each element, or pair of elements, and return the tuples."""
            constant = all(isinstance(value, pa.Scalar) for value in values)
            count = 1 if constant else rows
            arrays = [columns.as_array(value, count) for value in values]
            firsts = columns.struct_fields(arrays[0])
            seconds = columns.struct_fields(arrays[1]) if len(arrays) > 1 and not number else None
            fields = []
            for at, element_call in enumerate(calls):
                more = [] if len(arrays) < 2 else [arrays[1] if seconds is None else seconds[at]]
                value = element_call.kernel([firsts[at], *more], count, environment)
                fields.append(columns.as_array(value, count))
            whole = columns.structs_from(fields, result.arrow, rows=count)
            return whole[0] if constant else whole

        return ScalarCall(name, result, kernel)

    return resolve


def _folded(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve an operation of several tuples, folded from the left: of the first two, then of the result and the
    next."""
    whole, *rest = parts_of(arguments)
    for part in rest:
        whole = call(name, whole, part)
    return as_call(name, whole)


_OPERATIONS: dict[str, tuple[str, bool, int | tuple[int, int | None], tuple[str, ...]]] = {
    "tuplePlus": ("plus", False, (1, None), ("vectorSum", "VECTORSUM")),
    "tupleMinus": ("minus", False, (1, None), ("vectorDifference", "VECTORDIFFERENCE")),
    "tupleMultiply": ("multiply", False, (1, None), ()),
    "tupleDivide": ("divide", False, (1, None), ()),
    "tupleModulo": ("modulo", False, (1, None), ()),
    "tupleIntDiv": ("intDiv", False, (1, None), ()),
    "tupleIntDivOrZero": ("intDivOrZero", False, (1, None), ()),
    "tupleNegate": ("negate", False, 1, ()),
    "tupleMultiplyByNumber": ("multiply", True, 2, ()),
    "tupleDivideByNumber": ("divide", True, 2, ()),
    "tupleModuloByNumber": ("modulo", True, 2, ()),
    "tuplePositiveModuloByNumber": ("positiveModulo", True, 2, ()),
    "tupleIntDivByNumber": ("intDiv", True, 2, ()),
    "tupleIntDivOrZeroByNumber": ("intDivOrZero", True, 2, ()),
}
"""The operation, whether the second argument is a number, the arguments, and other names."""

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = tuple(
    replace(
        scalar.custom(name, _by_element(operation, number=number), count=count, aliases=aliases),
        few=TooFewArguments if count == (1, None) else NumberOfArgumentsDoesntMatch,
    )
    for name, (operation, number, count, aliases) in _OPERATIONS.items()
)

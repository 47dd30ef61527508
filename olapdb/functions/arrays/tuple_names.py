"""Functions of the names of a tuple's elements: tupleNames, tupleToNameValuePairs, flattenTuple."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.composition import Term, as_call, call, compose, literal, parts_of
from olapdb.functions.kernels import columns
from olapdb.functions.scalar import ScalarDefinition, custom, illegal
from olapdb.types import STRING, UINT8, Array, DataType, Tuple, plain


def _tuple_type(name: str, data_type: DataType) -> Tuple:
    """Return the type of a tuple argument; raise IllegalTypeOfArgument for anything else."""
    container = plain(data_type)
    if not isinstance(container, Tuple):
        raise illegal(name, data_type, "a Tuple")
    return container


def _names(whole: Term) -> Term:
    """Compose the constant array of the names of a tuple's elements; unnamed elements have their numbers, from 1, as
    names."""
    names = _tuple_type("tupleNames", whole.type).field_names
    return call("array", *(literal(name, STRING) for name in names))


def _pairs(whole: Term) -> Term:
    """Compose the array of (name, value) pairs of a tuple. Raises IllegalTypeOfArgument unless all elements have one
    type."""
    container = _tuple_type("tupleToNameValuePairs", whole.type)
    if len(set(container.elements)) != 1:
        raise IllegalTypeOfArgument(
            f"The elements of {container} are of several types.",
            hint="tupleToNameValuePairs takes a tuple of one type: CAST its elements.",
        )
    elements = [
        call("tuple", literal(name, STRING), call("tupleElement", whole, literal(at, UINT8)))
        for at, name in enumerate(container.field_names, 1)
    ]
    return call("array", *elements)


def _flat(part: Term, path: str) -> list[tuple[str, Term]]:
    """Return the (dotted name, part) of each leaf of a tuple, or of an array of tuples, below `path`. Raises
    IllegalTypeOfArgument."""
    inner = plain(part.type)
    while isinstance(inner, Array):
        inner = inner.inner
    if not isinstance(inner, Tuple):
        return [(path, part)]
    if not inner.names:
        raise IllegalTypeOfArgument(
            f"flattenTuple takes tuples whose elements have names, not {inner}.",
            hint="CAST it to Tuple(a …, b …).",
        )
    leaves = []
    for at, name in enumerate(inner.names, 1):
        element = call("tupleElement", part, literal(at, UINT8))
        leaves += _flat(element, f"{path}.{name}" if path else name)
    return leaves


def _flatten(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve flattenTuple(t): one tuple of the leaves of a tuple of tuples, under dotted names."""
    whole = parts_of(arguments)[0]
    _tuple_type(name, whole.type)
    leaves = _flat(whole, "")
    flat = call("tuple", *(part for _, part in leaves))
    named = Tuple(tuple(part.type for _, part in leaves), tuple(leaf for leaf, _ in leaves))
    inner = as_call(name, flat)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the tuples of all leaves, named by their dotted paths."""
        tuples = inner.kernel(values, rows, environment)
        constant = isinstance(tuples, pa.Scalar)
        fields = columns.struct_fields(columns.as_array(tuples, 1 if constant else rows))
        whole = columns.structs_from(fields, named.arrow, rows=rows)
        return whole[0] if constant else whole

    return ScalarCall(name, named, kernel, inner.volatility)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    compose("tupleNames", _names, count=1),
    compose("tupleToNameValuePairs", _pairs, count=1),
    custom("flattenTuple", _flatten, count=1),
)

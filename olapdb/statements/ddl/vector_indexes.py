"""INDEX … TYPE vector_similarity(method, distance, dimensions[, quantization, links, candidates]).

A search by distance reads every vector, and so finds the true neighbours; the index only says how long
a vector of the column is."""

from __future__ import annotations

from olapdb import types
from olapdb.errors import IllegalColumn, IncorrectData, IncorrectQuery
from olapdb.model.schema import VECTOR_SIMILARITY, SkipIndex
from olapdb.plan.expressions import Expression, columns_of
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.formatter.expressions import format_expressions

_DISTANCES = ("cosineDistance", "dotProduct", "L2Distance")
_QUANTIZATIONS = ("f64", "f32", "f16", "bf16", "i8", "b1")


def vector_index(definition: nodes.IndexDefinition, bound: Expression) -> SkipIndex:
    """Return the index of the definition, over the bound expression.

    Raises IncorrectQuery for another number or other types of arguments, IncorrectData for values that an
    argument cannot have, and IllegalColumn unless the vectors are arrays of floats."""
    data_type = types.plain(bound.type)
    if not isinstance(data_type, types.Array) or not isinstance(data_type.inner, types.Float):
        raise IllegalColumn(
            f"A vector similarity index cannot be over {bound.type}.",
            hint="Array(Float32), Array(Float64) and Array(BFloat16) can.",
            position=definition.position,
        )
    return SkipIndex(
        definition.name,
        to_sql(definition.expression),
        VECTOR_SIMILARITY,
        tuple(sorted(columns_of(bound))),
        granularity=definition.granularity,
        parameters=(_dimensions(definition),),
        definition=format_expressions(definition.type.arguments),
    )


def _dimensions(definition: nodes.IndexDefinition) -> int:
    """Check the arguments of the type, and return the length of a vector."""
    values = [a.value if isinstance(a, nodes.Literal) else None for a in definition.type.arguments]
    if len(values) not in (3, 6):
        raise IncorrectQuery(
            "TYPE vector_similarity takes three or six arguments.",
            hint="vector_similarity('hnsw', 'L2Distance', dimensions, 'bf16', 64, 512)",
            position=definition.position,
        )
    for name, expected, at in (
        ("the method", str, 0),
        ("the distance", str, 1),
        ("the number of dimensions", int, 2),
        ("the quantization", str, 3),
        ("the number of links", int, 4),
        ("the number of candidates", int, 5),
    ):
        if at < len(values) and type(values[at]) is not expected:
            kind = "a text" if expected is str else "a whole number"
            raise IncorrectQuery(
                f"TYPE vector_similarity: {name} is {kind}.", position=definition.position
            )
    for name, allowed, at in (
        ("the method", ("hnsw",), 0),
        ("the distance", _DISTANCES, 1),
        ("the quantization", _QUANTIZATIONS, 3),
    ):
        if at < len(values) and values[at] not in allowed:
            raise IncorrectData(
                f"TYPE vector_similarity: {name} is {' or '.join(allowed)}, not {values[at]}.",
                position=definition.position,
            )
    dimensions = values[2]
    if not isinstance(dimensions, int) or dimensions < 1:
        raise IncorrectData(
            "TYPE vector_similarity: a vector has at least one dimension.",
            position=definition.position,
        )
    return dimensions

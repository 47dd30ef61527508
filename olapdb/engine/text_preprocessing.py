"""The preprocessor of a text index: what is applied to a text before it is split into tokens.

    INDEX i s TYPE text(tokenizer = array, preprocessor = lower(s))        lower(…) of each s
    INDEX i lower(s) TYPE text(…, preprocessor = concat(lower(s), 'x'))    concat(…, 'x') of each lower(s)
    INDEX i a TYPE text(…, preprocessor = lower(a))                        of each element of an array a

The preprocessor reads what the index is over, written as there, and nothing else.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from olapdb.bind import NO_SNAPSHOT, BindScope, bind_expression_over
from olapdb.bind.syntax import rewrite
from olapdb.compute.evaluate import evaluate_array
from olapdb.functions.base import Environment
from olapdb.functions.kernels import columns
from olapdb.model.schema import SkipIndex
from olapdb.plan.expressions import Call, ColumnRef, Expression, transform
from olapdb.plan.nodes import Field
from olapdb.sql import nodes
from olapdb.sql.parser import parse_expression
from olapdb.types import STRING, Array, DataType, plain

INDEXED = "\0indexed"
"""The name of the column that stands for the index's expression."""
_ELEMENT = "\0element"


@lru_cache(maxsize=256)
def preprocessed(index: SkipIndex, data_type: DataType) -> Expression | None:
    """Return the preprocessor over the column INDEXED of the type of the index's expression; None
    for an index without one. Raises the binder's errors."""
    if not index.preprocessor:
        return None
    whole = parse_expression(index.expression)
    is_array = isinstance(plain(data_type), Array)
    name = nodes.Identifier((_ELEMENT if is_array else INDEXED,))

    def replaced(node: nodes.Node) -> nodes.Node | None:
        """Return the column in place of the index's expression; None for other nodes."""
        return name if node == whole else None

    expression = rewrite(parse_expression(index.preprocessor), replaced)
    if is_array:
        mapping = nodes.Lambda((_ELEMENT,), expression)
        expression = nodes.Function("arrayMap", (mapping, nodes.Identifier((INDEXED,))))
    scope = BindScope(snapshot=NO_SNAPSHOT, database="", environment=Environment())
    return bind_expression_over(expression, [Field(INDEXED, data_type)], scope)


def preprocessed_column(index: SkipIndex, column: Expression) -> Expression:
    """Return the preprocessor over an expression, the expression itself for an index without
    one."""
    expression = preprocessed(index, column.type)
    if expression is None:
        return column

    def replaced(part: Expression) -> Expression | None:
        """Return the expression in place of the column INDEXED; None for other parts."""
        return column if isinstance(part, ColumnRef) and part.name == INDEXED else None

    return transform(expression, replaced)


def preprocessed_text(index: SkipIndex, text: bytes) -> bytes:
    """Return the text as the index's preprocessor changes it, unchanged without one; b"" if the
    result is NULL."""
    expression = preprocessed(index, STRING)
    if expression is None:
        return text
    values = columns.text(pa.array([text], pa.binary()))
    batch = pa.RecordBatch.from_arrays([values], names=[INDEXED])
    result = evaluate_array(expression, batch, Environment())
    value = columns.binary(result)[0].as_py()
    return value if isinstance(value, bytes) else b""


def preprocessed_values(index: SkipIndex, values: pa.Array, data_type: DataType) -> pa.Array:
    """Return the values of the index's expression, of type `data_type`, as its preprocessor changes
    them; unchanged without one."""
    expression = preprocessed(index, data_type)
    if expression is None:
        return values
    batch = pa.RecordBatch.from_arrays([values], names=[INDEXED])
    return evaluate_array(expression, batch, Environment())


def is_bytewise(index: SkipIndex) -> bool:
    """Return whether the preprocessor changes each byte of a text by itself, so that a part of a
    text becomes a part of the result."""
    expression = preprocessed(index, STRING)
    match expression:
        case None | Call(name="lower" | "upper", arguments=(ColumnRef(),)):
            return True
    return False

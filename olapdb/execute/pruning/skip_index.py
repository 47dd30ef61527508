"""Pruning by skip indexes: the row groups of a part that need not be read.

An index judges conjuncts that read only its expression.  A set index evaluates them on its values, a
minmax index on its bounds, a bloom filter looks constants up.  Other conjuncts keep everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import single_chunk
from olapdb.compute.evaluate import evaluate_array
from olapdb.engine.text_preprocessing import INDEXED, preprocessed_column
from olapdb.errors import Error
from olapdb.execute.pruning.interval_analysis import Candidates, ValueInterval, keep_candidates
from olapdb.execute.pruning.map_conditions import asked_of_map
from olapdb.execute.pruning.text_filter import may_have_text
from olapdb.execute.pruning.text_index import PREPROCESSED, TextCondition
from olapdb.functions.base import Environment
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.hashing import hash_values
from olapdb.model.schema import SkipIndex
from olapdb.plan.expressions import (
    Call,
    ColumnRef,
    Constant,
    Expression,
    InValues,
    columns_of,
    is_pure,
    transform,
    walk,
)
from olapdb.plan.tuples import tuple_elements
from olapdb.records import dataclass
from olapdb.storage.skip_indexes import bloom_contains, element_of, indexed_type
from olapdb.storage.text_index import blocks_of
from olapdb.types.arrow_values import FALSE, to_numpy


def index_names(text: str) -> list[str]:
    """Return the names of a comma-separated list without quotes, leaving out empty ones."""
    names = [name.strip().strip("`\"'") for name in text.split(",")]
    return [name for name in names if name]


def conditions_on(
    index: SkipIndex, index_expression: Expression, conjuncts: Sequence[Expression]
) -> tuple[Expression, ...]:
    """Return the conditions of a query that an index can judge. Each is implied by a conjunct, is pure, and reads one
    column INDEXED in place of the index's expression, or PREPROCESSED in place of what its preprocessor makes of it; of
    a tuple a column for each element."""
    column = ColumnRef(index_expression.type, INDEXED)
    processed = preprocessed_column(index, index_expression)
    elements = tuple_elements(index_expression)
    columns = [ColumnRef(element.type, _element(n)) for n, element in enumerate(elements)]

    def replaced(part: Expression) -> Expression | None:
        """Return the column that stands for the index's expression, for what its preprocessor makes of it, or for an
        element of it; None for any other expression."""
        if part == processed and part != index_expression:
            return ColumnRef(processed.type, PREPROCESSED)
        if part in elements:
            return columns[elements.index(part)]
        return column if part == index_expression and not elements else None

    conditions = (
        transform(asked_of_map(conjunct, index_expression), replaced) for conjunct in conjuncts
    )
    known = {INDEXED, PREPROCESSED, *(column.name for column in columns)}
    return tuple(
        condition
        for condition in conditions
        if columns_of(condition)
        and columns_of(condition) <= known
        and is_pure(condition)
        and not any(hasattr(e, "plan") for e in walk(condition))
    )


def _element(number: int) -> str:
    """Return the name of the column that stands for an element of the index's tuple, from 0."""
    return f"{INDEXED}.{number}"


@dataclass(frozen=True)
class UsedIndex:
    """An index, the Arrow type of its expression, and the conjuncts that it judges."""

    index: SkipIndex
    arrow: pa.DataType
    conditions: tuple[Expression, ...]


def kept_blocks(used: UsedIndex, batch: pa.RecordBatch, environment: Environment) -> np.ndarray:
    """Return a mask of the index blocks that may have a row which all conditions keep; bool.

    The blocks of a text index are row groups."""
    keep = np.ones(blocks_of(batch), bool)
    for condition in used.conditions:
        match used.index.type:
            case "minmax":
                keep &= _by_bounds(batch, condition, environment)
            case "set":
                keep &= _by_values(batch, condition, environment)
            case "bloom_filter":
                keep &= _by_filter(batch, condition, _may_have_value)
            case "text":
                text = TextCondition(used.index, batch, environment)
                keep &= _by_filter(batch, condition, partial(_may_have_tokens, text))
            case "tokenbf_v1" | "ngrambf_v1":
                keep &= _by_filter(batch, condition, partial(may_have_text, used.index))
    return keep


def by_row_group(keep: np.ndarray, index: SkipIndex, groups: int) -> np.ndarray:
    """Return a mask of row groups from a mask of the index's blocks; bool, shape (groups,).

    Each block spans `granularity` row groups, in a text index one.
    """
    return np.repeat(keep, 1 if index.type == "text" else index.granularity)[:groups]


def _by_bounds(
    batch: pa.RecordBatch, condition: Expression, environment: Environment
) -> np.ndarray:
    """Return a mask of the blocks for which the condition can be true within their bounds."""
    names = sorted(columns_of(condition))
    columns = {name: _part_of(batch, name) for name in names}
    candidates = Candidates(
        batch.num_rows, {name: _interval(bounds) for name, bounds in columns.items()}
    )
    floats = {n: b.column("low").type for n, b in columns.items() if _is_float(b.column("low"))}
    if floats and (len(names) > 1 or _holds_for_nan(condition, *floats.popitem(), environment)):
        return np.ones(batch.num_rows, bool)  # NaN is within no bounds
    return keep_candidates(condition, candidates, environment)


def _part_of(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """Return the index of what the column of this name stands for: of the index expression, or of one element where
    that is a tuple."""
    number = name.removeprefix(INDEXED).removeprefix(".")
    return element_of(batch, int(number)) if number.isdigit() else batch


def _is_float(values: pa.Array) -> bool:
    """Return whether the values are floats, among which NaN may be."""
    return bool(pa.types.is_floating(values.type))


def _interval(batch: pa.RecordBatch) -> ValueInterval:
    """Return the bounds of each block as a minmax index has them."""
    low, high = batch.column("low"), batch.column("high")
    has_values = to_numpy(pc.is_valid(low))
    known = np.ones(batch.num_rows, bool)
    if _is_float(low):
        known &= has_values  # no bounds may mean NaN
    filler = pc.drop_null(low)
    if len(filler):
        low, high = pc.fill_null(low, filler[0]), pc.fill_null(high, filler[0])
    nulls = to_numpy(pc.greater(batch.column("nulls"), 0))
    return ValueInterval(low, high, known, has_values, nulls)


def _holds_for_nan(
    condition: Expression, name: str, arrow: pa.DataType, environment: Environment
) -> bool:
    """Return whether the condition is true for NaN in the column `name`, or raises."""
    row = pa.RecordBatch.from_arrays([pa.array([math.nan], arrow)], names=[name])
    try:
        answer = evaluate_array(condition, row, environment)
    except Error:  # the filter will raise it, if a row is read
        return True
    return bool(pc.fill_null(pc.cast(answer, pa.bool_()), FALSE)[0].as_py())


def _by_values(
    batch: pa.RecordBatch, condition: Expression, environment: Environment
) -> np.ndarray:
    """Return a mask of the blocks in whose value set the condition is true for any value.

    A block without a set stays; all blocks stay if the evaluation raises.
    """
    lists = batch.column("values")
    unknown: np.ndarray = to_numpy(pc.is_null(lists))
    values = pc.list_flatten(lists)
    if not len(values):
        return unknown
    rows = pa.RecordBatch.from_arrays([values], names=[INDEXED])
    if pa.types.is_struct(values.type):
        elements = values.flatten()
        names = [_element(number) for number in range(len(elements))]
        rows = pa.RecordBatch.from_arrays(elements, names=names)
    try:
        answers = evaluate_array(condition, rows, environment)
    except Error:  # the filter will raise it, if a row is read
        return np.ones(batch.num_rows, bool)
    true = to_numpy(pc.fill_null(pc.cast(answers, pa.bool_()), FALSE))
    owners = to_numpy(pc.list_parent_indices(lists))
    keep: np.ndarray = unknown | (np.bincount(owners[true], minlength=batch.num_rows) > 0)
    return keep


def _by_filter(
    batch: pa.RecordBatch,
    condition: Expression,
    judge: Callable[[pa.RecordBatch, Expression], np.ndarray],
) -> np.ndarray:
    """Return a mask of the blocks whose Bloom filters may contain what the condition asks for;
    `judge` gives the mask of a condition that is neither AND nor OR."""
    match condition:
        case Call(name="and" | "or" as name, arguments=arguments):
            each = np.array([_by_filter(batch, a, judge) for a in arguments])
            return np.asarray(each.all(axis=0) if name == "and" else each.any(axis=0))
    return judge(batch, condition)


def _may_have_tokens(
    text: TextCondition, batch: pa.RecordBatch, condition: Expression
) -> np.ndarray:
    """Return a mask of the row groups that may have a text for which the condition is true."""
    return text.granules(condition)


def _may_have_value(batch: pa.RecordBatch, condition: Expression) -> np.ndarray:
    """Return a mask of the blocks whose filter may contain a value that the condition names. All
    blocks stay for a condition that a filter of values cannot judge."""
    match condition:
        case Call(name="equals" | "has", arguments=(left, right)):
            column, constant = (left, right) if isinstance(left, ColumnRef) else (right, left)
            if isinstance(column, ColumnRef) and isinstance(constant, Constant):
                is_list = pa.types.is_list(column.type.arrow)
                if is_list == (condition.name == "has") and constant.value.is_valid:
                    return _looked_up(
                        _part_of(batch, column.name), column, columns.single(constant.value)
                    )
        case InValues(argument=ColumnRef() as column, values=values, negated=False):
            return _looked_up(_part_of(batch, column.name), column, single_chunk(values))
    return np.ones(batch.num_rows, bool)


def _looked_up(batch: pa.RecordBatch, column: ColumnRef, values: pa.Array) -> np.ndarray:
    """Return a mask of the blocks that may have one of the values.

    Values of another type than the column's have other hashes: for them all blocks stay."""
    arrow = column.type.arrow
    if pa.types.is_list(arrow):
        arrow = arrow.value_type
    values = pc.drop_null(values)
    if pa.types.is_integer(arrow) != pa.types.is_integer(values.type) or (
        not pa.types.is_integer(arrow) and values.type != arrow
    ):
        return np.ones(batch.num_rows, bool)
    if not len(values):
        return np.zeros(batch.num_rows, bool)
    return bloom_contains(batch, hash_values(values))


def usable(
    expressions: Sequence[tuple[SkipIndex, Expression]], conjuncts: Sequence[Expression]
) -> Mapping[str, UsedIndex]:
    """Return the indexes that can judge a conjunct, by name."""
    indexes = {
        index.name: UsedIndex(
            index,
            indexed_type(index, expression.type.arrow),
            conditions_on(index, expression, conjuncts),
        )
        for index, expression in expressions
    }
    return {name: used for name, used in indexes.items() if used.conditions}

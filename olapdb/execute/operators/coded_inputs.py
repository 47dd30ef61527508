"""Keys and arguments of a GROUP BY over columns in compact form.

An expression over one text column is computed once for each text of its dictionary. An aggregate that
repeats do not change takes each text of a group once. Sums take Decimals with 64 bits, and what is computed
of such.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import broadcast, single_chunk
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array, evaluate_predicate
from olapdb.compute.short_decimals import ShortProgram, program_of
from olapdb.config import tuning
from olapdb.execute.operators.coded_branches import BranchCodes, branch_column
from olapdb.execute.operators.coded_texts import TextValues, is_over_one_text
from olapdb.execute.operators.compact_columns import decoded, is_compact, plain_column
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.base import Groups
from olapdb.functions.kernels.decimal_width import has_short_form, is_short, lengthened
from olapdb.native import selection
from olapdb.native.library import library
from olapdb.plan.expressions import (
    AggregateCall,
    Call,
    ColumnRef,
    Expression,
    columns_of,
    is_pure,
    transform,
    walk,
)
from olapdb.plan.nodes import Aggregate, Scan
from olapdb.records import dataclass
from olapdb.storage.shared_codes import has_number_codes
from olapdb.types import String, plain
from olapdb.types.arrow_values import from_numpy


def shared_texts(node: Aggregate) -> frozenset[str]:
    """Return the unique names of the child's text columns that the aggregation can take as codes of a
    dictionary that batches share: its rows need no text of their own."""
    fields = node.child.schema
    texts = frozenset(field.name for field in fields if isinstance(plain(field.type), String))
    served: set[str] = set()
    for _, key in node.keys:
        served |= columns_of(key) & texts if isinstance(key, ColumnRef) else _served(key, texts)
        branch = branch_column(key, texts)
        if branch is not None:
            served.add(branch)
    for _, call in node.aggregates:
        for argument in call.arguments:
            if isinstance(argument, ColumnRef) and call.aggregate.ignores_repeats:
                served |= columns_of(argument) & texts
            else:
                served |= _served(argument, texts)
    return frozenset(served)


def coded_numbers(node: Aggregate) -> frozenset[str]:
    """Return the unique names of the child's wide integers that the aggregation takes as codes of a dictionary: as
    keys, and to tell distinct values from each other. Nothing else may read them."""
    fields = {field.name for field in node.child.schema if has_number_codes(field.type)}
    if not fields or library() is None:
        return frozenset()
    taken, others = set[str](), set[str]()
    if isinstance(node.child, Scan):
        for condition in (node.child.prewhere, node.child.predicate):
            others |= columns_of(condition) if condition is not None else set()
    for _, key in node.keys:
        (taken if isinstance(key, ColumnRef) else others).update(columns_of(key))
    for _, call in node.aggregates:
        for argument in call.arguments:
            takes_codes = isinstance(argument, ColumnRef) and call.aggregate.keeps_distinct
            (taken if takes_codes else others).update(columns_of(argument))
    return frozenset(taken & fields - others)


def short_decimals(node: Aggregate) -> frozenset[str]:
    """Return the unique names of the child's Decimals that the aggregation takes with 64 bits, at least where no
    value overflows: nothing reads them with 128."""
    fields = {field.name for field in node.child.schema if has_short_form(field.type.arrow)}
    if not fields or library() is None:
        return frozenset()
    taken, others = set[str](), set[str]()
    for _, key in node.keys:
        others |= columns_of(key)
    for _, call in node.aggregates:
        for argument in call.arguments:
            takes_short = call.aggregate.takes_short_decimals and (
                isinstance(argument, ColumnRef) or program_of(argument) is not None
            )
            (taken if takes_short else others).update(columns_of(argument))
    return frozenset(taken & fields - others)


def _served(expression: Expression, texts: frozenset[str]) -> frozenset[str]:
    """Return the name of the text column that the expression reads, as a set of one; the empty set if it reads anything
    else than one of `texts`."""
    return columns_of(expression) if is_over_one_text(expression, texts) else frozenset()


class CodedInputs:
    """The keys and arguments of an aggregation over batches whose texts may be dictionaries. For many
    threads."""

    def __init__(self, node: Aggregate, context: ExecutionContext) -> None:
        self._context = context
        self._values = TextValues(context)
        self._branches = BranchCodes(context)
        self._node = node
        self._last = _LastBatch()

    @cached_property
    def _over_one(self) -> frozenset[Expression]:
        """The expressions over one text column; only batches with dictionaries ask for them."""
        expressions = [key for _, key in self._node.keys]
        expressions += [a for _, call in self._node.aggregates for a in call.arguments]
        texts = frozenset().union(*map(columns_of, expressions))
        return frozenset(e for e in expressions if is_over_one_text(e, texts))

    def key(self, expression: Expression, batch: pa.RecordBatch) -> pa.Array:
        """Return the values of a key; texts may be a dictionary."""
        if isinstance(expression, ColumnRef):
            values = batch.column(expression.name)
            if isinstance(values, pa.DictionaryArray):
                return values
        values = self._of_texts(expression, batch)
        if values is None and _has_dictionaries(batch):
            values = self._branches.of(expression, batch)
        return lengthened(self._evaluated(expression, batch)) if values is None else values

    def arguments(
        self, call: AggregateCall, batch: pa.RecordBatch, *, masks: bool = False
    ) -> list[pa.Array]:
        """Return the arguments of a call; one is a dictionary only if `state_of` takes it. With `masks` the condition of
        an -If is a mask: nothing of a row's width is made for it."""
        if len(call.arguments) == 1 and call.aggregate.ignores_repeats:
            (argument,) = call.arguments
            if isinstance(argument, ColumnRef):
                return [single_chunk(batch.column(argument.name))]
        values, condition = [], None
        expressions: Sequence[Expression] = call.arguments
        if masks and call.aggregate.takes_mask:
            *expressions, last = call.arguments
            condition = self._mask(last, batch)
        for argument in expressions:
            coded = self._of_texts(argument, batch)
            if coded is None:
                coded = self._evaluated(argument, batch)
                if not call.aggregate.takes_short_decimals:
                    coded = lengthened(coded)
            values.append(coded)
        if len(values) == 1 and call.aggregate.ignores_repeats:
            return values
        columns = [
            v.dictionary_decode() if isinstance(v, pa.DictionaryArray) else v for v in values
        ]
        return columns if condition is None else [*columns, condition]

    def _mask(self, condition: Expression, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return the rows of a batch that meet a condition, as a mask that several calls share."""
        source, known = self._inputs[id(condition)], self._last.values(batch)
        name = f"#mask{id(source)}"
        if name not in known:
            mask = self._mask_of_text(condition, batch)
            if mask is None:
                mask = evaluate_predicate(
                    source.expression,
                    self._read(source, batch),
                    self._context.environment,
                    self._context.subqueries,
                )
            known[name] = mask
        return known[name]

    def _mask_of_text(self, condition: Expression, batch: pa.RecordBatch) -> pa.BooleanArray | None:
        """Return the mask of a condition over a column that is a dictionary, judged once for each text; None for
        others."""
        if not _has_dictionaries(batch) or condition not in self._over_one:
            return None
        (name,) = columns_of(condition)
        column = batch.column(name)
        if not isinstance(column, pa.DictionaryArray):
            return None
        flags = self._values.flags(condition, column)
        if flags is None:
            return None
        words = selection.kept_rows(None, batch.num_rows)
        selection.keep_flagged(column.indices, flags, words)
        return selection.as_mask(words, batch.num_rows)

    def _of_texts(self, expression: Expression, batch: pa.RecordBatch) -> pa.Array | None:
        """Return the values of an expression over a column that is a dictionary; None for others."""
        if not _has_dictionaries(batch) or expression not in self._over_one:
            return None
        (name,) = columns_of(expression)
        column = batch.column(name)
        if not isinstance(column, pa.DictionaryArray):
            return None
        return self._values.of(expression, column)

    @cached_property
    def _inputs(self) -> dict[int, _Input]:
        """Return, by the `id` of each key and argument expression, how it is computed. A call that several of them
        contain, as in `sum(a * b), sum(a * b * c)`, is computed once for each batch. All are computed for all rows
        anyway, so that sharing makes none fail."""
        arguments = [a for _, call in self._node.aggregates for a in call.arguments]
        times = Counter(e for a in arguments for e in set(walk(a)))
        repeated = [e for e in dict.fromkeys(arguments) if times[e] > 1 and _may_be_shared(e)]
        names = {e: ColumnRef(e.type, f"#shared{at}") for at, e in enumerate(repeated)}
        made: dict[Expression, _Input] = {}

        def make(expression: Expression) -> _Input:
            """Return the input of an expression, the same object for equal expressions, with shared arguments within it
            as columns."""
            if expression not in made:
                computed = transform(
                    expression, lambda inner: None if inner == expression else names.get(inner)
                )
                read = columns_of(computed)
                within = [make(e) for e, name in names.items() if name.name in read]
                name = names[expression].name if expression in names else ""
                made[expression] = _Input(computed, name, tuple(within))
            return made[expression]

        keys = [key for _, key in self._node.keys]
        return {id(expression): make(expression) for expression in [*keys, *arguments]}

    def _evaluated(self, expression: Expression, batch: pa.RecordBatch) -> pa.Array:
        """Return the values of the expression over the batch: no dictionary, but maybe Decimals of 64 bits."""
        if isinstance(expression, ColumnRef):  # looking for what it shares with others costs more
            column = batch.column(expression.name)
            if is_short(column.type):
                return column
            return broadcast(plain_column(column), batch.num_rows, expression.type)
        return self._values_of(self._inputs[id(expression)], batch)

    def _values_of(self, source: _Input, batch: pa.RecordBatch) -> pa.Array:
        """Return the values of an input, computed once for a batch if they are shared."""
        if not source.name:
            return self._computed(source, batch)
        known = self._last.values(batch)
        if source.name not in known:
            known[source.name] = self._computed(source, batch)
        return known[source.name]

    def _computed(self, source: _Input, batch: pa.RecordBatch) -> pa.Array:
        """Return the values of an input over the batch."""
        expression = source.expression
        program = source.program if batch.num_rows >= tuning.RANGE_ROWS_MIN else None
        values = None if program is None else program.run(self._with_shared(source, batch))
        if values is not None:
            return values
        return evaluate_array(
            expression,
            self._read(source, batch),
            self._context.environment,
            self._context.subqueries,
        )

    def _with_shared(self, source: _Input, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with the shared arguments that are within an input."""
        if not source.within:
            return batch
        columns = [*batch.columns, *(self._values_of(part, batch) for part in source.within)]
        names = [*batch.schema.names, *(part.name for part in source.within)]
        return pa.RecordBatch.from_arrays(columns, names)

    def _read(self, source: _Input, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that an input is computed from, those with a compact form in their plain one."""
        batch = self._with_shared(source, batch)
        read = columns_of(source.expression) if is_compact(batch) else None
        if not read:
            return batch
        return decoded(batch.select([n for n in batch.schema.names if n in read]))


@dataclass(frozen=True)
class _Input:
    """A key or an argument: the expression with names of shared arguments in place of those `within` it, and the
    name under which its own values are kept for a batch ("": they are not)."""

    expression: Expression
    name: str
    within: tuple[_Input, ...]

    @cached_property
    def program(self) -> ShortProgram | None:
        """The expression compiled for Decimals of 64 bits; None if it cannot be."""
        return program_of(self.expression)


class _LastBatch(threading.local):
    """The values that a thread has computed over the batch that it works on."""

    def __init__(self) -> None:
        self._batch: pa.RecordBatch | None = None
        self._values: dict[str, pa.Array] = {}

    def values(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the values for the batch, of which the caller adds more; none for another batch."""
        if self._batch is not batch:
            self._batch, self._values = batch, {}
        return self._values


def _may_be_shared(expression: Expression) -> bool:
    """Return whether an expression is a pure call: its value is worth keeping, and the same wherever the expression
    stands."""
    return isinstance(expression, Call) and is_pure(expression)


def _has_dictionaries(batch: pa.RecordBatch) -> bool:
    """Return whether a column of the batch is a dictionary."""
    return pa.DictionaryType in map(type, batch.schema.types)


def state_of(call: AggregateCall, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
    """Return the states of the groups. Of a dictionary, each group's texts count once."""
    (column,) = arguments if len(arguments) == 1 else (None,)
    if isinstance(column, pa.DictionaryArray) and not call.aggregate.takes_dictionaries:
        offsets, codes = group_kernels.distinct_codes(column, groups)
        arguments = [column.dictionary.take(from_numpy(codes))]
        groups = Groups(np.repeat(np.arange(groups.count), np.diff(offsets)), groups.count)
    return single_chunk(call.aggregate.state(arguments, groups))

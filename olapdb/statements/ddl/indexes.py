"""Skip indexes: the INDEX clauses of CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from olapdb import types
from olapdb.bind import bind_expression
from olapdb.dml.mutation_steps import RewriteStep
from olapdb.errors import (
    BadArguments,
    Error,
    IllegalColumn,
    IllegalIndex,
    IncorrectQuery,
    NotSupportedError,
    in_clause,
)
from olapdb.model.schema import VECTOR_SIMILARITY, IndexType, SkipIndex, Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.expressions import Expression, columns_of, is_pure
from olapdb.plan.tuples import tuple_elements
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.stored_expressions import refuse_outside_values
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.column_checks import refuse_aliases_of_settings
from olapdb.statements.ddl.positions import newest_moved
from olapdb.statements.ddl.text_indexes import (
    check_indexed_text,
    refuse_second_text_index,
    text_index,
)
from olapdb.statements.ddl.vector_indexes import vector_index
from olapdb.statements.dml.partitions import find_partition
from olapdb.storage.skip_indexes import DEFAULT_FALSE_POSITIVES

_TYPES: dict[str, IndexType] = {
    "minmax": "minmax",
    "set": "set",
    "bloom_filter": "bloom_filter",
    "bloomfilter": "bloom_filter",
    "tokenbf_v1": "tokenbf_v1",
    "ngrambf_v1": "ngrambf_v1",
    "text": "text",
    "vector_similarity": VECTOR_SIMILARITY,
}
_PARAMETERS = {
    "tokenbf_v1": ("the bytes of a filter", "its hashes", "a seed"),
    "ngrambf_v1": ("the length of an n-gram", "the bytes of a filter", "its hashes", "a seed"),
}
_FILTER_BYTES_MAX = 1 << 24
_HASHED = (
    types.Integer,
    types.Enum,
    types.String,
    types.FixedString,
    types.Date,
    types.Date32,
    types.DateTime,
    types.DateTime64,
    types.UUID,
    types.IPv4,
    types.IPv6,
    types.Boolean,
)


_TYPES_HINT = (
    "There are minmax, set(n), bloom_filter, tokenbf_v1, ngrambf_v1, text(tokenizer = …) and"
    " vector_similarity."
)


def _no_such_type(definition: nodes.IndexDefinition) -> Error:
    """Return (do not raise) the error for an index of a TYPE that olapdb lacks."""
    name = definition.type.name
    if name.lower() == "sparse_grams":
        text = f"INDEX … TYPE {name} is not supported."
        return NotSupportedError(text, hint=_TYPES_HINT, position=definition.position)
    if name.lower() == "hypothesis":
        text = "INDEX … TYPE hypothesis is no longer there, in ClickHouse as here."
        return IllegalIndex(text, hint=_TYPES_HINT, position=definition.position)
    return IncorrectQuery(
        f"Unknown index type {name}.", hint=_TYPES_HINT, position=definition.position
    )


def skip_index(
    definition: nodes.IndexDefinition, table: Table, context: StatementContext, snapshot: Snapshot
) -> SkipIndex:
    """Return the index that the definition describes; the table stays as it is.

    Raises IncorrectQuery for an unknown TYPE, NotSupportedError or IllegalIndex for one of
    ClickHouse, BadArguments for wrong arguments or GRANULARITY, and IncorrectQuery, IllegalColumn
    or BadArguments for an expression that it cannot index."""
    kind = _TYPES.get(definition.type.name.lower())
    if kind is None:
        raise _no_such_type(definition)
    refuse_outside_values(definition.expression, "an index")
    refuse_aliases_of_settings(table, to_sql(definition.expression), "an index")
    bound = bind_expression(definition.expression, table, context.scope(snapshot))
    if kind == "text":
        check_indexed_text(definition, bound.type)
    _check_expression(definition, bound, table)
    if kind == "text":
        return text_index(definition, bound)
    if kind == VECTOR_SIMILARITY:
        return vector_index(definition, bound)
    if kind == "bloom_filter":
        for element in tuple_elements(bound) or (bound,):
            _check_hashed(definition, element.type)
    if kind in _PARAMETERS:
        _check_text(definition, bound.type)
    if definition.granularity < 1:
        raise BadArguments("GRANULARITY is at least 1.", position=definition.position)
    return SkipIndex(
        definition.name,
        to_sql(definition.expression),
        kind,
        tuple(sorted(columns_of(bound))),
        0.0 if kind in _PARAMETERS else _type_argument(definition, kind),
        definition.granularity,
        _parameters(definition, kind) if kind in _PARAMETERS else (),
    )


def add_indexes(
    definitions: tuple[nodes.IndexDefinition, ...],
    table: Table,
    context: StatementContext,
    snapshot: Snapshot,
) -> Table:
    """Return the table with these indexes too. Raise IllegalIndex if a name is taken."""
    for definition in definitions:
        with in_clause(f"INDEX {definition.name}", has_positions=True):
            index = skip_index(definition, table, context, snapshot)
        refuse_taken_name(definition, [existing.name for existing in table.indexes])
        refuse_second_text_index(index, table, definition)
        table = replace(table, indexes=(*table.indexes, index))
    return table


def refuse_taken_name(definition: nodes.IndexDefinition, names: Collection[str]) -> None:
    """Raise IllegalIndex if an index in `names` has the name of the definition."""
    if definition.name in names:
        raise IllegalIndex(
            f"The index {definition.name} is there already.",
            hint="Choose another name.",
            position=definition.position,
        )


def alter_index(
    action: nodes.IndexAction, table: Table, context: StatementContext, snapshot: Snapshot
) -> Table:
    """Return the table after ADD or DROP INDEX, which affect parts written from now on. MATERIALIZE
    INDEX and OPTIMIZE … FINAL rewrite older parts. Raises IllegalColumn and BadArguments."""
    exists = any(index.name == action.name for index in table.indexes)
    match action.action:
        case "ADD":
            assert action.index is not None
            if exists and action.if_exists:
                return table
            if exists:
                raise IllegalColumn(
                    f"The index {action.name} is there already.",
                    hint="Choose another name, or say ADD INDEX IF NOT EXISTS.",
                    position=action.position,
                )
            return _move_newest(add_indexes((action.index,), table, context, snapshot), action)
        case "DROP":
            if not exists and not action.if_exists:
                raise BadArguments(
                    f"{table.database}.{table.name} has no index {action.name}.",
                    hint="system.data_skipping_indices lists those there are.",
                    position=action.position,
                )
            remaining = tuple(index for index in table.indexes if index.name != action.name)
            return replace(table, indexes=remaining)
        case "MATERIALIZE" | "CLEAR":
            return table  # `rewrite_steps` rewrites the parts


def rewrite_steps(
    action: nodes.IndexAction, table: Table, context: StatementContext, snapshot: Snapshot
) -> Sequence[RewriteStep]:
    """Return the steps of MATERIALIZE and CLEAR INDEX, which rewrite all parts. CLEAR omits the
    index until the next merge. Raise BadArguments for an unknown index."""
    if action.action not in ("MATERIALIZE", "CLEAR"):
        return ()
    partition = None
    if action.partition is not None:
        partition = find_partition(action.partition, table, context, snapshot)
    if all(index.name != action.name for index in table.indexes):
        if action.if_exists:
            return ()
        raise BadArguments(
            f"{table.database}.{table.name} has no index {action.name} to {action.action.lower()}.",
            hint="system.data_skipping_indices lists those there are.",
            position=action.position,
        )
    return (RewriteStep(partition, action.name if action.action == "CLEAR" else ""),)


def _move_newest(table: Table, action: nodes.IndexAction) -> Table:
    """Return the table with its newest index moved FIRST or AFTER another one.

    Raises BadArguments."""

    def missing(which: str, hint: str) -> BadArguments:
        """Return the error for an index that the table lacks."""
        message = f"{table.database}.{table.name} has no index {which}."
        return BadArguments(message, hint=hint, position=action.position)

    return replace(table, indexes=newest_moved(table.indexes, action, missing))


def _check_expression(definition: nodes.IndexDefinition, bound: Expression, table: Table) -> None:
    """Raise an error for an expression that names no column, is not pure, reads a column that is
    not stored, or has an unsuitable type."""
    used_columns = columns_of(bound)
    if not used_columns:
        raise IncorrectQuery(
            f"The expression of the index {definition.name} names no column.",
            position=definition.position,
        )
    if not is_pure(bound):
        raise BadArguments(
            f"The expression of the index {definition.name} gives another value each time.",
            position=definition.position,
        )
    unstored = [
        column.name for column in table.columns if column.name in used_columns and not column.stored
    ]
    if unstored:
        raise IllegalColumn(
            f"The index {definition.name} is over {unstored[0]}, which no part stores.",
            hint="Write out what the ALIAS stands for.",
            position=definition.position,
        )
    for element in tuple_elements(bound) or (bound,):
        _check_type(definition, element.type)


def _check_type(definition: nodes.IndexDefinition, data_type: types.DataType) -> None:
    """Raise IllegalColumn if the index cannot be over values of this type."""
    plain = types.plain(data_type)
    if isinstance(plain, types.AggregateFunction | types.Map | types.Tuple):
        raise IllegalColumn(
            f"An index cannot be over {data_type}.",
            hint="Declare an index for each of the expressions, or over an element of it.",
            position=definition.position,
        )
    if types.has_types_by_row(data_type):
        error = BadArguments if definition.type.name.lower() in ("minmax", "set") else IllegalColumn
        raise error(
            f"An index cannot be over {data_type}.",
            hint="Declare it over one type of it, such as v.String.",
            position=definition.position,
        )
    kind = _TYPES[definition.type.name.lower()]
    if isinstance(plain, types.Array) and kind in ("minmax", "set"):
        raise IllegalColumn(
            f"An index {definition.type.name} cannot be over {data_type}.",
            hint="bloom_filter can; it serves has().",
            position=definition.position,
        )


def _check_hashed(definition: nodes.IndexDefinition, data_type: types.DataType) -> None:
    """Raise IllegalColumn for a type that a bloom_filter cannot hash."""
    inner = types.plain(data_type)
    if isinstance(inner, types.Array):
        inner = types.plain(inner.inner)
    if not isinstance(inner, _HASHED):
        raise IllegalColumn(
            f"An index bloom_filter cannot be over {data_type}.",
            hint="Integers, texts, dates, times and UUIDs can, and arrays of them.",
            position=definition.position,
        )


def _check_text(definition: nodes.IndexDefinition, data_type: types.DataType) -> None:
    """Raise IncorrectQuery unless the type is a text, or an array of texts."""
    inner = types.plain(data_type)
    if isinstance(inner, types.Array):
        inner = types.plain(inner.inner)
    if not isinstance(inner, types.String | types.FixedString):
        raise IncorrectQuery(
            f"An index {definition.type.name} cannot be over {data_type}.",
            hint="String and FixedString can, and arrays of them.",
            position=definition.position,
        )


def _parameters(definition: nodes.IndexDefinition, kind: IndexType) -> tuple[int, ...]:
    """Return the whole numbers of TYPE tokenbf_v1(…) or ngrambf_v1(…). Raise BadArguments for another number or
    kind of arguments, and for numbers out of range: hashes, lengths, bytes of the filter, the seed."""
    names = _PARAMETERS[kind]
    values = [
        argument.value
        for argument in definition.type.arguments
        if isinstance(argument, nodes.Literal)
    ]
    numbers = tuple(v for v in values if isinstance(v, int) and not isinstance(v, bool))
    if len(numbers) != len(names) or len(definition.type.arguments) != len(names):
        raise BadArguments(
            f"TYPE {kind} takes whole numbers: {', '.join(names)}.", position=definition.position
        )
    if numbers[-2] > 255:
        raise BadArguments(
            f"TYPE {kind}: at most 255 hashes, not {numbers[-2]}.", position=definition.position
        )
    if min(numbers[:-1]) < 1 or numbers[-1] < 0 or numbers[-3] > _FILTER_BYTES_MAX:
        raise BadArguments(
            f"TYPE {kind}: lengths and counts are at least 1, a filter has at most"
            f" {_FILTER_BYTES_MAX} bytes, and a seed is not negative.",
            position=definition.position,
        )
    return numbers


def _type_argument(definition: nodes.IndexDefinition, kind: IndexType) -> float:
    """Validate and return the number in TYPE set(n) or bloom_filter(p); 0 for minmax.

    set requires n; bloom_filter without p has a default. Raises IncorrectQuery, or BadArguments if
    p is not a number between 0 and 1.
    """
    values = [
        argument.value
        for argument in definition.type.arguments
        if isinstance(argument, nodes.Literal)
    ]
    arguments = definition.type.arguments
    if len(values) != len(arguments) or len(arguments) > (kind != "minmax"):
        raise IncorrectQuery(
            f"TYPE {definition.type.name} takes {'no argument' if kind == 'minmax' else 'one number'}.",
            position=definition.position,
        )
    if kind == "minmax":
        return 0.0
    if kind == "set":
        if len(values) != 1 or not isinstance(values[0], int) or values[0] < 0:
            raise IncorrectQuery(
                "set(n) takes the most values that a block may have, 0 for any number.",
                position=definition.position,
            )
        return float(values[0])
    rate = values[0] if values else DEFAULT_FALSE_POSITIVES
    if not isinstance(rate, int | float) or not 0 < rate < 1:
        raise BadArguments(
            "bloom_filter(p) takes a rate of false positives between 0 and 1.",
            position=definition.position,
        )
    return float(rate)

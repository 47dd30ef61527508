"""The keys of INSERT … REPLACE USING: those of the new rows, and the rows of parts that have one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.bind import BindScope, bind_expression
from olapdb.compute.batches import single_chunk
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.group_codes import Factorised, factorise
from olapdb.dml.find_rows import Parameters
from olapdb.errors import BadArguments
from olapdb.ingest.read_parts import read_rows
from olapdb.ingest.trigger import TriggerContext
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.plan.expressions import (
    ColumnRef,
    DictionaryCall,
    InSubquery,
    ScalarSubquery,
    columns_of,
    walk,
)
from olapdb.sql import nodes
from olapdb.types import Date, Date32, Integer, String, plain
from olapdb.types.arrow_values import from_numpy


class ReplacementKeys:
    """The USING clause over a table. `note` takes the new rows, then `matches` finds the old."""

    def __init__(
        self,
        table: Table,
        replacing: nodes.Replacing,
        around: TriggerContext,
        parameters: Parameters,
    ) -> None:
        self._table, self._replacing, self._around = table, replacing, around
        scope = BindScope(
            snapshot=around.snapshot,
            database=around.environment.database,
            settings=around.settings,  # type: ignore[arg-type]
            environment=around.environment,
            parameters=parameters or (),
        )
        self._expressions = [bind_expression(key, table, scope) for key in replacing.keys]
        if any(
            isinstance(part, InSubquery | ScalarSubquery | DictionaryCall)
            for key in self._expressions
            for part in walk(key)
        ):
            raise BadArguments(
                "REPLACE USING takes columns and expressions of them, no subquery.",
                hint="Put the subquery into REPLACE … WHERE.",
            )
        self._columns = frozenset[str]().union(*map(columns_of, self._expressions))
        stored = {column.name for column in table.stored_columns}
        for name in sorted(self._columns - stored):
            raise BadArguments(
                f"REPLACE USING: {table.database}.{table.name} does not store the column {name}.",
                hint="Name stored columns, or expressions of them.",
            )
        self._noted: list[pa.Table] = []

    def note(self, block: pa.Table) -> None:
        """Add the keys of new rows, each key once a block."""
        if not self._expressions:
            return
        keys = self._evaluate(block)
        self._noted.append(keys.take(from_numpy(_codes_of(keys).first)))

    @property
    def matches_none(self) -> bool:
        """Return whether no row can match: there are keys, and no new row has one."""
        return bool(self._expressions) and not self._noted

    def condition(self) -> nodes.Expression | None:
        """Return the clause's WHERE joined by AND with bounds of the noted keys, so that parts
        without such keys are not read. Return None if there is neither."""
        conditions = [] if self._replacing.where is None else [self._replacing.where]
        for at, expression in enumerate(self._expressions):
            if isinstance(expression, ColumnRef):
                conditions += self._bounds(at, expression)
        if len(conditions) < 2:
            return conditions[0] if conditions else None
        return nodes.Function("and", tuple(conditions))

    def _bounds(self, at: int, column: ColumnRef) -> list[nodes.Expression]:
        """Return two conditions: the key column `at` is at least the smallest noted value and at
        most the largest. Return [] if a noted value is NULL or the type has no literal."""
        values = pa.concat_tables(self._noted).column(at)
        if not isinstance(plain(column.type), _BOUNDED) or values.null_count:
            return []
        smallest, largest = (pc.min_max(values)[end].as_py() for end in ("min", "max"))
        name = nodes.Identifier((column.name,))
        return [
            nodes.Function("greaterOrEquals", (name, _literal(smallest))),
            nodes.Function("lessOrEquals", (name, _literal(largest))),
        ]

    def matches(self, part: Part) -> np.ndarray:
        """Return a mask of the part's rows that have a noted key; all of them without keys."""
        if not self._expressions:
            return np.ones(part.rows, dtype=bool)
        names = sorted(self._columns)
        keys = self._evaluate(read_rows(self._around, self._table, part, names))
        noted = pa.concat_tables(self._noted)
        both = _codes_of(pa.concat_tables([noted, keys]))
        is_noted = np.zeros(both.count, dtype=bool)
        is_noted[both.codes[: noted.num_rows]] = True
        matching: np.ndarray = is_noted[both.codes[noted.num_rows :]]
        return matching

    def _evaluate(self, rows: pa.Table) -> pa.Table:
        """Return the keys of the rows, one column an expression."""
        names = [name for name in rows.column_names if name in self._columns]
        arrays = [single_chunk(rows.column(name)) for name in names] or [pa.nulls(rows.num_rows)]
        batch = pa.RecordBatch.from_arrays(arrays, names=names or ["-"])
        return pa.table(
            {
                str(at): evaluate_array(key, batch, self._around.environment).cast(key.type.arrow)
                for at, key in enumerate(self._expressions)
            }
        )


_BOUNDED = (Integer, String, Date, Date32)
"""Types whose values are literals of the same order."""


def _codes_of(keys: pa.Table) -> Factorised:
    """Return the groups of equal keys; NULL equals NULL."""
    return factorise([single_chunk(column) for column in keys.columns], keys.num_rows)


def _literal(value: object) -> nodes.Literal:
    """Return a value as a literal, a date as its text."""
    if isinstance(value, int | str):
        return nodes.Literal(value)
    return nodes.Literal(str(value))

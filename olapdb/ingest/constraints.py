"""CHECK constraints, evaluated on rows before they are written."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.evaluate import evaluate_predicate
from olapdb.engine.column_defaults import CheckConstraint
from olapdb.errors import ViolatedConstraint
from olapdb.functions import readable
from olapdb.functions.base import Environment
from olapdb.model.schema import Table
from olapdb.plan.expressions import columns_of


def check_constraints(
    constraints: tuple[CheckConstraint, ...],
    table: Table,
    columns: Mapping[str, pa.Array],
    rows: int,
    environment: Environment,
    first_row: int,
) -> None:
    """Raise ViolatedConstraint for the first row that violates a constraint.

    The error shows the row's values in the columns that the condition names.  `first_row` is the
    number of the block's first row among all rows of the INSERT, from 0."""
    environment = environment.of_warehouse
    for constraint in constraints:
        names = sorted(columns_of(constraint.condition))
        arrays = [columns[name] for name in names] or [pa.nulls(rows)]
        batch = pa.RecordBatch.from_arrays(arrays, names=names or ["-"])
        passes = pc.fill_null(evaluate_predicate(constraint.condition, batch, environment), False)
        if passes.true_count == rows:
            continue
        row = int(pc.index(passes, False).as_py())
        raise _violated(constraint, table, batch.slice(row, 1), names, first_row + row)


def _violated(
    constraint: CheckConstraint, table: Table, row: pa.RecordBatch, names: list[str], number: int
) -> ViolatedConstraint:
    """Return the error for the row that violates the constraint, with its values of `names`.

    `row` is a batch of that one row; `number` is its position in the INSERT, from 0.
    """
    values = []
    for name in names:
        column = table.column(name)
        assert column is not None
        values.append(f"{name} = {readable(row.column(name), column.type)[0]}")
    return ViolatedConstraint(
        f"Constraint {constraint.name} of {table.database}.{table.name} is violated at row"
        f" {number + 1}. Expression: ({constraint.text}). Column values: {', '.join(values)}.",
        hint="Nothing was inserted. Correct the row, or ALTER TABLE … DROP CONSTRAINT"
        f" {constraint.name}.",
    )

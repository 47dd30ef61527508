"""INSERT INTO FUNCTION file('…{_partition_id}…') PARTITION BY: a file for each value of an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from olapdb import errors
from olapdb.bind import bind_expression
from olapdb.compute.batches import single_chunk
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.memory import memory_limit
from olapdb.formats.files import NewFile
from olapdb.functions.kernels import columns
from olapdb.model.schema import Table
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.types.arrow_values import from_numpy

PLACE = "{_partition_id}"
"""What stands for the partition's id in the path."""


def write_partitions(
    expression: nodes.Expression,
    path: str,
    stage: Callable[[str, Iterator[pa.Table]], tuple[NewFile, int]],
    table: Table,
    blocks: Iterator[pa.Table],
    context: StatementContext,
) -> int:
    """Write the rows of each value of the expression to its own path, in which the value's text
    replaces the placeholder; NULL counts as "". Return the number of rows.

    All rows are held in memory until the last one came. `stage` writes those of one file under
    another name; the files get their names when the last one is written, so that a statement that
    fails writes none. Raises MemoryLimitExceeded for more bytes than max_memory_usage, BadArguments
    for a value that cannot be in a path."""
    text = nodes.Function("ifNull", (nodes.Function("toString", (expression,)), nodes.Literal("")))
    bound = bind_expression(text, table, context.scope(context.snapshot()))
    limit = memory_limit(context.settings)
    held: dict[str, list[pa.Table]] = {}
    held_bytes = 0
    for block in blocks:
        batch = pa.RecordBatch.from_arrays(
            [single_chunk(column) for column in block.columns], names=block.column_names
        )
        held_bytes += batch.nbytes
        if limit and held_bytes > limit:
            raise errors.MemoryLimitExceeded(
                f"The rows of INSERT … PARTITION BY need more than {limit} bytes.",
                hint="Raise max_memory_usage, or INSERT fewer rows at a time.",
            )
        encoded = columns.text(
            evaluate_array(bound, batch, context.environment)
        ).dictionary_encode()
        codes = columns.numpy_values(encoded.indices)
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(encoded.dictionary)))
        for identity, rows in zip(
            encoded.dictionary.to_pylist(), np.split(order, ends[:-1]), strict=True
        ):
            held.setdefault(identity, []).append(block.take(from_numpy(rows)))
    paths = {identity: path.replace(PLACE, _checked(identity)) for identity in held}
    staged: list[tuple[NewFile, int]] = []
    try:
        staged += (stage(paths[identity], iter(rows)) for identity, rows in held.items())
        for file, _ in staged:
            file.publish()
    finally:
        for file, _ in staged:
            file.discard()
    return sum(rows for _, rows in staged)


def _checked(identity: str) -> str:
    """Return a partition's id. Raise BadArguments for one that cannot be in a path."""
    if identity in ("", ".", "..") or any(mark in identity for mark in "/\\*?{}[]\0\n"):
        raise errors.BadArguments(
            f"The partition {identity!r} cannot be in the name of a file.",
            hint="PARTITION BY hex(…) or cityHash64(…) gives other names.",
        )
    return identity

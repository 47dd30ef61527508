"""The rows of a dictionary for a query: read at its snapshot, or kept from an earlier query.

A dictionary of the same definition over the same parts has the same rows, so they are kept by the
ids of both. Parts never change; a commit that changes a table's rows gives it other parts.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from olapdb.compute.context import ExecutionContext
from olapdb.compute.dictionary_rows import DictionaryRows
from olapdb.compute.hash_table import build_bytes
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.row_buffer import RowBuffer
from olapdb.execute.pruning.granule_selection import live_parts
from olapdb.plan import nodes
from olapdb.plan.expressions import Call, DictionaryShape
from olapdb.plan.tree import all_expressions, all_nodes

DICTIONARY = "the rows of a dictionary"
KEPT_BYTES_MAX = 256 << 20
"""The most bytes of dictionaries that a process keeps between its queries."""


class KeptDictionaries:
    """The dictionaries that the process keeps, by what they are made from. Thread-safe.

    The least recently used are dropped where all are more than `bytes_max`."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._rows: OrderedDict[Hashable, DictionaryRows] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> DictionaryRows | None:
        """Return the rows of that key, None if they are not kept."""
        with self._lock:
            rows = self._rows.get(key)
            if rows is not None:
                self._rows.move_to_end(key)
            return rows

    def put(self, key: Hashable, rows: DictionaryRows) -> None:
        """Keep the rows, evicting those of other keys if needed. Rows larger than all that may be kept are not kept."""
        with self._lock:
            if key in self._rows or rows.nbytes > self._bytes_max:
                return
            self._rows[key] = rows
            self._bytes += rows.nbytes
            while self._bytes > self._bytes_max:
                self._bytes -= self._rows.popitem(last=False)[1].nbytes

    def clear(self) -> None:
        """Drop all rows."""
        with self._lock:
            self._rows.clear()
            self._bytes = 0


KEPT = KeptDictionaries(KEPT_BYTES_MAX)


def dictionary_rows(
    plan: nodes.Node,
    shape: DictionaryShape,
    context: ExecutionContext,
    read: Callable[[MemoryAccount], RowBuffer],
) -> DictionaryRows:
    """Return the rows of a dictionary; they count against the memory limit until the query ends.

    `read` reads the rows of its plan."""
    key = _key(plan, shape, context)
    rows = None if key is None else KEPT.get(key)
    if rows is None:
        with context.memory.account(DICTIONARY) as account:
            batch = read(account).concatenate()
            account.grow(build_bytes(batch.columns[: shape.keys], batch.num_rows))
            rows = DictionaryRows(batch.columns, batch.num_rows, shape, context.threads)
        if key is not None:
            KEPT.put(key, rows)
    context.memory.add(rows.nbytes, DICTIONARY)
    return rows


def _key(plan: nodes.Node, shape: DictionaryShape, context: ExecutionContext) -> Hashable | None:
    """Return the key of a dictionary's rows: its shape, the time zone, the ids of the parts that its plan reads. None
    where the plan reads anything else, such as a system table, a file or now()."""
    parts: list[Hashable] = []
    for node in all_nodes(plan):
        if isinstance(node, nodes.Scan):
            parts.append((node.table.id, tuple(part.id for part in live_parts(node, context))))
        elif not node.children() and not isinstance(node, nodes.Values | nodes.Numbers):
            return None
    for expression in all_expressions(plan):
        if isinstance(expression, Call) and expression.function.volatility != "pure":
            return None
    return shape, context.environment.zone, tuple(parts)

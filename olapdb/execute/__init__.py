"""The executor: it runs plans by operators on Arrow batches.

run(plan, context) -> Result
run_node(node, context) -> Iterator[pa.RecordBatch]
explain_indexes(plan, context) -> lines of EXPLAIN indexes = 1
"""

from olapdb.compute.context import ExecutionContext, MemoryTracker, QueryStatistics, SystemReader
from olapdb.execute.pruning.explain_indexes import explain_indexes
from olapdb.execute.run import run, run_node

__all__ = [
    "ExecutionContext",
    "MemoryTracker",
    "QueryStatistics",
    "SystemReader",
    "explain_indexes",
    "run",
    "run_node",
]

"""The executor: it runs plans by operators on Arrow batches.

run(plan, context) -> Result
run_node(node, context) -> Iterator[pa.RecordBatch]
estimator_of(context) -> estimates of a plan's rows

EXPLAIN ANALYZE and EXPLAIN PIPELINE are in `explain_analyze` and `explain_pipeline`; EXPLAIN indexes = 1 and
EXPLAIN ESTIMATE in `pruning.explain_indexes`.
"""

from olapdb.compute.context import ExecutionContext, QueryStatistics, SystemReader
from olapdb.compute.memory import MemoryTracker
from olapdb.execute.run import run, run_node
from olapdb.execute.table_samples import estimator_of

__all__ = [
    "ExecutionContext",
    "MemoryTracker",
    "QueryStatistics",
    "SystemReader",
    "estimator_of",
    "run",
    "run_node",
]

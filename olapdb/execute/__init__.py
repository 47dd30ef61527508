"""The executor: it runs plans by operators on Arrow batches.

run(plan, context) -> Result
run_node(node, context) -> Iterator[pa.RecordBatch]
explain_indexes(plan, context) -> lines of EXPLAIN indexes = 1
estimate_reads(plan, context) -> rows of EXPLAIN ESTIMATE
estimator_of(context) -> estimates of a plan's rows

EXPLAIN ANALYZE and EXPLAIN PIPELINE are in `explain_analyze` and `explain_pipeline`.
"""

from olapdb.compute.context import ExecutionContext, MemoryTracker, QueryStatistics, SystemReader
from olapdb.execute.pruning.explain_indexes import estimate_reads, explain_indexes
from olapdb.execute.run import run, run_node
from olapdb.execute.table_samples import estimator_of

__all__ = [
    "ExecutionContext",
    "MemoryTracker",
    "QueryStatistics",
    "SystemReader",
    "estimate_reads",
    "estimator_of",
    "explain_indexes",
    "run",
    "run_node",
]

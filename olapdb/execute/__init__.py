"""The executor: it runs plans by operators on Arrow batches.

run(plan, context) -> Result
run_node(node, context) -> Iterator[pa.RecordBatch]
explain_indexes(plan, context) -> lines of EXPLAIN indexes = 1
estimate_reads(plan, context) -> rows of EXPLAIN ESTIMATE
estimator_of(context) -> estimates of a plan's rows
analyzed_lines(plan, context, seconds, estimate) -> lines of EXPLAIN ANALYZE
pipeline_lines(plan, context) -> lines of EXPLAIN PIPELINE
"""

from olapdb.compute.context import ExecutionContext, MemoryTracker, QueryStatistics, SystemReader
from olapdb.execute.explain_analyze import analyzed_lines
from olapdb.execute.explain_pipeline import pipeline_lines
from olapdb.execute.pruning.explain_indexes import estimate_reads, explain_indexes
from olapdb.execute.run import run, run_node
from olapdb.execute.table_samples import estimator_of

__all__ = [
    "ExecutionContext",
    "MemoryTracker",
    "QueryStatistics",
    "SystemReader",
    "analyzed_lines",
    "estimate_reads",
    "estimator_of",
    "explain_indexes",
    "pipeline_lines",
    "run",
    "run_node",
]

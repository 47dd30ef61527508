"""EXPLAIN ANALYZE: the plan's tree with what each node took and gave while the query ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from olapdb.compute.context import ExecutionContext
from olapdb.compute.profile import NodeProfile, QueryProfile
from olapdb.plan.explain import explain
from olapdb.plan.nodes import Aggregate, Distinct, Join, Node, Plan, Sort

Estimate = Callable[[Node], float]
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_KILO = 1024
_HAVE_KERNELS = (Aggregate, Join, Sort, Distinct)
"""The nodes of which compiled kernels can do the work."""


def analyzed_lines(
    plan: Plan, context: ExecutionContext, seconds: float, estimate: Estimate
) -> list[str]:
    """Return the lines of EXPLAIN ANALYZE of a query that ran in `seconds`: a summary, then its plan with what was
    measured for each node. `estimate(node)` returns the rows that the optimizer expects. The context has the profile of
    the run."""
    profile = context.profile
    assert profile is not None
    lines = [*_summary(context, seconds), ""]
    return lines + explain(plan, lambda node: _facts(node, profile, seconds, estimate))


def _summary(context: ExecutionContext, seconds: float) -> Iterator[str]:
    """Yield the lines about the whole query: its time, the rows and bytes that it read, the peak of its memory, and
    what it spilled if anything."""
    statistics = context.statistics
    yield "Query summary:"
    yield f"  Time: {_time(seconds)}"
    yield f"  Read: {statistics.rows_read} rows, {_size(statistics.bytes_read)}"
    yield f"  Peak memory: {_size(context.memory.peak_bytes)}"
    if statistics.temporary_files:
        yield (
            f"  Spilled: {_size(statistics.spilled_bytes)} in {statistics.temporary_files}"
            f" files, {_size(statistics.spilled_uncompressed_bytes)} in memory"
        )


def _facts(node: Node, profile: QueryProfile, seconds: float, estimate: Estimate) -> Iterator[str]:
    """Yield the lines about one node as it ran: rows, time and its share of the query's, parts and granules, cache and
    notes. "Not run" alone for a node that did not run."""
    measured = profile.of(node)
    if measured.runner is not None:
        yield f"Runs within: {type(measured.runner).__name__}"
    elif not measured.starts:
        yield "Not run"
        return
    else:
        yield _rows(measured, estimate(node) * measured.expected_share)
        share = f" ({100 * measured.waited_seconds / seconds:.1f}%)" if seconds else ""
        tasks = f" · {_time(measured.task_seconds)} in {measured.tasks} tasks"
        yield f"Time: {_time(measured.waited_seconds)}{share}{tasks if measured.tasks else ''}"
    if measured.selection is not None:
        parts, parts_read, granules, granules_read = measured.selection
        yield f"Parts: {parts_read}/{parts} | Granules: {granules_read}/{granules}"
    counts = measured.counts
    if counts.cache_hits or counts.cache_misses:
        yield f"Column cache: {counts.cache_hits} hits, {counts.cache_misses} misses"
    if counts.kernels:
        calls = (f"{name} × {calls}" for name, calls in sorted(counts.kernels.items()))
        yield f"Kernels: {', '.join(calls)}"
    elif isinstance(node, _HAVE_KERNELS):
        yield "Kernels: none, numpy and Arrow"
    yield from dict.fromkeys(measured.notes)


def _rows(measured: NodeProfile, estimated: float) -> str:
    """Return the line about a node's rows. Rows of a node that was stopped, or that ran several
    times, say nothing about the estimate."""
    given = f"{_size(measured.bytes)} in {measured.batches} batches"
    if not measured.ended:
        return f"Rows: {measured.rows} · stopped early · {given}"
    if measured.starts > 1:
        return f"Rows: {measured.rows} in {measured.starts} runs · {given}"
    expected = f"estimated {estimated:.0f} · q-error {q_error(estimated, measured.rows):.2f}"
    return f"Rows: {measured.rows} · {expected} · {given}"


def q_error(estimated: float, met: float) -> float:
    """Return by which factor an estimate is too large or too small; 1.0 means exact. Fewer than one row counts as
    one."""
    estimated, met = max(estimated, 1.0), max(met, 1.0)
    return max(estimated / met, met / estimated)


def _time(seconds: float) -> str:
    """Return a duration as text: `1.25 ms`."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.2f} us"


def _size(size_bytes: float) -> str:
    """Return a number of bytes as text: `1.25 MiB`."""
    power = 0
    while size_bytes >= _KILO and power < len(_UNITS) - 1:
        size_bytes, power = size_bytes / _KILO, power + 1
    return f"{size_bytes:.2f} {_UNITS[power]}" if power else f"{size_bytes:.0f} B"

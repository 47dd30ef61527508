"""Dimensions: tables and subqueries that a view reads beside its source.

A commit that changes a dimension's rows also invalidates what was made with them. A merge
invalidates nothing. So what the view reads of a dimension must be the same before and after a
merge: a function of the table's rows, not of their parts. Each plan node is classified by what a
merge may change of its rows:

    whole    nothing
    keys     how often a row occurs, and all columns except `keyed`, whose distinct values stay
             (a merging table without FINAL)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from olapdb.engine.combine import summed_columns
from olapdb.engine.layout import TableLayout
from olapdb.model.schema import Table
from olapdb.plan import expressions, nodes
from olapdb.plan.tree import expressions_of
from olapdb.records import dataclass
from olapdb.types import AggregateFunction, SimpleAggregateFunction
from olapdb.views.definition.query_shape import is_key_column
from olapdb.views.provability.expressions import columns_read
from olapdb.views.provability.judgement import JudgedItem, provable_item, unproven_item
from olapdb.views.provability.merging import commutes, is_ordered
from olapdb.views.provability.parts import BoundDefinition, full_name
from olapdb.views.provability.query import path

_PLAIN = ("MergeTree", "Memory", "Log", "TinyLog", "StripeLog", "Set", "Join", "Null")


@dataclass(frozen=True)
class _MergeEffect:
    """A bound on what merges may change of a plan's rows. `table` None: nothing.

    Else merges change how often rows occur, and the distinct values of the columns `keyed` stay.
    `keeps_keys`: merges leave at least one row of each key.
    """

    table: Table | None = None
    keyed: frozenset[str] = frozenset()
    keeps_keys: bool = True

    def reads_only_keyed(self, expression: expressions.Expression, schema: nodes.Schema) -> bool:
        """Return whether merges keep every column of `schema` that the expression reads."""
        names_read = expressions.columns_of(expression) & {field.name for field in schema}
        return self.table is None or names_read <= self.keyed

    def keeps_distinct_rows(self, schema: nodes.Schema) -> bool:
        """Return whether the distinct rows are the same before and after a merge."""
        return self.keeps_keys and {field.name for field in schema} <= self.keyed


_NO_EFFECT = _MergeEffect()


def input_items(parts: BoundDefinition) -> Iterator[JudgedItem]:
    """Yield items about each dimension and each subquery of the query."""
    judge = _InputJudge(parts)
    for branch, _ in parts.branches:
        for node in path(branch.root):
            judge.judge_subqueries(node)
            if isinstance(node, nodes.Join):
                judge.judge_join(node, _NO_EFFECT, judge.merge_effect(node.right))
            elif isinstance(node, nodes.Union | nodes.SetDifference):
                for other in node.children()[1:]:
                    judge.judge_all_rows(other)
    yield from judge.problems
    blamed = {item.name for item in judge.problems}
    for table in judge.tables.values():
        name = f"dimension {full_name(table)}"
        if name not in blamed:
            yield provable_item(
                name, "What is read of it changes only by commits that name the stale slices."
            )


@dataclass
class _InputJudge:
    """A walk over the plans beside the source's path that collects problems and dimensions."""

    parts: BoundDefinition
    problems: list[JudgedItem] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)

    def _add_problem(self, name: str, because: str, fix: str) -> _MergeEffect:
        """Add a problem once; return _WHOLE, so that nodes above are judged without it."""
        item = unproven_item(name, because, fix)
        if item not in self.problems:
            self.problems.append(item)
        return _NO_EFFECT

    def _advise_final(self, table: Table | None) -> _MergeEffect:
        """Add the problem that merges of the table change the rows that are read; advise FINAL."""
        assert table is not None
        return self._add_problem(
            f"dimension {full_name(table)}",
            f"{full_name(table)} is read without FINAL: merges of its {table.engine.name} change"
            " the rows that are read.",
            f"Write FINAL behind {full_name(table)} in the query.",
        )

    # --- where plans meet

    def judge_all_rows(self, node: nodes.Node) -> None:
        """Judge a plan whose rows all count, each as often as it occurs."""
        rows = self.merge_effect(node)
        if rows.table is not None:
            self._advise_final(rows.table)

    def judge_subqueries(self, node: nodes.Node) -> None:
        """Judge the node's subqueries: scalar ones whole, IN and dictionaries by their distinct
        rows."""
        for inner in (
            expression for outer in expressions_of(node) for expression in expressions.walk(outer)
        ):
            if isinstance(inner, expressions.ScalarSubquery):
                self.judge_all_rows(inner.plan)
            elif isinstance(inner, expressions.InSubquery | expressions.DictionaryCall):
                rows = self.merge_effect(inner.plan)
                if rows.table is not None and not rows.keeps_distinct_rows(inner.plan.schema):
                    self._advise_final(rows.table)

    def judge_join(self, node: nodes.Join, left: _MergeEffect, right: _MergeEffect) -> _MergeEffect:
        """Judge a join of two inputs, and return what merges may change of its rows."""
        if right.table is not None:
            by_presence = node.strictness in ("SEMI", "ANTI") and right.keeps_keys
            conditions = _conditions(node.right_keys, node.residual)
            if not by_presence or not all(
                right.reads_only_keyed(condition, node.right.schema) for condition in conditions
            ):
                self._advise_final(right.table)
        if left.table is None:
            return _NO_EFFECT
        if node.kind not in ("INNER", "LEFT", "CROSS") or not all(
            left.reads_only_keyed(condition, node.left.schema)
            for condition in _conditions(node.left_keys, node.residual)
        ):
            return self._advise_final(left.table)
        right_names = {column.name for column in node.right.schema} & {
            column.name for column in node.schema
        }
        return replace(left, keyed=left.keyed | right_names)

    # --- nodes

    def merge_effect(self, node: nodes.Node) -> _MergeEffect:
        """Return what merges may change of the node's rows; add the problems below it."""
        self.judge_subqueries(node)
        match node:
            case nodes.Scan():
                return self._scan(node)
            case nodes.Values() | nodes.Numbers() | nodes.Primes() | nodes.FileScan():
                return _NO_EFFECT
            case nodes.Filter(child=child, predicate=predicate):
                rows = self.merge_effect(child)
                if not rows.reads_only_keyed(predicate, child.schema):
                    return self._advise_final(rows.table)
                return rows
            case nodes.Project(child=child, expressions=pairs):
                rows = self.merge_effect(child)
                keyed = {
                    column for column, value in pairs if rows.reads_only_keyed(value, child.schema)
                }
                return rows if rows.table is None else replace(rows, keyed=frozenset(keyed))
            case nodes.ArrayJoin(child=child, arrays=arrays):
                rows = self.merge_effect(child)
                if not all(rows.reads_only_keyed(value, child.schema) for _, value in arrays):
                    return self._advise_final(rows.table)
                elements = {name for name, _ in arrays}
                return rows if rows.table is None else replace(rows, keyed=rows.keyed | elements)
            case nodes.Aggregate():
                return self._aggregate(node)
            case nodes.Join(left=left, right=right):
                return self._join(node, self.merge_effect(left), self.merge_effect(right))
            case nodes.Sort(child=child, limit=None):
                return self.merge_effect(child)
            case (
                nodes.Sort(child=child)
                | nodes.Limit(child=child)
                | nodes.RelativeLimit(child=child)
                | nodes.LimitBy(child=child)
            ):
                return self._first_rows(node, child)
            case nodes.Distinct(child=child, keys=keys):
                return self._distinct(child, keys)
            case nodes.Union(inputs=inputs):
                for operand in inputs:
                    self.judge_all_rows(operand)
                return _NO_EFFECT
            case nodes.SetDifference(left=left, right=right):
                for operand in (left, right):
                    self.judge_all_rows(operand)
                return _NO_EFFECT
            case _:
                return self._add_problem(
                    "subquery",
                    f"{type(node).__name__} is not known to be decided by its tables.",
                    "Copy what it reads into a table.",
                )

    def _scan(self, scan: nodes.Scan) -> _MergeEffect:
        """Note the dimension, and return what merges may change of its rows."""
        table = scan.table
        if table.id == self.parts.source.id:
            return _NO_EFFECT  # the inserted block; `query` refuses a second read of the source
        self.tables[table.id] = table
        name = f"dimension {full_name(table)}"
        if not table.engine.combines:
            if table.engine.name in _PLAIN:
                return _NO_EFFECT
            return self._add_problem(
                name,
                f"{table.engine.name} is not known to keep its rows as they came.",
                "Copy what it reads into a MergeTree table.",
            )
        if scan.final:
            return self._final(name, scan)
        keyed = {unique for unique, column in scan.columns if is_key_column(table, column)}
        return _MergeEffect(table, frozenset(keyed), not table.engine.drops_keys)

    def _final(self, name: str, scan: nodes.Scan) -> _MergeEffect:
        """Judge a scan with FINAL, which reads the rows as after a full merge.

        Merges matter for columns of which they keep an arbitrary row's value, and for a sign that
        may cancel the wrong row.
        """
        table = scan.table
        if table.engine.sign is not None:
            return self._add_problem(
                name,
                f"Which rows FINAL shows of {full_name(table)} depends on its merges where a row is"
                f" stated twice before it is cancelled ({table.engine.name}).",
                "Keep the newest row of each key in a ReplacingMergeTree and read that with FINAL.",
            )
        layout = TableLayout(table)
        if not table.engine.merges_values:
            if layout.partition_columns <= layout.sorting_columns:
                return _NO_EFFECT
            return self._add_problem(
                name,
                f"Rows of one key of {full_name(table)} may lie in several partitions; which of them"
                " FINAL shows depends on merges where versions are equal.",
                f"PARTITION BY columns of the ORDER BY of {full_name(table)} only.",
            )
        summed_names = {summed.name for summed in summed_columns(layout)}
        for column in table.stored_columns:
            has_state = isinstance(column.type, AggregateFunction | SimpleAggregateFunction)
            if column.name in layout.sorting_columns or column.name in summed_names:
                continue
            if (
                has_state
                and not is_ordered(column)
                and not _dropped_with_zeros(table, summed_names)
            ):
                continue
            if column.name in columns_read(scan):
                return self._add_problem(
                    name,
                    f"Merges of {full_name(table)} keep the {column.name} of one of several rows, by"
                    " the order in which they are merged.",
                    f"Read only its ORDER BY and what it adds up, or add {column.name} to ORDER BY.",
                )
        return _NO_EFFECT

    def _aggregate(self, node: nodes.Aggregate) -> _MergeEffect:
        """Judge an aggregation: its keys must be in `keyed`, its aggregates must commute."""
        rows = self.merge_effect(node.child)
        for _, call in node.aggregates:
            if call.aggregate.merge_class == "ordered":
                self._add_problem(
                    "subquery",
                    f"{_function_name(call)} in a subquery depends on the order of its rows.",
                    "Use argMin or argMax over a column that orders the rows, or groupUniqArray.",
                )
        if rows.table is None:
            return _NO_EFFECT
        keys_kept = all(rows.reads_only_keyed(key, node.child.schema) for _, key in node.keys)
        values_kept = all(self._commutes(rows, node, call) for _, call in node.aggregates)
        groups_kept = rows.keeps_keys or not node.keys
        return (
            _NO_EFFECT
            if keys_kept and values_kept and groups_kept
            else self._advise_final(rows.table)
        )

    def _commutes(
        self, rows: _MergeEffect, node: nodes.Aggregate, call: expressions.AggregateCall
    ) -> bool:
        """Return whether merges keep the result: it commutes, or is idempotent over `keyed`."""
        assert rows.table is not None
        if commutes(node.child, call, rows.table):
            return True
        idempotent = call.aggregate.merge_function in ("min", "max") or "uniq" in call.name.lower()
        return (
            idempotent
            and rows.keeps_keys
            and all(
                rows.reads_only_keyed(argument, node.child.schema) for argument in call.arguments
            )
        )

    def _join(self, node: nodes.Join, left: _MergeEffect, right: _MergeEffect) -> _MergeEffect:
        """Judge a join within a subquery. ANY and ASOF JOIN are problems."""
        if node.strictness in ("ANY", "ASOF"):
            self._add_problem(
                "subquery",
                f"{node.strictness} JOIN takes whichever partner comes first.",
                "Make the joined table unique by its key and use a plain JOIN.",
            )
        return self.judge_join(node, left, right)

    def _distinct(
        self, child: nodes.Node, keys: tuple[expressions.Expression, ...]
    ) -> _MergeEffect:
        """Judge a DISTINCT. DISTINCT ON columns is a problem."""
        rows = self.merge_effect(child)
        if keys:
            return self._add_problem(
                "subquery",
                "DISTINCT ON takes whichever row of several comes first.",
                "GROUP BY its columns, with min, max or argMax of the others.",
            )
        if rows.table is None or rows.keeps_distinct_rows(child.schema):
            return _NO_EFFECT
        return self._advise_final(rows.table)

    def _first_rows(self, node: nodes.Node, child: nodes.Node) -> _MergeEffect:
        """Judge a LIMIT: the values of the rows must decide which come first, not their place."""
        self.judge_all_rows(child)
        ties = isinstance(node, nodes.Limit) and bool(node.ties) and not node.offset
        if ties or is_totally_ordered(child):
            return _NO_EFFECT
        clause = "LIMIT BY" if isinstance(node, nodes.LimitBy) else "LIMIT"
        return self._add_problem(
            "subquery",
            f"{clause} in a subquery takes rows by where they lie, which merges change.",
            "ORDER BY all columns of the subquery, or use LIMIT … WITH TIES.",
        )


def _conditions(
    keys: tuple[expressions.Expression, ...], residual: expressions.Expression | None
) -> tuple[expressions.Expression, ...]:
    """Return the join keys, and the residual condition if there is one."""
    return keys if residual is None else (*keys, residual)


def _dropped_with_zeros(table: Table, summed: set[str]) -> bool:
    """Return whether merges may drop a row whose sums are all zero although other columns have
    values: the engine names the columns to sum, and some are `summed`."""
    return bool(summed) and bool(table.engine.arguments)


def _function_name(call: expressions.AggregateCall) -> str:
    """Return the aggregate's name without its parameters."""
    return call.name.partition("(")[0]


def is_totally_ordered(node: nodes.Node) -> bool:
    """Return whether rows that tie in the ORDER BY of a subtree are equal in every column that is read.

    Also True if there is at most one row, if no column is read, and for VALUES, numbers(), primes() and files,
    whose rows always come in the same order."""
    needed = {field.name for field in node.schema}
    ordered: set[str] | None = None
    while True:
        match node:
            case nodes.Project(child=child, expressions=pairs):
                computed = dict(pairs)
                sources = [computed[column] for column in needed if column in computed]
                needed = set().union(*(expressions.columns_of(source) for source in sources))
                if not needed:
                    return True  # all rows are equal: EXISTS(SELECT 1 …)
                if ordered is not None:
                    order_sources = [computed[column] for column in ordered if column in computed]
                    ordered = {
                        source.name
                        for source in order_sources
                        if isinstance(source, expressions.ColumnRef)
                    }
                node = child
            case (
                nodes.Filter(child=child)
                | nodes.Limit(child=child)
                | nodes.RelativeLimit(child=child)
                | nodes.LimitBy(child=child)
            ):
                node = child
            case nodes.Sort(child=child, keys=keys):
                if ordered is None:
                    sort_keys = (key.expression for key in keys)
                    ordered = {
                        source.name
                        for source in sort_keys
                        if isinstance(source, expressions.ColumnRef)
                    }
                node = child
            case nodes.Aggregate(keys=keys, sets=sets):
                if not keys and not sets:
                    return True
                if sets:
                    break  # rows of two sets may have equal keys: a rolled-up default and a real value
                return ordered is not None and {name for name, _ in keys} <= ordered
            case nodes.Values() | nodes.Numbers() | nodes.Primes() | nodes.FileScan():
                return True
            case _:
                break
        if ordered is not None and needed <= ordered:
            return True
    return ordered is not None and needed <= ordered

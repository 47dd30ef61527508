"""What CREATE MATERIALIZED VIEW refuses, because merging would corrupt it, and what it marks.

Every refusal gives the reason and the fix.  A view into a table whose engine merges rows of equal
key must give rows that merge to the same, however the source was cut into blocks: group by just
the target's key, and store nothing finished that does not add up.  Into a plain MergeTree
ClickHouse's per-block answers are allowed, and the view is marked unprovable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from olapdb.bind.virtual import OF_PARTS
from olapdb.errors import QueryNotSupportedInMaterializedView, ViewNotProvable
from olapdb.model.schema import Column, Table
from olapdb.plan import nodes
from olapdb.plan.expressions import AggregateCall, ColumnRef, NameConstant
from olapdb.types import (
    AggregateFunction,
    Boolean,
    DataType,
    Decimal,
    SimpleAggregateFunction,
    is_number,
    plain,
)
from olapdb.views.column_conversion import adds_up, conversion
from olapdb.views.shape import (
    OutputColumn,
    Shape,
    branches,
    constants_of,
    is_key_column,
    leftmost,
    occurrences,
    scans,
    shape_of,
    source_columns_of,
    traced,
    volatile_functions,
    walk_plan,
)  # fmt: skip


def check_definition(name: str, plan: nodes.Plan, source: Table, target: Table) -> str:
    """ "" for a provable view, or the reason why it is not; raises where it is refused.

    `plan` is bound, not optimized.  Raises ViewNotProvable and
    QueryNotSupportedInMaterializedView, each with the reason and the fix.
    """
    check = _Check(name, source, target, dict(zip(plan.names, plan.types, strict=True)))
    reasons = [check.volatile(plan), check.virtual(plan)]
    for branch in branches(plan):
        check.trigger(branch)
        shape = shape_of(branch)
        reasons += [check.joins(shape), check.clauses(shape), check.rows(branch, shape)]
        reasons.append(check.merging_source(branch, shape))
    return next((reason for reason in reasons if reason), "")


_OF_NOTHING_NEUTRAL = ("sum", "sumMap", "minMap", "maxMap", "groupUniqArrayArray")
"""Merging functions to which what an aggregate makes of no rows (0, {}, []) adds nothing."""


class _Check:
    def __init__(
        self, name: str, source: Table, target: Table, types: Mapping[str, DataType]
    ) -> None:
        self.name, self.source, self.target, self.types = name, source, target, types
        self.merges = target.engine.combines
        self.target_name = f"{target.database}.{target.name}"
        self._order = [item.expression.strip("`") for item in target.sorting_key]

    def refuse(self, reason: str, fix: str) -> NoReturn:
        raise ViewNotProvable(f"View {self.name} would go wrong: {reason}", hint=fix)

    def refuse_or_mark(self, reason: str, fix: str) -> str:
        """Refused on a merging target, a mark on another."""
        if self.merges:
            self.refuse(reason, fix)
        return reason

    def stores(self, column: Column, use: str) -> None:
        """Refuses a column that the target would not hold as the query gives it."""
        found = conversion(self.types[column.name], column.type, use)
        if found.refused:
            self.refuse(
                f"column {column.name} is {column.type} in {self.target_name}: {found.reason}",
                found.fix,
            )

    # --- what fires

    def trigger(self, branch: nodes.Plan) -> None:
        leaf = leftmost(branch.root)
        if not isinstance(leaf, nodes.Scan) or leaf.table.id != self.source.id:
            where = f"{self.source.database}.{self.source.name}"
            raise QueryNotSupportedInMaterializedView(
                f"View {self.name}: every branch of its UNION ALL must read {where} first, since"
                " only INSERTs into it fire the view.",
                hint="Create one view for each source, all TO the same target.",
            )
        if occurrences(branch.root, self.source.id) > 1:
            self.refuse(
                f"it reads its source {self.source.database}.{self.source.name} twice; every"
                " occurrence is the inserted block alone, so rows of different INSERTs would never"
                " meet.",
                "Read the source once; for a self-join keep one side in another table.",
            )

    def volatile(self, plan: nodes.Plan) -> str:
        names = volatile_functions(plan)
        if not names:
            return ""
        called = ", ".join(f"{n}()" for n in names)
        return self.refuse_or_mark(
            f"{called} gives another value when the rows are recomputed.",
            "Store the time in a column of the source (DEFAULT now()) and read that.",
        )

    def virtual(self, plan: nodes.Plan) -> str:
        """A block that is inserted has no part yet, a recomputation reads from one; and rows that
        were there before a RENAME had another name."""
        named = next((one for one in walk_plan(plan) if isinstance(one, NameConstant)), None)
        if named is not None:
            return self.refuse_or_mark(
                f"{named.column} is another name once RENAME gave one.",
                f"Write the name as text, '{named.value.as_py()}' AS {named.column}.",
            )
        places = {virtual.name for virtual in OF_PARTS}
        for scan in scans(plan):
            read = {name for _, name in scan.columns} | {c for _, c, _ in scan.predicate_columns}
            found = sorted(n for n in read & places if scan.table.column(n) is None)
            if found:
                return self.refuse_or_mark(
                    f"{found[0]} tells where a row lies, which merges change.",
                    f"Store what tells the rows apart in a column of {scan.table.name}.",
                )
        return ""

    def joins(self, shape: Shape) -> str:
        for kind in shape.joins:
            if kind.endswith(("RIGHT", "FULL")):
                self.refuse(
                    f"{kind} JOIN adds the unmatched rows of the other table once for each block.",
                    "Use LEFT or INNER JOIN from the source.",
                )
        loose = [k for k in shape.joins if k.startswith(("ANY", "ASOF"))]
        if not loose:
            return ""
        return self.refuse_or_mark(
            f"{loose[0]} JOIN takes whichever partner comes first.",
            "Make the joined table unique by its key and use a plain JOIN.",
        )

    # --- what it does to rows

    def clauses(self, shape: Shape) -> str:
        if shape.above:
            clause = shape.above[0]
            return self.refuse_or_mark(
                f"{clause} looks at the rows of one block, not of the table.",
                f"Leave {clause} out of the view and put it into the query that reads"
                f" {self.target_name}.",
            )
        if shape.aggregations > 1:
            return self.refuse_or_mark(
                "its inner GROUP BY sees one block at a time, so the outer one aggregates pieces.",
                "Make the inner query a view of its own; the outer one belongs in the query that reads.",
            )
        return ""

    def rows(self, branch: nodes.Plan, shape: Shape) -> str:
        if shape.aggregate is None:
            return self._row_wise(shape) if self.merges else ""
        if not self.merges:
            return (
                f"{self.target_name} is a {self.target.engine.name}: each block adds its own"
                " groups, which nothing joins."
            )
        # A literal is the same in every row: one more column of each group, grouped by or not.
        literals = {n for n, _ in constants_of(branch) if n in self._order}
        self._keys(shape, literals)
        for output in shape.outputs:
            column = self.target.column(output.name)
            if column is None:
                continue
            if output.key is not None:
                self.stores(column, "group")
            elif output.name not in literals:
                self._aggregate(column, output, shape)
        return ""

    def _keys(self, shape: Shape, literals: set[str]) -> None:
        assert shape.aggregate is not None
        order = self._order
        keys = {o.name for o in shape.outputs if o.key is not None} | literals
        grouped = {o.key for o in shape.outputs if o.key is not None}
        lost = [n for n, _ in shape.aggregate.keys if n not in grouped]
        by_order = ", ".join(order) or "tuple()"
        if lost or keys != set(order):
            by_group = ", ".join(sorted(keys)) + (" and more" if lost else "")
            self.refuse(
                f"it groups by ({by_group}), but {self.target_name} joins rows by its ORDER BY"
                f" ({by_order}); rows of different groups would merge, or those of one would not.",
                f"Group by just the columns of ORDER BY ({by_order}), under their names, or create"
                f" a target with ORDER BY ({', '.join(sorted(keys))}).",
            )

    def _aggregate(self, column: Column, output: OutputColumn, shape: Shape) -> None:
        call = output.aggregate
        if call is None:
            self.refuse(
                f"column {column.name} is computed from aggregates, and such values do not merge.",
                "Store the aggregates themselves and compute when reading.",
            )
        if isinstance(column.type, AggregateFunction) and self.target.engine.merges_values:
            self._state(column, call)
            return
        wanted = self._merge_function(column)
        function = call.aggregate
        finished = f"{call.name}(…)"
        if not function.additive or function.merge_function != wanted:
            how = f"merges it by {wanted}" if wanted else "keeps an arbitrary row's value"
            self.refuse(
                f"column {column.name} is a finished {finished}, but {self.target_name} {how}.",
                self._fix(call),
            )
        if function.merge_class == "ordered":
            self._ordered(column, call)
        self.stores(column, wanted)
        if not shape.aggregate or shape.aggregate.keys or wanted in _OF_NOTHING_NEUTRAL:
            return
        if shape.selective:
            self.refuse(
                f"without GROUP BY a block of which no row qualifies writes {finished} of nothing,"
                f" which {wanted} would take for a value.",
                f"Store {call.name.partition('(')[0]}State in an AggregateFunction column, or group by"
                " a key.",
            )

    def _state(self, column: Column, call: AggregateCall) -> None:
        if call.aggregate.merge_class == "ordered":
            self._ordered(column, call)

    def _ordered(self, column: Column, call: AggregateCall) -> None:
        self.refuse(
            f"{call.name} in column {column.name} depends on the order in which blocks come.",
            "Use argMin or argMax over a column that orders the rows, groupUniqArray for a set,"
            " or a plain MergeTree target.",
        )

    def _merge_function(self, column: Column) -> str:
        """How merges of the target join the column's values; "" where they keep one of them."""
        if not self.target.engine.merges_values:
            return ""
        if isinstance(column.type, SimpleAggregateFunction):
            return column.type.function
        summed = self.target.engine.arguments
        if self.target.engine.name == "SummingMergeTree":
            numeric = is_number(column.type) and not isinstance(plain(column.type), Boolean)
            if column.name in summed or (not summed and numeric):
                return "sum"
        return ""

    def _fix(self, call: AggregateCall) -> str:
        function = call.aggregate
        if function.additive and function.merge_function:
            inner = function.result_type.name
            return (
                f"Make it SimpleAggregateFunction({function.merge_function}, {inner}) in an"
                " AggregatingMergeTree."
            )
        arguments = ", ".join(t.name for t in function.argument_types)
        inside = call.name + (f", {arguments}" if arguments else "")
        # The call's name has its parameters behind it: quantile(0.9), but quantileState(0.9).
        name, bracket, parameters = call.name.partition("(")
        return (
            f"Store {name}State{bracket}{parameters} in a column AggregateFunction({inside}) of an"
            f" AggregatingMergeTree, and read it with {name}Merge{bracket}{parameters}."
        )

    def _row_wise(self, shape: Shape) -> str:
        """Rows go into a merging table as they are: each column must merge by itself."""
        order = set(self._order)
        for output in shape.outputs:
            column = self.target.column(output.name)
            if column is None or column.name in order:
                continue
            if not self.target.engine.merges_values:
                return f"{self.target.engine.name} keeps one row of several by their order."
            merged = self._merge_function(column)
            if merged:
                self.stores(column, merged)
            if merged or isinstance(column.type, AggregateFunction):
                continue
            self.refuse(
                f"of rows with equal ORDER BY {self.target_name} keeps an arbitrary {column.name}.",
                f"Add {column.name} to ORDER BY, make it SimpleAggregateFunction(max, …), or use a"
                " MergeTree target.",
            )
        return ""

    # --- where rows come from

    def merging_source(self, branch: nodes.Plan, shape: Shape) -> str:
        """A source that merges its rows: the view must not tell merged rows from unmerged."""
        if not self.source.engine.combines:
            return ""
        where = f"{self.source.database}.{self.source.name}"
        if shape.aggregate is None:
            return f"{where} merges its rows, and a row-wise view shows which it has merged."
        child = shape.aggregate.child
        for _, expression in shape.aggregate.keys:
            if not self._over_keys(child, expression):
                return f"It groups by columns outside the ORDER BY of {where}, which merges rows."
        for _, call in shape.aggregate.aggregates:
            if not self._commutes(child, call):
                return f"{call.name} counts the unmerged rows of {where}, which merges them."
        for node in _path(child):
            if isinstance(node, nodes.Filter) and not self._over_keys(node.child, node.predicate):
                return f"It filters by columns outside the ORDER BY of {where}, which merges rows."
            if isinstance(node, nodes.ArrayJoin) and not all(
                self._over_keys(node.child, array) for _, array in node.arrays
            ):
                return f"It joins arrays outside the ORDER BY of {where}, which merges rows."
        return ""

    def _over_keys(self, node: nodes.Node, expression: object) -> bool:
        for found in source_columns_of(node, expression):  # type: ignore[arg-type]
            if found is None:
                return False
            table_id, column = found
            if table_id == self.source.id and not is_key_column(self.source, column):
                return False
        return True

    def _commutes(self, node: nodes.Node, call: AggregateCall) -> bool:
        """sum over summed columns, min over minima, -Merge over states."""
        if len(call.arguments) != 1 or not isinstance(call.arguments[0], ColumnRef):
            return False
        found = traced(node, call.arguments[0].name)
        column = self.source.column(found[1]) if found and found[0] == self.source.id else None
        if column is None:
            return False
        if is_key_column(self.source, column.name):
            # The same keys are there before and after a merge; how often is not.
            if self.source.engine.drops_keys:
                return False
            return call.aggregate.merge_function in ("min", "max") or "uniq" in call.name.lower()
        if isinstance(column.type, AggregateFunction):
            return "Merge" in call.name
        base = call.name.removesuffix("State").removesuffix("SimpleState")
        if isinstance(column.type, SimpleAggregateFunction):
            return base == column.type.function
        if not (adds_up(column.type) or isinstance(plain(column.type), Decimal)):
            return False  # a merge of the source wraps; of Decimals it is an error instead
        summed = self.source.engine.arguments
        if self.source.engine.name == "SummingMergeTree" and is_number(column.type):
            return base == "sum" and (not summed or column.name in summed)
        return False


def _path(node: nodes.Node) -> list[nodes.Node]:
    found = [node]
    while node.children():
        node = node.children()[0]
        found.append(node)
    return found

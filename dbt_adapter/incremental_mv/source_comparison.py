"""The test `reconciles_with_source` compares the rows that users read with those of the source now.

The test reads the read view, as users do, and runs the trigger's query, finished as the read view
finishes it, over the source. Neither side takes its answer from the ledger.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError, DbtDatabaseError

from olapdb.bind.syntax import walk
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_expression, parse_query
from olapdb.types import AggregateFunction, DataType

from ..relation import quote, string_literal
from .model_definition import read_view_select
from .names import ModelNames
from .query_split import STATES
from .reconcile import (
    Finding,
    live_findings,
    missing_trigger,
    positive,
    repair_command,
    trigger_findings,
)
from .warehouse import ViewInfo, Warehouse

logger = AdapterLogger("olapdb")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
FLOAT_TOLERANCE = 1e-9
"""The relative difference that two floats may have: a sum depends on the order of its terms."""
_ORDERED = ("any", "anylast", "first_value", "last_value", "grouparray", "grouparraylast")


@dataclass(frozen=True)
class Comparison:
    """The arguments of the test. `tolerance` is a relative difference of two numbers, `partitions`
    are ids of the target's partitions, `sample` a number of them, `where` a condition over the
    model's columns, "" for none."""

    tolerance: float = 0.0
    partitions: tuple[str, ...] = ()
    sample: int | None = None
    where: str = ""


def source_findings(
    warehouse: Warehouse, names: ModelNames, comparison: Comparison
) -> list[Finding]:
    """Return a finding for each partition where the read view has other rows than the source gives.

    Also returns findings if the trigger is missing, if it or the read view was altered, or if
    another table has the name of what it reads. Raises
    CompilationError for a model that an older adapter built, and for wrong test arguments."""
    view = warehouse.view(names)
    if view is None:
        return [missing_trigger(names)]
    if view.read is None:
        raise CompilationError(
            f"{names} was built by an older adapter, which did not record its read view. Run "
            f"dbt run --select {names.selected} --full-refresh."
        )
    moved = trigger_findings(warehouse, names)
    if moved:  # the live query is not the model's, or its source has another name
        return moved
    expected = _expected(warehouse, names, view)
    columns = warehouse.describe(expected)
    unreadable = _other_columns(warehouse, names, [name for name, _ in columns])
    if unreadable:
        return unreadable
    query = _Query(names, view, columns, comparison, _partition_key(warehouse, view))
    chosen = _chosen_partitions(warehouse, view, query, expected, comparison)
    rows = warehouse.rows(query.sql(expected, chosen))
    frozen = _frozen_partitions(warehouse, names)
    for row in rows:
        if _partition_id(row) in frozen:
            logger.info(
                f"{names}, partition {row['partition']}: retention froze results of it, which the "
                "source cannot give any more: not compared. The test reconciled compares the rest."
            )
    cause = "readers do not read the answer of the source"
    if frozen and not query.partition:
        cause += ", of which rows have left by retention; reconciled tells them apart"
    return [
        Finding(
            names.model,
            str(row["partition"]),
            cause,
            keys=", ".join(row["keys"]),
            missing=int(row["missing"]),
            extra=int(row["extra"]),
            differing=int(row["differing"]),
            repair=repair_command(names),
        )
        for row in rows
        if _partition_id(row) not in frozen
    ]


def _frozen_partitions(warehouse: Warehouse, names: ModelNames) -> set[str]:
    """Return the ids of the target's partitions with results that retention froze."""
    rows = warehouse.rows(
        "SELECT DISTINCT target_partition_id AS id FROM system.view_retained "
        f"WHERE database = {string_literal(names.database)} AND view = {string_literal(names.view)}"
    )
    return {str(row["id"]) for row in rows}


def _partition_id(row: Mapping[str, object]) -> str:
    """Return the id of a row's partition, whose key's text is that of a number or a date (its
    hyphens go). For keys of other types return the text itself, which is no id."""
    text = str(row["partition"])
    return text.replace("-", "") if _DATE.fullmatch(text) else text


def _other_columns(
    warehouse: Warehouse, names: ModelNames, expected: Sequence[str]
) -> list[Finding]:
    """Return findings if the read view cannot be read, or has other columns than the source gives.

    Raises DbtDatabaseError if it cannot be read for another reason than that it was altered."""
    try:
        read = warehouse.describe(f"SELECT * FROM {warehouse.sql_name(names, names.model)}")
    except DbtDatabaseError:
        altered = live_findings(warehouse, names)
        if altered:
            return altered
        raise
    columns = [name for name, _ in read]
    if columns == list(expected):
        return []
    cause = f"it has the columns {', '.join(columns)}, and the source gives {', '.join(expected)}"
    return live_findings(warehouse, names) or [
        Finding(names.model, "", cause, repair=repair_command(names))
    ]


def _expected(warehouse: Warehouse, names: ModelNames, view: ViewInfo) -> str:
    """Return the query of the model's answer, computed from the sources of all triggers that write
    its target."""
    rows = warehouse.rows(
        "SELECT as_select FROM system.views WHERE standing = '' "
        f"AND target_database = {string_literal(view.target_database)} "
        f"AND target_table = {string_literal(view.target)} ORDER BY database, name"
    )
    queries = [str(row["as_select"]) for row in rows]
    states = ", ".join(quote(name) for name, _ in warehouse.describe(queries[0]))
    union = " UNION ALL ".join(f"SELECT {states} FROM ({query})" for query in queries)
    assert view.read is not None
    return read_view_select(names, *view.read, source=f"({union if queries[1:] else queries[0]})")


def _partition_key(warehouse: Warehouse, view: ViewInfo) -> str:
    """Return the SQL of the partition key of the view's target, "" without one."""
    rows = warehouse.rows(
        "SELECT partition_key FROM system.tables "
        f"WHERE database = {string_literal(view.target_database)} "
        f"AND name = {string_literal(view.target)}"
    )
    return str(rows[0]["partition_key"]) if rows else ""


def _chosen_partitions(
    warehouse: Warehouse, view: ViewInfo, query: _Query, expected: str, comparison: Comparison
) -> list[str]:
    """Return the partitions to compare, as texts of the partition key; empty for all.

    Raises CompilationError."""
    if comparison.sample is not None:
        if comparison.partitions:
            raise CompilationError("Give partitions or sample, not both.")
        count = positive(comparison.sample, "sample")
        rows = warehouse.rows(query.partitions_sql(expected))
        texts = sorted(str(row["partition"]) for row in rows)
        return random.sample(texts, min(count, len(texts)))
    if not comparison.partitions:
        return []
    key = query.partition
    ids = ", ".join(string_literal(p) for p in comparison.partitions)
    target = f"{quote(view.target_database)}.{quote(view.target)}"
    rows = warehouse.rows(
        f"SELECT DISTINCT toString({key}) AS partition FROM {target} WHERE _partition_id IN ({ids})"
    )
    # A partition that the target lacks entirely is named by the text of its key.
    return [str(row["partition"]) for row in rows] + list(comparison.partitions)


class _Query:
    """The SQL that compares a model with its source. `columns` are those that the source gives."""

    def __init__(
        self,
        names: ModelNames,
        view: ViewInfo,
        columns: Sequence[tuple[str, DataType]],
        comparison: Comparison,
        partition_key: str,
    ) -> None:
        self._names = names
        self._comparison = comparison
        kinds = view.column_kinds
        aggregated = any(kind != "column" for kind, _ in kinds.values())
        self._read = _expressions(view)
        compared = [(n, t) for n, t in columns if self._is_comparable(n, t)]
        grouping = parse_query(read_view_select(names, *(view.read or ("1", "")))).group_by  # type: ignore[attr-defined]
        visible = {n for n, (kind, _) in kinds.items() if kind == "key"}
        self._keyed = aggregated and len(visible) == len(grouping or ())
        self._keys = [n for n, _ in compared if not self._keyed or n in visible]
        self._values = [(n, t) for n, t in compared if n not in self._keys]
        if comparison.tolerance and not self._keyed:
            raise CompilationError(
                f"tolerance needs rows that have keys to be compared by, and {names} has none that "
                "it selects. Leave it out."
            )
        self.partition = self._visible_partition(partition_key)
        if not self.partition and (comparison.partitions or comparison.sample is not None):
            raise CompilationError(
                f"{names} has no partitions that its columns determine, so partitions and sample "
                "cannot choose any. Use where."
            )

    def _is_comparable(self, name: str, data_type: DataType) -> bool:
        """Return whether two computations of a column are equal if both are right.

        States are not values, and `any` or `groupArray` may give another answer each time."""
        if isinstance(data_type, AggregateFunction):
            return False
        expression = self._read.get(name)
        calls = (
            {n.name.lower() for n in walk(expression) if isinstance(n, nodes.Function)}
            if (expression is not None)
            else set()
        )
        return not any(call.removesuffix("merge") in _ORDERED for call in calls)

    def _visible_partition(self, partition_key: str) -> str:
        """Return the partition key if it is made of columns that the comparison reads, else ""."""
        if not partition_key:
            return ""
        used = {
            n.parts[-1]
            for n in walk(parse_expression(partition_key))
            if isinstance(n, nodes.Identifier)
        }
        return partition_key if used <= set(self._keys) else ""

    def partitions_sql(self, expected: str) -> str:
        """Return a query of the partitions that the model or the source has, as texts of the
        partition key."""
        return (
            f"SELECT DISTINCT {self._partition_text()} AS partition FROM ({self._sides(expected)})"
        )

    def sql(self, expected: str, partitions: Sequence[str]) -> str:
        """Return a query with a row for each partition that differs: the numbers of rows that are
        missing, extra and differing, and up to five keys. `partitions` limits it to these texts of
        the key; empty means all."""
        grouped = ", ".join(quote(k) for k in self._keys)
        columns = [grouped] if grouped else []
        columns += ["countIf(__side = 0) AS __read", "countIf(__side = 1) AS __expected"]
        differences = ["__read != __expected"]
        for index, (name, data_type) in enumerate(self._values):
            for side, label in ((0, "r"), (1, "e")):
                columns.append(f"anyIf({quote(name)}, __side = {side}) AS __{label}{index}")
            differences.append(f"NOT ({self._equal(index, data_type)})")
        # Without keys the model is compared as one row, without GROUP BY.
        group_by = f" GROUP BY {grouped}" if grouped else ""
        among = ""
        if partitions:
            listed = ", ".join(string_literal(p) for p in partitions)
            among = f" WHERE {self._partition_text()} IN ({listed})"
        compared = f"SELECT {', '.join(columns)} FROM ({self._sides(expected)}){among}{group_by}"
        text = ", ".join(f"toString({quote(k)})" for k in self._keys) or "''"
        return (
            f"SELECT {self._partition_text()} AS partition, "
            "sumIf(__expected - __read, __expected > __read) AS missing, "
            "sumIf(__read - __expected, __read > __expected) AS extra, "
            "countIf(__read = __expected) AS differing, "
            f"groupArray(5)(toString(tuple({text}))) AS keys "
            f"FROM ({compared}) WHERE {' OR '.join(differences)} "
            "GROUP BY partition ORDER BY partition"
        )

    def _sides(self, expected: str) -> str:
        """Return a query of the rows that users read (`__side` 0) and of those that the source
        gives (`__side` 1)."""
        columns = ", ".join(quote(n) for n in (*self._keys, *(n for n, _ in self._values)))
        where = f" WHERE {self._comparison.where}" if self._comparison.where else ""
        relation = Warehouse.sql_name(self._names, self._names.model)
        return (
            f"SELECT 0 AS __side, {columns} FROM {relation}{where} UNION ALL "
            f"SELECT 1 AS __side, {columns} FROM ({expected}){where}"
        )

    def _partition_text(self) -> str:
        """Return SQL for a row's partition as text; '' if the compared columns do not determine it."""
        return f"toString({self.partition})" if self.partition else "''"

    def _equal(self, index: int, data_type: DataType) -> str:
        """Return SQL for whether both values of a column are equal: NULL equals NULL, NaN equals
        NaN, and numbers may differ by the relative tolerance."""
        read, expected = f"__r{index}", f"__e{index}"
        equal = f"ifNull({read} = {expected}, 0) OR (isNull({read}) AND isNull({expected}))"
        inner = str(data_type).removeprefix("Nullable(")
        floats = inner.startswith(("Float", "BFloat"))
        tolerance = max(self._comparison.tolerance, FLOAT_TOLERANCE if floats else 0.0)
        if floats:
            equal += f" OR ifNull(isNaN({read}) AND isNaN({expected}), 0)"
        if tolerance and (floats or inner.startswith(("Int", "UInt", "Decimal"))):
            left, right = f"toFloat64({read})", f"toFloat64({expected})"
            largest = f"greatest(abs({left}), abs({right}))"
            equal += f" OR ifNull(abs({left} - {right}) <= {tolerance!r} * {largest}, 0)"
        return equal


def _expressions(view: ViewInfo) -> dict[str, nodes.Node]:
    """Return the expressions of the read view's columns by name."""
    outputs = view.read[0] if view.read else ""
    query = parse_query(f"SELECT {outputs} FROM {STATES}")
    assert isinstance(query, nodes.Select)
    return {c.name: c.expression for c in query.columns if isinstance(c, nodes.Alias)}


def tested_relation(model: object) -> tuple[ModelNames, str]:
    """Return the names of the model that a generic test tests, and its condition, "" for none.

    `model` is what dbt passes to the test: a relation, or with the test's config `where` the text
    `(select * from relation where condition) dbt_subquery`. Raises CompilationError for any other
    query."""
    schema, identifier = getattr(model, "schema", None), getattr(model, "identifier", None)
    if schema and identifier:
        return ModelNames(str(schema), str(identifier)), ""
    query = parse_query(f"select * from {model}")
    if isinstance(query, nodes.Select) and isinstance(query.source, nodes.SubqueryRelation):
        query = query.source.query
    source = query.source if isinstance(query, nodes.Select) else None
    if not isinstance(query, nodes.Select) or not isinstance(source, nodes.TableReference):
        raise CompilationError(f"A test of an incremental_mv takes a model, not {model}.")
    where = to_sql(query.where) if query.where is not None else ""
    return ModelNames(source.table.database or "", source.table.name), where

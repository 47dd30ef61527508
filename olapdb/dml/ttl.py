"""TTL: removes expired rows, in one commit for a table.

    TTL d + INTERVAL 1 MONTH                     every row, a month after d
    TTL d + INTERVAL 1 DAY WHERE kind = 'debug'  just these, a day after

Expired rows stay until a pass removes them, as in ClickHouse: in the background, before OPTIMIZE
merges, or by MATERIALIZE TTL.  A pass judges parts by the bounds of their columns where it can. A
part without expired rows is not opened. A part that expired as a whole is dropped; it is read only
where views need its rows.

The rows leave by retention (rule 4): what views computed from them is frozen, unless the table sets
`ttl_retain = 0`.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from olapdb.bind import BindScope, bind_expression
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.staging import Staging
from olapdb.compute.evaluate import evaluate_array
from olapdb.dml.delete import DeleteResult, remove_rows
from olapdb.dml.find_rows import matching_offsets
from olapdb.errors import Error, InternalError
from olapdb.lineage.row_removal import RowChange, stored_table
from olapdb.model.columns import PartColumns
from olapdb.model.part import ColumnBounds, Part
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression
from olapdb.runtime.services import Services
from olapdb.sql import nodes
from olapdb.sql.parser import parse
from olapdb.types import Date, Date32, Interval, plain

ExpiredShare: TypeAlias = Literal["none", "some", "all"]


@dataclass(frozen=True, slots=True)
class TtlRule:
    """A rule that removes rows whose `expires` has passed and for which `where` holds (None:
    always)."""

    expires: nodes.Expression
    where: nodes.Expression | None


def ttl_rules(table: Table) -> tuple[TtlRule, ...]:
    """Parse the table's TTL text into its rules."""
    if not table.ttl:
        return ()
    statement = parse(f"ALTER TABLE t MODIFY TTL {table.ttl}")[0]
    if not isinstance(statement, nodes.Alter):
        raise InternalError(f"The TTL of {table.name} cannot be read: {table.ttl}")
    return tuple(
        TtlRule(item.expression, item.where)
        for action in statement.actions
        if isinstance(action, nodes.ModifyTtl)
        for item in action.ttl
    )


def apply_ttl(
    origin: CommitOrigin, table_id: str, *, partition_id: str | None = None
) -> DeleteResult:
    """Remove the rows that have expired by now, in one commit; `commit` is None if no row had
    expired.

    Raises CommitConflict, with nothing changed, where concurrent commits kept changing the parts.
    """
    services = origin.services
    origin = replace(origin, environment=services.environment(origin.query_id))
    table_now = services.catalog.snapshot().by_id(table_id)
    retain = bool(table_now.setting("ttl_retain")) if isinstance(table_now, Table) else True
    change = RowChange(origin, "TTL", retain=retain)

    def attempt(snapshot: Snapshot, staging: Staging) -> DeleteResult:
        """Remove the expired rows of the partition, or of the table, in one commit."""
        table = stored_table(snapshot, table_id, "TTL")
        expired = _expired_rows(change, snapshot, table, partition_id)
        return remove_rows(change, snapshot, table, expired, staging)

    return change.until_published(attempt)


def _expired_rows(
    change: RowChange, snapshot: Snapshot, table: Table, partition_id: str | None
) -> list[tuple[Part, np.ndarray | None]]:
    """Return each part with expired rows, and their offsets in it (None: all of them)."""
    rules = _ExpiryRules(table, change.origin.services)
    expired_parts: list[tuple[Part, np.ndarray | None]] = []
    partly_expired: list[Part] = []
    for part in snapshot.parts(table.id):
        if not part.rows or partition_id not in (None, part.partition_id):
            continue
        match rules.share(part):
            case "all":
                expired_parts.append((part, None))
            case "some":
                partly_expired.append(part)
    if not partly_expired:
        return expired_parts
    offsets_of_parts = matching_offsets(
        change.context(snapshot), table, partly_expired, rules.condition(), parameters=None
    )
    if table.setting("ttl_only_drop_parts"):
        offsets_of_parts = [
            (part, offsets) for part, offsets in offsets_of_parts if len(offsets) == part.rows
        ]
    return [*expired_parts, *offsets_of_parts]


class _ExpiryRules:
    """The rules of one version of a table, applied at one moment."""

    def __init__(self, table: Table, services: Services) -> None:
        self._rules = ttl_rules(table)
        self._now = datetime.datetime.fromtimestamp(
            services.clock_ms() / 1000, ZoneInfo(services.zone)
        )
        self._environment = services.environment()
        scope = BindScope(
            snapshot=services.catalog.snapshot(),
            database=table.database,
            environment=self._environment,
        )
        self._bound = [bind_expression(rule.expires, table, scope) for rule in self._rules]
        self._columns = PartColumns(table)

    def condition(self) -> nodes.Expression:
        """Return a condition that is true for expired rows. The start of time never expires, as
        in ClickHouse."""
        alternatives: list[nodes.Expression] = []
        for rule, bound in zip(self._rules, self._bound, strict=True):
            needed: list[nodes.Expression] = [
                nodes.Function("lessOrEquals", (rule.expires, self._now_expression(bound))),
                nodes.Function("notEquals", (nodes.Function("toInt64", (rule.expires,)), _ZERO)),
            ]
            if rule.where is not None:
                needed.append(rule.where)
            alternatives.append(nodes.Function("and", tuple(needed)))
        if len(alternatives) == 1:
            return alternatives[0]
        return nodes.Function("or", tuple(alternatives))

    def share(self, part: Part) -> ExpiredShare:
        """Return how much of the part has expired by its bounds; "some" where they do not
        suffice."""
        shares = [
            self._rule_share(part, r, b) for r, b in zip(self._rules, self._bound, strict=True)
        ]
        if "all" in shares:
            return "all"
        return "some" if "some" in shares else "none"

    def _rule_share(self, part: Part, rule: TtlRule, bound: Expression) -> ExpiredShare:
        """Return how much of the part the rule has expired: "all", "some" or "none".

        The part's bounds decide; "some" also means that they do not tell.
        """
        ends = self._expiry_range(part, bound)
        if ends is None:
            return "some"
        low, high, nulls = ends
        now = self._now_ticks(bound)
        if low > now:
            return "none"
        if high <= now and low > 0 and not nulls and rule.where is None:
            return "all"
        return "some"

    def _expiry_range(self, part: Part, bound: Expression) -> tuple[int, int, int] | None:
        """Return the earliest and the latest expiry in the part, as ticks of the expression's
        type, and the NULL count of its column. None if the bounds are unknown."""
        column = _monotonic_column(bound)
        if column is None:
            return None
        bounds: ColumnBounds | None = self._columns.bounds(part).get(column.name)
        if bounds is None or bounds[0] is None:
            return None
        arrow = column.type.arrow
        try:
            values = pa.array([bounds[0], bounds[1]], _integers(arrow)).view(arrow)
            batch = pa.RecordBatch.from_arrays([values], names=[column.name])
            expiries = evaluate_array(bound, batch, self._environment)
        except (Error, pa.ArrowException, TypeError, OverflowError):
            return None
        if expiries.null_count:
            return None
        low, high = expiries.view(_integers(expiries.type)).cast(pa.int64()).to_pylist()
        if low > high:  # the addition overflowed the type's last date
            return None
        return low, high, int(bounds[2])

    def _now_ticks(self, bound: Expression) -> int:
        """Return the current time, as ticks of the expression's type."""
        if isinstance(plain(bound.type), Date | Date32):
            return self._now.date().toordinal() - datetime.date(1970, 1, 1).toordinal()
        seconds = int(self._now.timestamp())
        return seconds * _TICKS_PER_SECOND[bound.type.arrow.unit]

    def _now_expression(self, bound: Expression) -> nodes.Expression:
        """Return the current time as an expression of the same kind (Date32 or DateTime)."""
        if isinstance(plain(bound.type), Date | Date32):
            return nodes.Function("toDate32", (nodes.Literal(self._now.date().isoformat()),))
        seconds = nodes.Literal(int(self._now.timestamp()), str(int(self._now.timestamp())))
        return nodes.Function("toDateTime", (seconds,))


_INTERVAL_FUNCTIONS = ("plus", "minus")
_ZERO = nodes.Literal(0, "0")
_TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _integers(arrow: pa.DataType) -> pa.DataType:
    """Return the integer type of the same width (int32 or int64) as a date or time type."""
    return pa.int32() if arrow.bit_width == 32 else pa.int64()


def _monotonic_column(expression: Expression) -> ColumnRef | None:
    """Return the single column of an expression that never decreases as the column grows. None
    for any other expression, and for types whose bounds are not ticks."""
    match expression:
        case ColumnRef():
            kind = expression.type.arrow
            is_time = pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
            return expression if is_time else None
        case Call(arguments=(moved, Constant(type=Interval()))) if (
            expression.name in _INTERVAL_FUNCTIONS
        ):
            return _monotonic_column(moved)
        case Call(arguments=arguments) if expression.function.monotonic:
            moving = [one for one in arguments if not isinstance(one, Constant)]
            return _monotonic_column(moving[0]) if len(moving) == 1 else None
        case _:
            return None

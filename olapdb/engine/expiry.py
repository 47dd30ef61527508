"""When rows expire: the rules of a table's TTL, and the expression of one over one version of the table,
at one moment."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.bind import BindScope, bind_expression
from olapdb.compute.evaluate import evaluate_array
from olapdb.errors import Error, InternalError
from olapdb.functions.base import Environment
from olapdb.model.columns import PartColumns
from olapdb.model.part import ColumnBounds, Part
from olapdb.model.schema import Table
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression, columns_of
from olapdb.records import dataclass
from olapdb.runtime.services import Services
from olapdb.sql import nodes
from olapdb.sql.parser import parse
from olapdb.types import Date, Date32, Interval, plain

ExpiredShare: TypeAlias = Literal["none", "some", "all"]


def ttl_rules(table: Table) -> tuple[nodes.TtlItem, ...]:
    """Parse the table's TTL text into its rules."""
    if not table.ttl:
        return ()
    statement = parse(f"ALTER TABLE t MODIFY TTL {table.ttl}")[0]
    if not isinstance(statement, nodes.Alter):
        raise InternalError(f"The TTL of {table.name} cannot be read: {table.ttl}")
    return tuple(
        item
        for action in statement.actions
        if isinstance(action, nodes.ModifyTtl)
        for item in action.ttl
    )


def rule_expressions(rule: nodes.TtlItem) -> tuple[nodes.Expression, ...]:
    """Return all expressions of a rule, which read columns of the table."""
    where = () if rule.where is None else (rule.where,)
    values = (value for _, value in rule.assignments)
    return (rule.expression, *where, *rule.group_by, *values)


@dataclass(frozen=True)
class Expiry:
    """The rows of a table that have expired by `now`: those whose `expires` has passed and for which
    `where` holds (None: always)."""

    expires: nodes.Expression
    where: nodes.Expression | None
    now: datetime.datetime
    _bound: Expression
    _environment: Environment
    _columns: PartColumns

    @staticmethod
    def of(
        expires: nodes.Expression,
        table: Table,
        services: Services,
        where: nodes.Expression | None = None,
    ) -> Expiry:
        """Return the expiry of the table's rows at the present time."""
        environment = services.environment()
        scope = BindScope(
            snapshot=services.catalog.snapshot(), database=table.database, environment=environment
        )
        now = datetime.datetime.fromtimestamp(services.clock_ms() / 1000, ZoneInfo(services.zone))
        bound = bind_expression(expires, table, scope)
        return Expiry(expires, where, now, bound, environment, PartColumns(table))

    def condition(self) -> nodes.Expression:
        """Return a condition that is true for expired rows. The start of time never expires, as in
        ClickHouse."""
        needed: list[nodes.Expression] = [
            nodes.Function("lessOrEquals", (self.expires, self._now_expression())),
            nodes.Function("notEquals", (nodes.Function("toInt64", (self.expires,)), _ZERO)),
        ]
        if self.where is not None:
            needed.append(self.where)
        return nodes.Function("and", tuple(needed))

    def share(self, part: Part) -> ExpiredShare:
        """Return how much of the part has expired: "all", "some" or "none".

        The part's bounds decide; "some" also means that they do not tell.
        """
        ends = self._expiry_range(part)
        if ends is None:
            return "some"
        low, high, nulls = ends
        now = self._now_ticks()
        if low > now:
            return "none"
        if high <= now and low > 0 and not nulls and self.where is None:
            return "all"
        return "some"

    @property
    def columns(self) -> frozenset[str]:
        """Return the names of the columns that the expression reads."""
        return frozenset(columns_of(self._bound))

    def latest(self, part: Part) -> float | None:
        """Return when the last row of the part expires, in seconds since 1970. None if the part's
        bounds do not tell."""
        ends = self._expiry_range(part)
        return None if ends is None or ends[2] else self._seconds(ends[1])

    def latest_of(self, rows: pa.Table) -> float:
        """Return when the last of these rows, at least one, expires, in seconds since 1970. `rows`
        have the columns that the expression reads."""
        batch = rows.select(sorted(self.columns)).combine_chunks().to_batches()[0]
        expiries = evaluate_array(self._bound, batch, self._environment)
        ticks = expiries.view(_integers(expiries.type)).cast(pa.int64())
        return self._seconds(pc.max(ticks).as_py())

    def _seconds(self, ticks: int) -> float:
        """Return the seconds since 1970 of a time in ticks of the expression's type; a day begins
        in the zone of `now`."""
        if not isinstance(plain(self._bound.type), Date | Date32):
            return ticks / _TICKS_PER_SECOND[self._bound.type.arrow.unit]
        day = datetime.date(1970, 1, 1) + datetime.timedelta(days=ticks)
        return datetime.datetime.combine(day, datetime.time(), self.now.tzinfo).timestamp()

    def _expiry_range(self, part: Part) -> tuple[int, int, int] | None:
        """Return the earliest and the latest expiry in the part, as ticks of the expression's type,
        and the NULL count of its column. None if the bounds are unknown."""
        column = _monotonic_column(self._bound)
        if column is None:
            return None
        bounds: ColumnBounds | None = self._columns.bounds(part).get(column.name)
        if bounds is None or bounds[0] is None:
            return None
        arrow = column.type.arrow
        try:
            values = pa.array([bounds[0], bounds[1]], _integers(arrow)).view(arrow)
            batch = pa.RecordBatch.from_arrays([values], names=[column.name])
            expiries = evaluate_array(self._bound, batch, self._environment)
        except (Error, pa.ArrowException, TypeError, OverflowError):
            return None
        if expiries.null_count:
            return None
        low, high = expiries.view(_integers(expiries.type)).cast(pa.int64()).to_pylist()
        if low > high:  # the addition overflowed the type's last date
            return None
        return low, high, int(bounds[2])

    def _now_ticks(self) -> int:
        """Return the current time, as ticks of the expression's type."""
        if isinstance(plain(self._bound.type), Date | Date32):
            return self.now.date().toordinal() - datetime.date(1970, 1, 1).toordinal()
        return int(self.now.timestamp()) * _TICKS_PER_SECOND[self._bound.type.arrow.unit]

    def _now_expression(self) -> nodes.Expression:
        """Return the current time as an expression of the same kind (Date32 or DateTime)."""
        if isinstance(plain(self._bound.type), Date | Date32):
            return nodes.Function("toDate32", (nodes.Literal(self.now.date().isoformat()),))
        seconds = nodes.Literal(int(self.now.timestamp()), str(int(self.now.timestamp())))
        return nodes.Function("toDateTime", (seconds,))


def expiry_condition(expiries: Sequence[Expiry]) -> nodes.Expression:
    """Return a condition that is true for rows that have expired by one of these, at least one."""
    alternatives = tuple(expiry.condition() for expiry in expiries)
    return alternatives[0] if len(alternatives) == 1 else nodes.Function("or", alternatives)


def expired_share(expiries: Sequence[Expiry], part: Part) -> ExpiredShare:
    """Return how much of the part has expired by one of these."""
    shares = [expiry.share(part) for expiry in expiries]
    if "all" in shares:
        return "all"
    return "some" if "some" in shares else "none"


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
            moving = [argument for argument in arguments if not isinstance(argument, Constant)]
            return _monotonic_column(moving[0]) if len(moving) == 1 else None
        case _:
            return None

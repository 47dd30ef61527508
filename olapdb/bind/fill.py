"""ORDER BY … WITH FILL and INTERPOLATE: from the clauses to the plan's Fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.bind import constants
from olapdb.bind.contracts import Binder
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.relation import Relation, RelationColumn
from olapdb.errors import InvalidWithFillExpression, NotSupportedError, UnknownIdentifier
from olapdb.functions.kernels import wide_numbers
from olapdb.functions.kernels.calendar import ticks_per_second
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Constant, Expression
from olapdb.sql import nodes as sql
from olapdb.types import (
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Float,
    Integer,
    Interval,
    WideNumber,
    plain,
)

_SECONDS = {"Second": 1, "Minute": 60, "Hour": 3600, "Day": 86_400, "Week": 604_800}
_FRACTIONS = {"Millisecond": 10**3, "Microsecond": 10**6, "Nanosecond": 10**9}
_MONTHS = {"Month": 1, "Quarter": 3, "Year": 12}
_DAY_SECONDS = 86_400

Number: TypeAlias = int | float


def with_fill(
    select: sql.Select,
    binder: Binder,
    node: plan.Node,
    keys: Sequence[tuple[plan.SortKey, sql.Fill | None]],
    outputs: Mapping[str, ColumnRef],
) -> plan.Node:
    """Return the node under the Fill that the SELECT's WITH FILL asks for, unchanged without it.

    `keys` are those of ORDER BY; `outputs` the columns of SELECT by their result names. Raises
    InvalidWithFillExpression for bounds that do not fit, NotSupportedError for INTERPOLATE beside
    several filled keys. The rows that fill a key are filled by the keys behind it. Under
    `use_with_fill_by_sorting_prefix = 0` the rows of all prefixes are filled as one series."""
    by_prefix = binder.context.flag("use_with_fill_by_sorting_prefix")
    filled = [at for at, (_, fill) in enumerate(keys) if fill is not None]
    if not filled and select.interpolate is None:
        return node
    _check_keys(select, keys, filled, by_prefix=by_prefix)
    ordered = {k.expression.name for k, _ in keys if isinstance(k.expression, ColumnRef)}
    interpolated = _interpolated(select, binder, outputs, ordered)
    clauses = {at: _Clause(binder, fill, key) for at, (key, fill) in enumerate(keys) if fill}
    starts: dict[int, Number | None] = {at: clause.start() for at, clause in clauses.items()}
    for at, clause in clauses.items():
        # a row that fills this key begins where the keys behind it begin
        begins = tuple(
            (later.column.name, later.constant(start))
            for place, later in clauses.items()
            if place > at and (start := starts[place]) is not None
        )
        prefix = tuple(k.expression for k, _ in keys[:at] if isinstance(k.expression, ColumnRef))
        if not by_prefix and at == filled[0]:
            prefix = ()
        node = clause.over(node, prefix, starts[at], (*interpolated, *begins))
    return node


def _check_keys(
    select: sql.Select,
    keys: Sequence[tuple[plan.SortKey, sql.Fill | None]],
    filled: Sequence[int],
    *,
    by_prefix: bool,
) -> None:
    """Refuse keys of ORDER BY that cannot be filled together; `filled` are the positions of those WITH FILL.

    `by_prefix` is the setting `use_with_fill_by_sorting_prefix`."""
    if not filled:
        raise InvalidWithFillExpression(
            "INTERPOLATE needs an ORDER BY … WITH FILL.", position=select.position
        )
    if len(filled) > 1 and select.interpolate is not None:
        raise NotSupportedError(
            "INTERPOLATE beside WITH FILL of several keys is not supported.",
            hint="Fill one key, or compute the columns in a SELECT around this one.",
            position=select.position,
        )
    if list(filled) != list(range(filled[0], filled[0] + len(filled))):
        raise NotSupportedError(
            "A key without WITH FILL between two that have it is not supported.",
            hint="Fill keys that stand beside each other.",
            position=select.position,
        )
    expressions = [key.expression for key, _ in keys]
    if any(expressions.count(expressions[at]) > 1 for at in filled):
        raise InvalidWithFillExpression(
            "A key WITH FILL is the same expression as another key.", position=select.position
        )
    if not by_prefix and filled[0]:
        _check_single_series(select, keys, filled)


def _check_single_series(
    select: sql.Select, keys: Sequence[tuple[plan.SortKey, sql.Fill | None]], filled: Sequence[int]
) -> None:
    """Refuse what cannot be filled where the rows of all prefixes are one series."""
    if len(filled) > 1:
        raise NotSupportedError(
            "WITH FILL of several keys behind a key without it is not supported beside"
            " use_with_fill_by_sorting_prefix = 0.",
            hint="Fill one key, or leave the setting at 1.",
            position=select.position,
        )
    if any(fill and fill.staleness for _, fill in keys):
        raise NotSupportedError(
            "STALENESS is not supported beside use_with_fill_by_sorting_prefix = 0.",
            position=select.position,
        )


class _Clause:
    """The clause WITH FILL of one key: its numbers, in the units of the key's column."""

    def __init__(self, binder: Binder, fill: sql.Fill, key: plan.SortKey) -> None:
        self._binder, self._fill, self._key = binder, fill, key
        self._type = plain(key.expression.type)
        if not isinstance(
            self._type, Integer | WideNumber | Float | Date | Date32 | DateTime | DateTime64
        ):
            raise self._invalid(f"WITH FILL is for numbers, dates and times, not {self._type}.")
        is_time = isinstance(self._type, DateTime | DateTime64)
        self._per_second = ticks_per_second(self._type) if is_time else 0
        self.ticks_per_day = self._per_second * _DAY_SECONDS or 1

    @property
    def column(self) -> ColumnRef:
        """Return the column of the key."""
        assert isinstance(self._key.expression, ColumnRef)
        return self._key.expression

    def start(self) -> Number | None:
        """Return FROM in the units of the column, None where it was left out."""
        return self.bound(self._fill.start, "FROM")

    def constant(self, value: Number) -> Constant:
        """Return a value in the units of the column as a constant of its type."""
        arrow = self.column.type.arrow
        if isinstance(self._type, WideNumber):
            column = wide_numbers.column_of(
                wide_numbers.limbs_from_python(np.array([value], object)), self._type
            )
            return Constant(self.column.type, column[0])
        if not pa.types.is_temporal(arrow):
            return Constant(self.column.type, pa.scalar(value, arrow))
        stored = pa.int32() if arrow.bit_width == 32 else pa.int64()
        return Constant(self.column.type, pa.array([value], stored).view(arrow)[0])

    def over(
        self,
        node: plan.Node,
        prefix: tuple[ColumnRef, ...],
        start: Number | None,
        computed: tuple[tuple[str, Expression], ...],
    ) -> plan.Fill:
        """Return a Fill of this clause over the node, one fill for each value of `prefix`.

        `start` is FROM; `computed` are the columns that INTERPOLATE computes in a filled row."""
        step, months = self.step()
        stop = self.bound(self._fill.stop, "TO")
        self.check_direction(start, stop)
        return plan.Fill(
            node,
            self.column,
            self._key.descending,
            self._key.nulls_first,
            prefix,
            start,
            stop,
            step,
            months,
            self.staleness(),
            self.ticks_per_day,
            computed,
        )

    def _invalid(self, text: str) -> InvalidWithFillExpression:
        """Return the error of this clause."""
        return InvalidWithFillExpression(text, position=self._fill.position)

    def step(self) -> tuple[Number, int]:
        """Return (step in the column's units, 0) or, for a step of months, (0, months).

        Both are negative for a descending key.

        Raises InvalidWithFillExpression."""
        if self._fill.step is None:
            unit = self._per_second or 1
            return (-unit if self._key.descending else unit), 0
        step, months = self._distance(self._fill.step, "STEP")
        size = step or months
        if not size:
            raise self._invalid("The STEP of WITH FILL cannot be zero.")
        if (size < 0) != self._key.descending:
            word = "descending" if self._key.descending else "ascending"
            sign = "negative" if self._key.descending else "positive"
            raise self._invalid(f"The STEP of WITH FILL must be {sign} in {word} order.")
        return step, months

    def staleness(self) -> Number | None:
        """Return how far behind a row values are filled, None for any distance.

        Raises InvalidWithFillExpression and NotSupportedError."""
        if self._fill.staleness is None:
            return None
        if self._fill.start is not None:
            raise self._invalid("STALENESS cannot be used together with FROM.")
        distance, months = self._distance(self._fill.staleness, "STALENESS")
        if months:
            raise NotSupportedError(
                "STALENESS of months is not supported.",
                hint="Give it in days.",
                position=self._fill.position,
            )
        if not distance or (distance < 0) != self._key.descending:
            raise self._invalid("STALENESS must have the sign of the STEP.")
        return distance

    def _distance(self, node: sql.Expression, clause: str) -> tuple[Number, int]:
        """Return a number or an INTERVAL as (ticks, 0) or, of months, (0, months).

        Raises InvalidWithFillExpression."""
        if (interval := self._interval(node, clause)) is None:
            number = self._constant(node, clause)
            is_whole = isinstance(plain(number.type), Integer | WideNumber)
            if not is_whole and not isinstance(self._type, Float):
                raise self._invalid(f"The {clause} of {self._type} is an integer or an INTERVAL.")
            value = _python(number)
            return (value * (self._per_second or 1)), 0
        if isinstance(self._type, Integer | WideNumber | Float):
            raise self._invalid(f"A {clause} of type INTERVAL is for dates and times.")
        amount, unit = interval
        self._refuse_zone(unit)
        if unit in _MONTHS:
            return 0, amount * _MONTHS[unit]
        if unit in _FRACTIONS:
            ticks, rest = divmod(amount * self._per_second, _FRACTIONS[unit])
        else:
            seconds = amount * _SECONDS[unit]
            per_second, day = self._per_second, _DAY_SECONDS
            ticks, rest = (seconds * per_second, 0) if per_second else divmod(seconds, day)
        if rest or (unit in _FRACTIONS and not self._per_second):
            raise self._invalid(f"A {clause} of {unit} is less than {self._type} can hold.")
        return ticks, 0

    def _interval(self, node: sql.Expression, clause: str) -> tuple[int, str] | None:
        """Return how many units an interval is, and the unit; None for another type. Raises
        InvalidWithFillExpression for an interval that is no constant."""
        bound = self._binder.bind(node)
        kind = plain(bound.type)
        if not isinstance(kind, Interval):
            return None
        if not isinstance(bound, Constant) or not bound.value.is_valid:
            raise self._invalid(f"The {clause} of WITH FILL must be a constant.")
        return int(bound.value.as_py()), kind.unit

    def _refuse_zone(self, unit: str) -> None:
        """Raise NotSupportedError for days and longer units in a zone where days differ."""
        zone = getattr(self._type, "zone", None)
        if zone not in (None, "UTC") and unit in (*_MONTHS, "Day", "Week"):
            raise NotSupportedError(
                f"WITH FILL by {unit} in the time zone {zone} is not supported.",
                hint="Fill a Date, or a time in UTC.",
                position=self._fill.position,
            )

    def bound(self, node: sql.Expression | None, clause: str) -> Number | None:
        """Return FROM or TO in the units of the column, None where it was left out.

        Raises InvalidWithFillExpression."""
        if node is None:
            return None
        constant = self._constant(node, clause)
        given = plain(constant.type)
        if isinstance(self._type, Float):
            fits = isinstance(given, Integer | Float)
        elif isinstance(self._type, Integer | WideNumber):
            fits = isinstance(given, Integer | WideNumber)
        elif isinstance(self._type, Date | Date32):
            fits = isinstance(given, Integer | Date | Date32)
        else:
            fits = isinstance(given, Integer | DateTime | DateTime64)
        if not fits:
            raise self._invalid(f"{clause} is of type {given}, the column of {self._type}.")
        if isinstance(given, Integer | WideNumber | Float):
            value = _python(constant)
            if value < 0 and isinstance(self._type, Integer | WideNumber) and not self._type.signed:
                raise self._invalid(f"{clause} is below 0, which no {self._type} is.")
            return value * (self._per_second or 1)
        return _python(constants.cast(constant, self._type, self._binder.environment))

    def check_direction(self, start: Number | None, stop: Number | None) -> None:
        """Raise InvalidWithFillExpression where TO is before FROM, or a bound beyond the type."""
        if start is not None and stop is not None:
            before = stop > start if self._key.descending else stop < start
            if before:
                raise self._invalid("The TO of WITH FILL lies before its FROM.")
        if isinstance(self._type, Integer | WideNumber):
            lowest = -(2 ** (self._type.bits - 1)) if self._type.signed else 0
            highest = 2 ** (self._type.bits - int(self._type.signed))
            for value in (start, stop):
                if value is not None and not lowest - 1 <= value <= highest:
                    raise self._invalid(f"{value} is beyond the type {self._type} of the column.")

    def _constant(self, node: sql.Expression, clause: str) -> Constant:
        """Return the constant of a clause. Raises InvalidWithFillExpression for no constant or
        NULL."""
        bound = self._binder.bind(node)
        if not isinstance(bound, Constant) or not bound.value.is_valid:
            raise self._invalid(f"The {clause} of WITH FILL must be a constant.")
        if not isinstance(
            plain(bound.type), Integer | WideNumber | Float | Date | Date32 | DateTime | DateTime64
        ):
            raise self._invalid(f"The {clause} of WITH FILL cannot be of type {bound.type}.")
        return bound


def _python(constant: Expression) -> Number:
    """Return a constant as a number: of a date or time, as it is stored."""
    assert isinstance(constant, Constant)
    value = constant.value
    if pa.types.is_temporal(value.type):
        value = value.cast(pa.int32() if value.type.bit_width == 32 else pa.int64())
    number = value.as_py()
    if isinstance(number, Decimal):  # of an integer beyond 64 bits
        return int(number)
    assert isinstance(number, int | float)
    return number


def _interpolated(
    select: sql.Select, binder: Binder, outputs: Mapping[str, ColumnRef], ordered: set[str]
) -> tuple[tuple[str, Expression], ...]:
    """Return the columns of INTERPOLATE, by plan name, with what they are computed from the row
    before. `ordered` are the plan names of ORDER BY's columns.

    Raises UnknownIdentifier and InvalidWithFillExpression."""
    if select.interpolate is None:
        return ()
    if not select.interpolate:
        return tuple((c.name, c) for c in outputs.values() if c.name not in ordered)
    columns = [RelationColumn(name, c.type, lambda c=c: c) for name, c in outputs.items()]  # type: ignore[misc]
    over = ExpressionBinder(
        binder.queries, Relation(columns, _unbuilt, "the result"), binder.context
    )
    items: list[tuple[str, Expression]] = []
    for name, expression in select.interpolate:
        column = outputs.get(name)
        if column is None:
            raise UnknownIdentifier(
                f"INTERPOLATE: SELECT has no column {name!r}.", position=select.position
            )
        if column.name in ordered:
            raise InvalidWithFillExpression(
                f"INTERPOLATE: {name!r} is a column of ORDER BY.", position=select.position
            )
        bound: Expression = column if expression is None else over.bind(expression)
        items.append((column.name, _as(bound, column.type, binder)))
    return tuple(items)


def _as(expression: Expression, data_type: DataType, binder: Binder) -> Expression:
    """Return the expression cast to this type, unchanged if it has it."""
    if expression.type == data_type:
        return expression
    return constants.cast(expression, data_type, binder.environment)


def _unbuilt() -> plan.Node:
    """Raise AssertionError: this relation only resolves names, it has no plan node."""
    raise AssertionError("INTERPOLATE has no rows of its own.")

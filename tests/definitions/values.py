"""When two Python values are equal, within the precision of their column's type."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

_DAYS_MAX = 65_535


def hashable(value: Any) -> Any:
    """Return the value in a form that a dictionary key may have; all NaN are equal."""
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, list | tuple):
        return tuple(hashable(v) for v in value)
    if isinstance(value, dict):
        return tuple(sorted((hashable(k), hashable(v)) for k, v in value.items()))
    return value


def is_nothing(value: Any) -> bool:
    """Return whether the value is NULL, NaN, zero or empty."""
    return not value or (isinstance(value, float) and math.isnan(value))


def normal(value: Any, kind: str) -> Any:
    """Return a sort key that puts values that should be equal side by side."""
    if isinstance(value, int) and kind.partition(" of ")[0].endswith(("Date", "Date32")):
        return day(value) or value
    if isinstance(value, date) and not isinstance(value, datetime) and "Int" in kind:
        return (value - date(1970, 1, 1)).days  # a Date that a column of integers holds
    if isinstance(value, Decimal | float | int) and not isinstance(value, bool):
        if value != value:
            return "nan"
        if "Float" in kind or isinstance(value, float):
            value = float(f"{float(value):.5g}")
        return int(value) if math.isfinite(value) and value == int(value) else float(value)
    if isinstance(value, str) and "FixedString" in kind:
        return value.rstrip("\0")
    if kind.partition(" of ")[0].endswith("Date") and isinstance(value, datetime):
        return value.date()
    if isinstance(value, date) and not isinstance(value, datetime) and "DateTime" in kind:
        return datetime.combine(value, time.min)
    if isinstance(value, str) and "DateTime" in kind:
        return moment(value) or value
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return value


def moment(text: str) -> datetime | None:
    """Return the time that a text says, None if it says none."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


def day(number: int) -> date | None:
    """Return the date that a number becomes in a Date column: days, or seconds beyond 65,535; None
    outside of a Date's range."""
    days = number if number <= _DAYS_MAX else number // 86_400
    return date(1970, 1, 1) + timedelta(days=days) if 0 <= days <= _DAYS_MAX else None


def same(due: Any, there: Any, kind: str, *, exact: bool = False) -> bool:
    """Return whether the values are equal; floats within the precision of their type, unless `exact`."""
    if due is None or there is None:
        return due is None and there is None
    if isinstance(due, bool | int | float | Decimal) and isinstance(
        there, bool | int | float | Decimal
    ):
        if due == there:
            return True
        if not (isinstance(due, float) or isinstance(there, float) or "Float" in kind):
            return False
        a, b = float(due), float(there)
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        if not isinstance(there, float):
            return False  # the target lost a fraction
        if exact and "Float32" not in kind:
            return False
        tolerance = 1e-5 if "Float32" in kind else 1e-8
        return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))
    if isinstance(there, date) and not isinstance(there, datetime) and isinstance(due, datetime):
        return due.date() == there
    if isinstance(there, datetime) and isinstance(due, date) and not isinstance(due, datetime):
        return there.replace(tzinfo=None) == datetime.combine(due, time.min)
    if isinstance(there, str) and isinstance(due, str):
        return due == there or ("FixedString" in kind and due.rstrip("\0") == there.rstrip("\0"))
    if isinstance(there, date) and not isinstance(there, datetime) and isinstance(due, int):
        return day(due) == there
    if isinstance(due, date) and not isinstance(due, datetime) and isinstance(there, int):
        return day(there) == due
    if isinstance(there, datetime) and isinstance(due, str):  # a text into a DateTime
        return moment(due) == there.replace(tzinfo=None)
    if isinstance(there, str) != isinstance(due, str):
        return str(due) == str(there)
    if isinstance(due, list | tuple) and isinstance(there, list | tuple):
        return len(due) == len(there) and all(
            same(a, b, kind, exact=exact) for a, b in zip(due, there)
        )
    if isinstance(due, dict) and isinstance(there, dict):
        return due.keys() == there.keys() and all(
            same(due[k], there[k], kind, exact=exact) for k in due
        )
    return bool(due == there)

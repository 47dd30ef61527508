"""ASOF JOIN: the one inequality that chooses, among the partners of a row, the nearest."""

from __future__ import annotations

from olapdb.bind import constants
from olapdb.errors import BadTypeOfField, InvalidJoinOnExpression, NotSupportedError
from olapdb.functions.base import Environment
from olapdb.plan.conditions import MIRRORED
from olapdb.plan.expressions import Call, Expression, columns_of
from olapdb.sql import nodes as sql
from olapdb.types import (
    Boolean,
    DataType,
    Date,
    DateTime,
    DateTime64,
    Decimal,
    Float,
    Integer,
    Time,
    Time64,
    plain,
)

_INEQUALITIES = MIRRORED.keys() - {"equals"}


def refuse_kind(join: sql.Join) -> None:
    """Raise NotSupportedError for an ASOF JOIN that is not INNER or LEFT."""
    if join.kind not in ("INNER", "LEFT"):
        raise NotSupportedError(
            f"ASOF {join.kind} JOIN is not supported; ClickHouse has none either.",
            hint="Write ASOF JOIN or ASOF LEFT JOIN.",
            position=join.position,
        )


def inequality(
    condition: Expression, left: frozenset[str], right: frozenset[str]
) -> tuple[str, Expression, Expression] | None:
    """Return (operator, left side, right side) of an inequality between the joined sides.

    `left` and `right` are the columns of the sides. None for any other condition."""
    if not isinstance(condition, Call) or condition.name not in _INEQUALITIES:
        return None
    first, second = condition.arguments
    names, other = columns_of(first), columns_of(second)
    if not names or not other:
        return None
    if names <= left and other <= right:
        return condition.name, first, second
    if names <= right and other <= left:
        return MIRRORED[condition.name], second, first
    return None


def check(
    join: sql.Join, nearest: tuple[str, Expression, Expression] | None
) -> tuple[str, Expression, Expression]:
    """Return the inequality of an ASOF JOIN.

    Raises InvalidJoinOnExpression without an inequality, BadTypeOfField where it compares neither numbers nor
    times."""
    if nearest is None:
        raise InvalidJoinOnExpression(
            "ASOF JOIN needs one inequality (<, <=, > or >=) between its sides.",
            hint="Write ON a.key = b.key AND a.time >= b.time.",
            position=join.position,
        )
    for side in nearest[1:]:
        if not _is_ordered(side.type):
            raise BadTypeOfField(
                f"ASOF JOIN compares numbers, dates and times, not {side.type}.",
                position=join.position,
            )
    return nearest


def condition_of(
    operator: str, left: Expression, right: Expression, environment: Environment
) -> Expression:
    """Return the inequality as the residual of a plan's Join, whose arguments are `left`, `right`."""
    return constants.call(operator, (left, right), environment)


def _is_ordered(data_type: DataType) -> bool:
    """Return whether ASOF JOIN can find the nearest value of this type."""
    kinds = Integer | Float | Decimal | Date | DateTime | DateTime64 | Time | Time64 | Boolean
    return isinstance(plain(data_type), kinds)

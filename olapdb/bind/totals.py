"""WITH TOTALS: a further row over all groups, apart from the rows of the result."""

from __future__ import annotations

from dataclasses import replace

from olapdb.bind.array_joins import refuse_unnested
from olapdb.bind.contracts import BindContext
from olapdb.errors import NotSupportedError
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import Expression
from olapdb.sql import nodes as sql


def with_totals(
    aggregate: plan.Aggregate, select: sql.Select, having: Expression | None, context: BindContext
) -> plan.Aggregate:
    """Return the Aggregate with the totals that the SELECT asks for; unchanged without WITH TOTALS.

    `having` is HAVING over the groups. Raises NotSupportedError, as ClickHouse does, beside
    GROUPING SETS, and beside ROLLUP or CUBE with HAVING."""
    if not select.with_totals:
        return aggregate
    if select.grouping == "SETS":
        raise NotSupportedError(
            "WITH TOTALS and GROUPING SETS are not supported together.",
            hint="Add the set (): GROUPING SETS ((a), ()).",
            position=select.position,
        )
    if having is None:
        return replace(aggregate, totals=plan.Totals())
    if select.grouping:
        raise NotSupportedError(
            f"WITH TOTALS and {select.grouping} are not supported together with HAVING.",
            hint="Leave WITH TOTALS out: the set without keys is the total.",
            position=select.position,
        )
    refuse_unnested(having, "HAVING of a SELECT WITH TOTALS")
    before = context.text("totals_mode") == "before_having"
    return replace(aggregate, totals=plan.Totals(None if before else having))


def refuse_totals_without_groups(select: sql.Select) -> None:
    """Raise NotSupportedError: the SELECT has WITH TOTALS but neither GROUP BY nor aggregates."""
    raise NotSupportedError(
        "WITH TOTALS needs GROUP BY or an aggregate function.",
        hint="Leave WITH TOTALS out.",
        position=select.position,
    )

"""A seed that is loaded again: what differs from the rows that are there, and bringing them over.

The file is loaded beside the table first, so that a seed which did not change leaves the table, and
what views made of it, as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt.adapters.events.logging import AdapterLogger

from .incremental_mv.warehouse import Warehouse
from .relation import OlapdbRelation, quote

logger = AdapterLogger("olapdb")


@dataclass(frozen=True)
class SeedChange:
    """`fits`: the table has columns that take the new rows; `added` and `removed` count rows, and
    are 0 where it does not fit."""

    fits: bool
    added: int = 0
    removed: int = 0

    @property
    def is_none(self) -> bool:
        return self.fits and not self.added and not self.removed


def between(
    warehouse: Warehouse,
    new: OlapdbRelation,
    old: OlapdbRelation,
    new_types: Mapping[str, str],
    old_types: Mapping[str, str],
    exact: Mapping[str, object],
) -> SeedChange:
    """What makes the rows of `new` of those of `old`; types by column name, `exact` has the columns
    whose type is configured."""
    if set(new_types) != set(old_types):
        return SeedChange(fits=False)
    if not all(_holds(old_types[n], new_types[n], n in exact) for n in new_types):
        return SeedChange(fits=False)
    counted = warehouse.rows(
        "SELECT sumIf(__dbt_n, __dbt_n > 0) AS added, sumIf(-__dbt_n, __dbt_n < 0) AS removed "
        f"FROM ({_differences(new, old, list(new_types))})"
    )[0]
    return SeedChange(True, int(counted["added"]), int(counted["removed"]))


def bring_over(
    warehouse: Warehouse,
    new: OlapdbRelation,
    old: OlapdbRelation,
    columns: list[str],
    change: SeedChange,
) -> None:
    """Changes the rows of `old` to those of `new`: triggers fire on rows that are added; where rows
    leave too all are written again, and what views made of the old ones is stale."""
    listed = ", ".join(map(quote, columns))
    source = (
        f"({_differences(new, old, columns)}) "
        "ARRAY JOIN range(toUInt64(greatest(__dbt_n, 0))) AS __dbt_i"
    )
    if change.removed:
        logger.warning(
            f"{old.render()} is the source of triggers, and {change.removed} of its rows changed or "
            "left; what they made of it is stale until dbt run-operation repair."
        )
        warehouse.run(f"TRUNCATE TABLE {old.render()}")
        source = new.render()
    warehouse.run(f"INSERT INTO {old.render()} ({listed}) SELECT {listed} FROM {source}")


def _differences(new: OlapdbRelation, old: OlapdbRelation, columns: list[str]) -> str:
    """Each distinct row, with how many more of it `new` has as `__dbt_n`."""
    listed = ", ".join(map(quote, columns))
    return (
        f"SELECT {listed}, sum(__dbt_sign) AS __dbt_n FROM ("
        f"SELECT {listed}, toInt64(1) AS __dbt_sign FROM {new.render()} UNION ALL "
        f"SELECT {listed}, toInt64(-1) AS __dbt_sign FROM {old.render()}) "
        f"GROUP BY {listed} HAVING __dbt_n != 0"
    )


def _holds(existing: str, wanted: str, exact: bool) -> bool:
    """Whether a column of the first type takes values of the second without loss."""
    return existing == wanted or (not exact and existing == f"Nullable({wanted})")

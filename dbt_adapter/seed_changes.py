"""Reloads a seed: compares the new rows with those of the table, and applies the difference.

The file is loaded beside the table first, so an unchanged seed does not touch the table or the views
over it.
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
    """The difference between a table and the new rows of its seed.

    `fits` says whether the table's columns can hold the new rows. `added` and `removed` count rows;
    both are 0 if the rows do not fit."""

    fits: bool
    added: int = 0
    removed: int = 0

    @property
    def is_none(self) -> bool:
        """Return whether the rows are equal."""
        return self.fits and not self.added and not self.removed


def compare_rows(
    warehouse: Warehouse,
    new: OlapdbRelation,
    old: OlapdbRelation,
    new_types: Mapping[str, str],
    old_types: Mapping[str, str],
    exact: Mapping[str, object],
) -> SeedChange:
    """Return the difference between the rows of `old` and those of `new`.

    Types are by column name. `exact` has the columns whose type is configured: these must not be
    Nullable in `old` only."""
    if set(new_types) != set(old_types):
        return SeedChange(fits=False)
    if not all(_can_hold(old_types[n], new_types[n], n in exact) for n in new_types):
        return SeedChange(fits=False)
    counts = warehouse.rows(
        "SELECT sumIf(__dbt_n, __dbt_n > 0) AS added, sumIf(-__dbt_n, __dbt_n < 0) AS removed "
        f"FROM ({_differences(new, old, list(new_types))})"
    )[0]
    return SeedChange(True, int(counts["added"]), int(counts["removed"]))


def apply_change(
    warehouse: Warehouse,
    new: OlapdbRelation,
    old: OlapdbRelation,
    columns: list[str],
    change: SeedChange,
) -> None:
    """Change the rows of `old` to those of `new`.

    Inserts the added rows, on which triggers fire. If rows were removed too, truncates the table and
    writes all rows again; views over the old rows are then stale."""
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
    """Return a query of the distinct rows whose number differs between `new` and `old`.

    Its column `__dbt_n` is the number in `new` minus that in `old`."""
    listed = ", ".join(map(quote, columns))
    return (
        f"SELECT {listed}, sum(__dbt_sign) AS __dbt_n FROM ("
        f"SELECT {listed}, toInt64(1) AS __dbt_sign FROM {new.render()} UNION ALL "
        f"SELECT {listed}, toInt64(-1) AS __dbt_sign FROM {old.render()}) "
        f"GROUP BY {listed} HAVING __dbt_n != 0"
    )


def _can_hold(existing: str, new: str, exact: bool) -> bool:
    """Return whether a column of type `existing` can hold values of type `new` without loss."""
    return existing == new or (not exact and existing == f"Nullable({new})")

"""dbt's packages: where their macros are looked up, and how their tests read rows that are not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .query_settings import reads_missing_rows, with_settings

PACKAGES = ("dbt_utils", "dbt_date", "dbt_expectations", "audit_helper")
"""The packages of whose macros some are in `macros/packages`."""
_ADAPTERS = "dbt"
"""The name that dbt's dispatch has for the macros of dbt and of the adapter."""
STANDARD = {"join_use_nulls": 1, "window_use_nulls": 1}
"""Settings under which outer joins, lag and lead give NULL, as packages expect of any database."""


def look_up_here(config: Any) -> None:
    """Put the adapter's macros into the search order of dispatch for each package in PACKAGES:
    before the package's own, but after those of the project and of what its `dispatch` names before
    the package."""
    entries = getattr(config, "dispatch", None)
    if entries is None:  # dbt debug makes an adapter of a profile alone
        return
    for package in PACKAGES:
        named = [entry for entry in entries if entry.get("macro_namespace") == package]
        if not named:
            order = [config.project_name, package]
            named = [{"macro_namespace": package, "search_order": order}]
            entries.extend(named)
        for entry in named:
            order = list(entry.get("search_order") or [])
            if _ADAPTERS not in order:
                place = order.index(package) if package in order else len(order)
                entry["search_order"] = [*order[:place], _ADAPTERS, *order[place:]]


def query_of_test(sql: str, node: Mapping[str, Any]) -> str:
    """Return the query of a data test. A package's test of rows that may be missing runs under the
    settings STANDARD, which make them NULL, as it expects.

    The tests of a project are ClickHouse's SQL, and stay as they are."""
    package = (node.get("test_metadata") or {}).get("namespace")
    return with_settings(sql, STANDARD) if package and reads_missing_rows(sql) else sql

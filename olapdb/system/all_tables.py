"""All tables of the database `system`, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from olapdb.system import (
    absent_tables,
    activity_tables,
    catalog_tables,
    cluster_tables,
    collection_tables,
    dialect_tables,
    dictionary_tables,
    function_tables,
    job_tables,
    mutation_tables,
    part_tables,
    reference_tables,
    refresh_tables,
    server_tables,
    settings_tables,
    source_tables,
    storage_tables,
    view_tables,
)
from olapdb.system.clickhouse_columns import COLUMNS
from olapdb.system.registry import SystemTable

SYSTEM_TABLES: Mapping[str, SystemTable] = {
    table.name: replace(table, also=COLUMNS.get(table.name, ""))
    for module in (
        absent_tables,
        activity_tables,
        catalog_tables,
        cluster_tables,
        collection_tables,
        dialect_tables,
        dictionary_tables,
        function_tables,
        job_tables,
        mutation_tables,
        part_tables,
        reference_tables,
        refresh_tables,
        server_tables,
        settings_tables,
        source_tables,
        storage_tables,
        view_tables,
    )
    for table in module.TABLES
}

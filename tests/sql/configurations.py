"""The six ways to run an SQL logic test. The answers are the same under each of them.

default      as users run it, in memory
optimizer    no rule of the optimizer is applied
granules     a granule has two rows, so that pruning and every path of reading is taken; a table
             that names its index_granularity keeps it
files        no part is kept in the catalog; tests/property/test_tuning.py runs it, once without
             any fast path and once with each of them
merge        parts are merged after each statement
reopen       the warehouse is on disk, closed and opened after each statement

A file that stores nothing runs under the first two only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import olapdb
from olapdb.dbapi.connection import Connection
from tests.sql.logic import Record

CONFIGURATIONS = ("default", "optimizer", "granules", "files", "merge", "reopen")
KERNELS_OFF = os.environ.get("OLAPDB_KERNELS") == "off"
TESTED = ("default", "merge") if KERNELS_OFF else tuple(c for c in CONFIGURATIONS if c != "files")
"""What test_sql.py runs. With kernels turned off it is little: the other ways change plans and storage, not how a
value is computed."""
WITHOUT_STORAGE = ("default", "optimizer")
"""What is tested of a file that stores nothing: the other ways change what is stored, and when it is opened."""
_MERGE_TREE = re.compile(r"^CREATE TABLE\b.*\bENGINE\s*=\s*\w*MergeTree", re.DOTALL)


def configurations_of(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the configurations under which the records of a file are tested."""
    if any(record.kind == "statement" for record in records):
        return TESTED
    return tuple(name for name in TESTED if name in WITHOUT_STORAGE)


class Warehouse:
    """A warehouse under one configuration; `folder` is used by `reopen` alone. Close it."""

    def __init__(self, configuration: str, folder: Path) -> None:
        self.configuration = configuration
        self._folder = folder
        self._settings: dict[str, bool | int] = {}
        if configuration == "optimizer":
            self._settings["optimizer"] = False
        if configuration in ("files", "granules"):
            self._settings["inline_bytes_max"] = 0
        self.connection = self._connect()

    def _connect(self) -> Connection:
        where = str(self._folder / "warehouse") if self.configuration == "reopen" else ":memory:"
        return olapdb.connect(where, settings=self._settings)

    def prepared(self, sql: str) -> str:
        """Return the statement as this configuration runs it."""
        if self.configuration != "granules" or not _MERGE_TREE.match(sql):
            return sql
        if "index_granularity" in sql:
            return sql
        setting = "index_granularity = 2"
        of_table = sql.rpartition("ENGINE")[2]  # a column may have SETTINGS too
        return f"{sql}, {setting}" if " SETTINGS " in of_table else f"{sql} SETTINGS {setting}"

    def after_statement(self) -> None:
        """Do what this configuration does between two statements."""
        if self.configuration == "reopen":
            self.connection.close()
            self.connection = self._connect()
        elif self.configuration == "merge":
            tables = self.connection.execute(
                "SELECT database, name FROM system.tables"
                " WHERE engine LIKE '%MergeTree' AND database != 'system'"
            )
            for database, name in tables.fetchall():
                self.connection.execute(f"OPTIMIZE TABLE `{database}`.`{name}` FINAL")

    def close(self) -> None:
        self.connection.close()

"""The names of a model's read view, target and trigger."""

from __future__ import annotations

from dataclasses import dataclass

from olapdb.sql.nodes import TableName

TARGET_SUFFIX = "__target"
VIEW_SUFFIX = "__mv"


@dataclass(frozen=True)
class ModelNames:
    """The names of an `incremental_mv` model: its relation is the read view, `model`; target and
    trigger are in the same database. A model that `shares` the target of another names that one."""

    database: str
    model: str
    shares: str = ""

    @property
    def target(self) -> str:
        """The name of the table of states."""
        return f"{self.shares or self.model}{TARGET_SUFFIX}"

    @property
    def view(self) -> str:
        """The name of the trigger, the materialized view that fires on each INSERT."""
        return f"{self.model}{VIEW_SUFFIX}"

    def table(self, name: str) -> TableName:
        """Return the name with the model's database."""
        return TableName(name, self.database)

    def __str__(self) -> str:
        return f"{self.database}.{self.model}"

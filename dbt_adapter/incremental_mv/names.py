"""The names of a model's read view, target and trigger."""

from __future__ import annotations

from dataclasses import dataclass, field

from olapdb.sql.nodes import TableName

TARGET_SUFFIX = "__target"
VIEW_SUFFIX = "__mv"


@dataclass(frozen=True)
class ModelNames:
    """The names of an `incremental_mv` model: its relation is the read view, `model`; target and
    trigger are in the same database. A model that `shares` the target of another names that one.
    `selector` is what dbt calls the model, "" where only the relation is known."""

    database: str
    model: str
    shares: str = ""
    selector: str = field(default="", compare=False)

    @property
    def target(self) -> str:
        """The name of the table of states."""
        return f"{self.shares or self.model}{TARGET_SUFFIX}"

    @property
    def view(self) -> str:
        """The name of the trigger, the materialized view that fires on each INSERT."""
        return f"{self.model}{VIEW_SUFFIX}"

    @property
    def selected(self) -> str:
        """Return the name by which `dbt run --select` and the operations choose the model. dbt does not select by
        the alias of its relation."""
        return self.selector or self.model

    def table(self, name: str) -> TableName:
        """Return the name with the model's database."""
        return TableName(name, self.database)

    def __str__(self) -> str:
        return f"{self.database}.{self.model}"


def selector_of(unique_id: str) -> str:
    """Return what chooses a model in `dbt run --select`: `model.shop.daily` is `daily`, and the version
    `model.shop.daily.v2` is `daily.v2`."""
    return ".".join(unique_id.split(".")[2:])

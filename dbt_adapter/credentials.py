"""The keys of a profile of `type: olapdb`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from dbt.adapters.contracts.connection import Credentials
from dbt_common.exceptions import DbtRuntimeError

MEMORY = ":memory:"
DATABASE = "olapdb"
"""The third level of names, which dbt asks for. olapdb has two, so SQL never contains it."""
_KEYS_OF_DBT = ("type", "threads", "target", "profile")
BACKFILL_ENGINES = ("in_process", "spark")


@dataclass
class OlapdbCredentials(Credentials):
    """An output of a profile.

    `path` is the warehouse's folder, created if it does not exist, or ":memory:". `schema` is the
    olapdb database of the models. `settings` apply to every statement. `backfill_engine` is where
    backfills, replays and reconciliations run, unless a model's config names another engine. `spark`
    holds the options of a Spark session that the adapter starts (`master`, `memory`, `conf`, …).
    """

    path: str = MEMORY
    database: str = DATABASE
    schema: str = "default"
    settings: dict[str, Any] = field(default_factory=dict)
    backfill_engine: str = "in_process"
    spark: dict[str, Any] = field(default_factory=dict)
    attach_triggers: bool = True

    def __post_init__(self) -> None:
        """Check the profile; raise DbtRuntimeError if it contradicts itself.

        `database` gets the fixed name that dbt needs: names in olapdb have two levels."""
        if self.database not in (DATABASE, self.schema, ""):
            raise DbtRuntimeError(
                f"The profile has database: {self.database} and schema: {self.schema}. Names in "
                "olapdb have two levels, database.table; dbt's schema is the first of them. "
                "Remove database from the profile."
            )
        self.database = DATABASE
        check_backfill_engine(self.backfill_engine, "the profile")
        if self.backfill_engine == "spark" and self.path == MEMORY:
            raise DbtRuntimeError(
                "backfill_engine: spark needs a warehouse in a folder; give path in the profile."
            )

    @classmethod
    def validate(cls, data: Any) -> None:
        """Validate the profile, and refuse unknown keys, which dbt accepts.

        A misspelt `path` would otherwise open a warehouse in memory."""
        allowed = [f.name for f in fields(cls)]
        for name in data:
            if name not in (*allowed, *_KEYS_OF_DBT):
                close = get_close_matches(str(name), allowed, n=1)
                hint = f" Maybe you meant {close[0]}." if close else ""
                raise DbtRuntimeError(
                    f"The profile has the key {name}, which means nothing to olapdb.{hint} There "
                    "are path, schema, threads, settings, backfill_engine and spark."
                )
        super().validate(data)

    @property
    def type(self) -> str:
        """Return the adapter's name."""
        return "olapdb"

    @property
    def unique_field(self) -> str:
        """The value by which dbt anonymously distinguishes warehouses: the location."""
        return self.location

    @property
    def location(self) -> str:
        """The warehouse's folder as an absolute path, or ":memory:"."""
        return self.path if self.path == MEMORY else os.path.realpath(os.path.expanduser(self.path))

    def _connection_keys(self) -> tuple[str, ...]:
        """Return the fields that `dbt debug` prints."""
        return ("path", "database", "schema", "settings", "backfill_engine", "spark")


def check_backfill_engine(name: object, where: str) -> str:
    """Return the name of a backfill engine; raise DbtRuntimeError unless it is in BACKFILL_ENGINES.

    `where` says where the name is configured, for the message."""
    if name not in BACKFILL_ENGINES:
        choices = " or ".join(BACKFILL_ENGINES)
        raise DbtRuntimeError(f"backfill_engine in {where} is {choices}, not {name!r}.")
    return str(name)

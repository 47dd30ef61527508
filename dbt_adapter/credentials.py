"""The keys of a profile of `type: olapdb`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dbt.adapters.contracts.connection import Credentials
from dbt_common.exceptions import DbtRuntimeError

from .config_reader import any_of, maybe

MEMORY = ":memory:"
DATABASE = "olapdb"
"""The third level of names, which dbt asks for. olapdb has two, so SQL never contains it."""
_KEYS_OF_DBT = ("type", "threads", "target", "profile")
_INTERNAL = ("database", "project_folder")
_SERVER_KEYS = (
    *("host", "port", "user", "username", "password", "driver", "secure", "verify", "cluster"),
    *("account", "warehouse", "role", "sslmode", "connect_timeout", "send_receive_timeout"),
)
"""Keys of profiles for servers."""
_OF_SERVERS = (
    ": a warehouse is a folder, with no server and no users. Remove it; path names the folder."
)
BACKFILL_ENGINES = ("in_process", "spark")
_RETRIES_MAX = 20


@dataclass
class OlapdbCredentials(Credentials):
    """An output of a profile.

    `path` is the warehouse's folder, created if it does not exist, or ":memory:"; a relative one is
    in the folder of the dbt project. `schema` is the olapdb database of the models. `settings` apply
    to every statement. `backfill_engine` is where backfills, replays and reconciliations run, unless
    a model's config names another engine. `spark` holds the options of a Spark session that the
    adapter starts (`master`, `memory`, `conf`, …). `read_only` opens the warehouse without write
    access. A statement that lost a race is run again up to `retries` times. A run waits
    `wait_for_run` seconds for another run of its target. Without `attach_triggers` no INSERT fires
    the triggers of the models; each run backfills what has arrived.

    `project_folder` is the folder of the dbt project, which the adapter sets.
    """

    path: str = MEMORY
    database: str = DATABASE
    schema: str = "default"
    settings: dict[str, Any] = field(default_factory=dict)
    backfill_engine: str = "in_process"
    spark: dict[str, Any] = field(default_factory=dict)
    read_only: bool = False
    retries: int = 0
    wait_for_run: int = 600
    attach_triggers: bool = True
    project_folder: str = ""

    def __post_init__(self) -> None:
        """Check the profile; raise one DbtRuntimeError for all its mistakes.

        `database` gets the fixed name that dbt needs: names in olapdb have two levels."""
        _raise_for(list(_value_mistakes(self.__dict__)))
        self.database = DATABASE

    @classmethod
    def validate(cls, data: Any) -> None:
        """Validate the profile, and refuse unknown keys, which dbt accepts.

        A misspelt `path` would otherwise open a warehouse in memory."""
        allowed = [f.name for f in fields(cls) if f.name not in _INTERNAL]
        unknown = [n for n in data if n not in (*allowed, *_INTERNAL, *_KEYS_OF_DBT)]
        problems = [
            f"The key {name} means nothing to olapdb"
            + (_OF_SERVERS if name in _SERVER_KEYS else f".{maybe(name, (*allowed, 'threads'))}")
            for name in unknown
        ]
        if unknown:
            problems[-1] += f" The keys are {', '.join(allowed)} and threads."
        _raise_for([*problems, *_value_mistakes(data)])
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
        if self.path == MEMORY:
            return MEMORY
        return os.path.realpath(os.path.join(self.project_folder, os.path.expanduser(self.path)))

    def _connection_keys(self) -> tuple[str, ...]:
        """Return the fields that `dbt debug` prints."""
        return tuple(f.name for f in fields(self) if f.name != "project_folder")


_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")


def _raise_for(problems: list[str]) -> None:
    """Raise one DbtRuntimeError for the mistakes of a profile, nothing if there are none."""
    if len(problems) == 1:
        raise DbtRuntimeError(f"The profile of olapdb: {problems[0]}")
    if problems:
        listed = "".join(f"\n  {number}. {text}" for number, text in enumerate(problems, 1))
        raise DbtRuntimeError(f"The profile of olapdb has {len(problems)} mistakes:{listed}")


def _value_mistakes(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the mistakes in the values of a profile; keys that are left out have their defaults."""
    schema, database = data.get("schema"), data.get("database")
    if database not in (None, DATABASE, schema, ""):
        yield (
            f"It has database: {database} and schema: {schema}. Names in olapdb have two levels, "
            "database.table; dbt's schema is the first of them. Remove database from the profile."
        )
    path = data.get("path", MEMORY)
    if not isinstance(path, str) or not path:
        yield f"path is the warehouse's folder or {MEMORY}, not {path!r}."
    elif _URL.match(path):
        yield (
            f"path is a folder of this machine, and {path} is a URL. Mount the storage, and give the "
            "folder."
        )
    engine = data.get("backfill_engine", "in_process")
    if engine not in BACKFILL_ENGINES:
        yield f"backfill_engine is {any_of(BACKFILL_ENGINES)}, not {engine!r}."
    if engine == "spark" and path == MEMORY:
        yield "backfill_engine: spark needs a warehouse in a folder; give path."
    if data.get("read_only") is True and path == MEMORY:
        yield "read_only needs a warehouse in a folder; one in memory is empty. Give path."
    for name in ("settings", "spark"):
        if not isinstance(data.get(name, {}), Mapping):
            yield f"{name} is a mapping of names to values, not {data[name]!r}."
    for name in ("read_only", "attach_triggers"):
        if not isinstance(data.get(name, True), bool):
            yield f"{name} is true or false, not {data[name]!r}."
    for name, most in (("retries", _RETRIES_MAX), ("wait_for_run", 86_400)):
        value = data.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            yield f"{name} is a whole number from 0 to {most}, not {value!r}."


def check_backfill_engine(name: object, where: str) -> str:
    """Return the name of a backfill engine; raise DbtRuntimeError unless it is in BACKFILL_ENGINES.

    `where` says where the name is configured, for the message."""
    if name not in BACKFILL_ENGINES:
        raise DbtRuntimeError(
            f"backfill_engine in {where} is {any_of(BACKFILL_ENGINES)}, not {name!r}."
        )
    return str(name)

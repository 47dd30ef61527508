"""Settings by name: what a session has changed, what a table was given."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from olapdb.config.definition import SettingDefinition, SettingValue
from olapdb.config.formats import AT_CONNECT_ONLY
from olapdb.config.session import SESSION_SETTINGS
from olapdb.config.table import MEMORY_SETTINGS, TABLE_SETTINGS
from olapdb.errors import (
    NotSupportedError,
    QueryIsProhibited,
    ReadOnly,
    ReadonlySetting,
    UnknownSetting,
)
from olapdb.lazy import LazyModule
from olapdb.threads import cores

if TYPE_CHECKING:
    from olapdb.config import compatibility
else:
    compatibility = LazyModule("olapdb.config.compatibility")


class Settings(Mapping[str, SettingValue]):
    """The settings of a statement or session: every known name has a value, its default unless it was
    changed. Immutable."""

    __slots__ = ("_changed", "_earlier")

    def __init__(self, changed: Mapping[str, object] | None = None) -> None:
        self._changed = {n: lookup(n).parse(v) for n, v in (changed or {}).items()}
        version = self._changed.get("compatibility")
        self._earlier = _earlier_values(str(version)) if version else {}

    @classmethod
    def of(cls, settings: Mapping[str, object] | None) -> Settings:
        """Return the mapping as settings, itself where it is one; missing names have defaults."""
        return settings if isinstance(settings, Settings) else cls(settings)

    def __getitem__(self, name: str) -> SettingValue:
        if name in self._changed:
            return self._changed[name]
        if name in self._earlier:
            return self._earlier[name]
        return SESSION_SETTINGS[name].default

    def __iter__(self) -> Iterator[str]:
        return iter(SESSION_SETTINGS)

    def __len__(self) -> int:
        return len(SESSION_SETTINGS)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self._changed == other._changed

    def __reduce__(self) -> tuple[object, ...]:
        return Settings, (dict(self._changed),)

    @property
    def changed(self) -> Mapping[str, SettingValue]:
        """Return the settings that were given, also those that were given their default."""
        return MappingProxyType(self._changed)

    @property
    def key(self) -> tuple[tuple[str, SettingValue], ...]:
        """Return the changed settings in a hashable form, sorted by name."""
        return tuple(sorted(self._changed.items(), key=lambda item: item[0]))

    def refuse_if_readonly(self, changes: Mapping[str, object]) -> None:
        """Raise ReadOnly if the setting `readonly` forbids one of these changes, ReadonlySetting for
        a setting that only connect() takes."""
        for name in AT_CONNECT_ONLY:
            if name in changes and changes[name] != self[name]:
                raise ReadonlySetting(
                    f"A statement cannot change the setting {name}.",
                    hint=f"olapdb.connect(…, settings={{'{name}': …}}) sets it.",
                )
        if not self["allow_ddl"] and lookup("allow_ddl").parse(changes.get("allow_ddl", False)):
            raise QueryIsProhibited(
                "Cannot modify 'allow_ddl' setting when DDL queries are prohibited.",
                hint="Another connection need not have allow_ddl = 0.",
            )
        level = self.integer("readonly")
        for name, value in changes.items() if level else ():
            if (level == 1 or name == "readonly") and lookup(name).parse(value) != self[name]:
                raise ReadOnly(
                    f"Cannot modify '{name}' setting in readonly mode.",
                    hint=f"The session has readonly = {level}; another connection need not.",
                )

    @staticmethod
    def refuse_engine(changes: Mapping[str, object]) -> None:
        """Raise NotSupportedError if the SETTINGS name another engine than this process.

        For statements that compute no chunks of a view, which would ignore it."""
        if "engine" in changes and lookup("engine").parse(changes["engine"]) != "in_process":
            raise NotSupportedError(
                f"This statement runs in the calling process; engine = '{changes['engine']}' has no"
                " meaning for it.",
                hint="Leave the setting out. SYSTEM BACKFILL, REPLAY, RECONCILE, ADOPT and REBUILD VIEW"
                " and CREATE MATERIALIZED VIEW … POPULATE take it; olapdb.spark.write_dataframe inserts"
                " a Spark DataFrame, read_table gives one.",
            )

    def with_changes(self, changes: Mapping[str, object]) -> Settings:
        """Return these settings with some changed; None is the default. Raises UnknownSetting for an unknown name, and
        CannotParseSetting, BadArguments or SettingOutOfRange for a wrong value."""
        if not changes:
            return self
        changed = {**self._changed, **changes}
        return Settings({name: value for name, value in changed.items() if value is not None})

    def integer(self, name: str) -> int:
        """Return a setting as a whole number."""
        return int(self[name])

    def number(self, name: str) -> float:
        """Return a setting as a float."""
        return float(self[name])

    def boolean(self, name: str) -> bool:
        """Return a setting as a truth value."""
        return bool(self[name])

    def text(self, name: str) -> str:
        """Return the value of a setting whose type is a text."""
        return str(self[name])

    @property
    def threads(self) -> int:
        """Return the threads of a statement: max_threads, one for each core where it is 0."""
        return self.integer("max_threads") or cores()


@lru_cache(maxsize=64)
def _earlier_values(version: str) -> Mapping[str, SettingValue]:
    """Return the defaults of a version of ClickHouse that are others now, as far as olapdb has them."""
    values: dict[str, SettingValue] = {}
    for name, text in compatibility.earlier_defaults(version).items():
        with suppress(NotSupportedError):
            values[name] = SESSION_SETTINGS[name].parse(text)
    return values


def setting_text(value: SettingValue) -> str:
    """Format a value as SHOW SETTINGS and system.settings print it: booleans are 0 and 1."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def lookup(name: str) -> SettingDefinition:
    """Return the definition of a session setting.

    Raises UnknownSetting, which names the most similar one."""
    return _lookup(SESSION_SETTINGS, name, "setting")


def table_settings(
    given: Mapping[str, object], *, memory: bool = False
) -> tuple[tuple[str, SettingValue], ...]:
    """Check the settings of CREATE TABLE … SETTINGS, and return their parsed values by name; those
    of a Memory table if `memory`.

    Raises UnknownSetting, and what `SettingDefinition.parse` raises."""
    known, what = (
        (MEMORY_SETTINGS, "setting of Memory") if memory else (TABLE_SETTINGS, "MergeTree setting")
    )
    return tuple((n, _lookup(known, n, what).parse(v)) for n, v in given.items())


def _lookup(known: Mapping[str, SettingDefinition], name: str, what: str) -> SettingDefinition:
    """Return the definition of that name. Raise UnknownSetting, with the nearest name, if none.

    `what` is the kind of setting, for the message.
    """
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else "system.settings lists those there are."
    raise UnknownSetting(f"Unknown {what} '{name}'.", hint=hint)

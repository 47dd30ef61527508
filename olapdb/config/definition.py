"""One setting: its name, its default, and which values it takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal

from olapdb.config.setting_choices import check_choice
from olapdb.config.setting_types import SESSION_TYPES
from olapdb.errors import (
    BadArguments,
    CannotParseBoolSetting,
    CannotParseSetting,
    Error,
    NotSupportedError,
    ProgrammingError,
    SettingOutOfRange,
)
from olapdb.records import dataclass

SettingValue = bool | int | float | str


@dataclass(frozen=True, slots=True)
class SettingDefinition:
    """A setting. It is at least `minimum` and less than `below`. `only` lists the implemented values where not all are; `neutral` ones mean nothing
    in process."""

    name: str
    default: SettingValue
    description: str
    scope: Literal["session", "table"] = "session"
    minimum: int | None = None
    below: float | None = None
    only: tuple[SettingValue, ...] | None = None
    neutral: bool = False
    refused_as: type[Error] = NotSupportedError
    """The error for a value that `only` lacks."""
    check: Callable[[str], object] | None = None
    """Raise an error for a text that the setting cannot have."""

    @property
    def type(self) -> str:
        """Return the ClickHouse type that system.settings shows."""
        return {bool: "Bool", int: "UInt64", float: "Float", str: "String"}[type(self.default)]

    def parse(self, value: object) -> SettingValue:
        """Return the value in the setting's type; None, which DEFAULT stands for, is the default.

        Raises CannotParseSetting, BadArguments or SettingOutOfRange for a value that the setting
        cannot have, NotSupportedError for one that is not implemented."""
        if value is None:
            return self.default
        parsed = self._convert(value)
        if isinstance(parsed, str) and self.scope == "session":
            check_choice(self.name, parsed)
        if parsed == 0 and SESSION_TYPES.get(self.name) == "NonZeroUInt64":
            raise BadArguments(f"Setting {self.name} is at least 1, not {parsed}.")
        if self.minimum is not None and not isinstance(parsed, str) and parsed < self.minimum:
            kind = SettingOutOfRange if parsed < 0 and self.minimum >= 0 else BadArguments
            raise kind(f"Setting {self.name} is at least {self.minimum}, not {parsed}.")
        if self.below is not None and not isinstance(parsed, str) and not parsed < self.below:
            raise BadArguments(f"Setting {self.name} is less than {self.below:g}, not {parsed}.")
        if self.only is not None and parsed not in self.only:
            choices = ", ".join(repr(v) for v in self.only)
            raise self.refused_as(
                f"Setting {self.name} = {parsed!r} is not supported; olapdb has {choices}.",
                hint=self.description,
            )
        if self.check is not None and isinstance(parsed, str):
            self.check(parsed)
        return parsed

    def _convert(self, value: object) -> SettingValue:
        """Return the value in the type of the default.

        Raise CannotParseSetting if it has no such form, of a Bool CannotParseBoolSetting for a text and
        SettingOutOfRange for a number.
        """
        expected = type(self.default)
        try:
            if expected is bool:
                return _boolean(value)
            if expected is int and not isinstance(value, bool):
                return 0 if self._is_automatic(value) else _integer(value)
            if expected is float:
                return float(value)  # type: ignore[arg-type]
            if expected is int:
                return int(bool(value))
            return str(value)
        except (TypeError, ValueError):
            kind: type[ProgrammingError] = CannotParseSetting
            if expected is bool:
                kind = CannotParseBoolSetting if isinstance(value, str) else SettingOutOfRange
            raise kind(
                f"Setting {self.name} takes a value of type {self.type}, not {value!r}."
            ) from None

    def _is_automatic(self, value: object) -> bool:
        """Return whether the setting is a number of threads and the value is the text `auto` or `auto(n)`."""
        threads = SESSION_TYPES.get(self.name) == "MaxThreads"
        return threads and isinstance(value, str) and bool(_AUTOMATIC.fullmatch(value))


_AUTOMATIC = re.compile(r"auto(\([0-9]+\))?")


def known_settings(text: str) -> Iterator[tuple[str, SettingValue]]:
    """Yield the settings of a text of `name=default` separated by blanks: true, false, a number, or
    a text in double quotes without blanks."""
    for pair in text.split():
        name, _, default = pair.partition("=")
        if default in ("true", "false"):
            yield name, default == "true"
        elif default.startswith('"'):
            yield name, default[1:-1]
        else:
            yield name, float(default) if "." in default or "e" in default else int(default)


_WITH_UNIT = re.compile(r"([0-9]+)([KMGT]i?)")
_UNITS = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY_UNITS = {f"{unit}i": 1 << 10 * power for power, unit in enumerate("KMGT", 1)}


def _integer(value: object) -> int:
    """Return a number, or a text such as 10Mi or 5K; raise ValueError or TypeError for others."""
    if isinstance(value, str) and (written := _WITH_UNIT.fullmatch(value)) is not None:
        return int(written[1]) * (_UNITS | _BINARY_UNITS)[written[2]]
    return int(value)  # type: ignore[call-overload, no-any-return]


def _boolean(value: object) -> bool:
    """Return the truth value of a bool, 0, 1, or "true" or "false"; raise ValueError for others."""
    if isinstance(value, bool):
        return value
    if value in (0, 1, "0", "1"):
        return bool(int(value))  # type: ignore[call-overload]
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError(value)

"""Reads values of a model's config, and collects all mistakes instead of raising at the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from dbt_common.exceptions import CompilationError

ON_SCHEMA_CHANGE = ("ignore", "fail", "append_new_columns", "sync_all_columns")
"""The values of dbt's config on_schema_change. dbt itself takes any other one for `ignore`."""


class ConfigReader:
    """A reader of one model's config. `problems` are the mistakes that it has met, in order."""

    def __init__(self, config: Mapping[str, object]) -> None:
        self._config = config
        self.problems: list[str] = []

    def refuse(self, problem: str) -> None:
        """Add a mistake."""
        self.problems.append(problem)

    def value(self, *names: str) -> object:
        """Return the value of the first of these names that is set; None if none is.

        The names are spellings of one key; two different values of them are a mistake."""
        values = [(n, self._config[n]) for n in names if self._config.get(n) is not None]
        if not values:
            return None
        for name, value in values[1:]:
            if value != values[0][1]:
                self.refuse(f"{values[0][0]} and {name} are two names of one config; give one.")
        return values[0][1]

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """Return a value that is one of `choices`, the default if it is not set or wrong."""
        value = self.value(name)
        if value is None:
            return default
        if not isinstance(value, str) or value not in choices:
            self.refuse(f"{name} is {any_of(choices)}, not {value!r}.{maybe(value, choices)}")
            return default
        return value

    def expression(self, *names: str) -> str:
        """Return the SQL expression of the first of these names that is set, "" if none is.

        The names are spellings of one key. A list of expressions becomes a tuple, `(a, b)`, and so
        does the text `a, b`. Any other value is a mistake, and gives ""."""
        value = self.value(*names)
        if value is None or value == "" or value == []:
            return ""
        if isinstance(value, str):
            return f"({value})" if has_comma(value) else value
        if isinstance(value, Sequence) and all(isinstance(v, str) for v in value):
            return f"({', '.join(value)})"
        self.refuse(f"{names[0]} is an expression or a list of expressions, not {value!r}.")
        return ""

    def names(self, name: str) -> tuple[str, ...] | None:
        """Return a list of names, None if it is not set; one name is a list of one."""
        value = self.value(name)
        if value is None:
            return None
        if isinstance(value, str):
            return (value,)
        if isinstance(value, Sequence) and all(isinstance(v, str) for v in value):
            return tuple(value)
        self.refuse(f"{name} is a list of names, not {value!r}.")
        return None

    def mapping(self, name: str) -> Mapping[str, object]:
        """Return a mapping of names to values, empty if it is not set."""
        value = self.value(name)
        if value is None:
            return {}
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return value
        self.refuse(f"{name} is a mapping of names to values, not {value!r}.")
        return {}


def has_comma(text: str) -> bool:
    """Return whether a comma of the SQL text stands outside of parentheses, brackets and quotes."""
    depth, quote = 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"`":
            quote = letter
        elif letter == "," and depth == 0:
            return True
        else:
            depth += (letter in "([") - (letter in ")]")
    return False


def any_of(choices: Sequence[str]) -> str:
    """Return `a, b or c`."""
    return f"{', '.join(choices[:-1])} or {choices[-1]}" if len(choices) > 1 else choices[0]


def maybe(name: object, known: Sequence[str]) -> str:
    """Return ` Maybe you meant x.` for a misspelt name, "" if no known name resembles it."""
    close = get_close_matches(str(name), known, n=1)
    return f" Maybe you meant {close[0]}." if close else ""


def config_error(problems: Sequence[str]) -> CompilationError:
    """Return (do not raise) one error for all mistakes of a model; dbt adds its name and file."""
    if len(problems) == 1:
        return CompilationError(problems[0])
    listed = "\n".join(f"  {number}. {problem}" for number, problem in enumerate(problems, 1))
    return CompilationError(f"There are {len(problems)} mistakes:\n{listed}")

"""Functions that users create, stored in the catalog: frozen facts."""

from __future__ import annotations

from typing import Literal, TypeAlias

from olapdb.records import dataclass
from olapdb.types import quote_identifier

Language: TypeAlias = Literal["sql", "python"]
Volatility: TypeAlias = Literal["", "IMMUTABLE", "STABLE", "VOLATILE"]


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """A parameter. `type` is the name of its type, "" where any fits; `default` is SQL text, ""
    without one."""

    name: str
    type: str = ""
    default: str = ""


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function. Its name is (`database`, `name`); one of the database "" is called by its name
    alone.

    `body` is an expression in SQL over the parameters, or a Python module that defines `handler`.
    `returns` is the name of the result's type, "" where the body decides it. `typed` is False for
    the form `AS x -> …`. `aggregate` means that it makes one value of many rows.
    """

    id: str
    database: str
    name: str
    parameters: tuple[FunctionParameter, ...]
    body: str
    returns: str = ""
    typed: bool = False
    aggregate: bool = False
    language: Language = "sql"
    handler: str = ""
    volatility: Volatility = ""
    packages: tuple[str, ...] = ()
    runtime_version: str = ""
    vectorized: bool = False
    comment: str = ""
    created_ms: int = 0

    @property
    def full_name(self) -> str:
        """The name as SQL, with the database if it has one."""
        name = quote_identifier(self.name)
        return f"{quote_identifier(self.database)}.{name}" if self.database else name

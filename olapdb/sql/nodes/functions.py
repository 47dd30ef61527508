"""CREATE FUNCTION and DROP FUNCTION."""

from __future__ import annotations

from typing import Literal as Lit

from olapdb.records import dataclass
from olapdb.sql.nodes.base import Expression, Node, Statement, TableName
from olapdb.types import DataType


@dataclass(frozen=True, slots=True)
class ParameterDefinition(Node):
    """`name [Type] [DEFAULT expression]`; of `x -> …` only the name."""

    name: str
    type: DataType | None = None
    default: Expression | None = None


@dataclass(frozen=True, slots=True)
class CreateFunction(Statement):
    """CREATE FUNCTION `name` AS x -> body, or `name`(x Type, …) RETURNS Type … AS body.

    `body` is None where `code` is Python. `typed` says which of the two forms was written.
    """

    name: TableName
    parameters: tuple[ParameterDefinition, ...]
    body: Expression | None = None
    code: str = ""
    returns: DataType | None = None
    typed: bool = False
    aggregate: bool = False
    or_replace: bool = False
    if_not_exists: bool = False
    volatility: Lit["", "IMMUTABLE", "STABLE", "VOLATILE"] = ""
    handler: str = ""
    packages: tuple[str, ...] = ()
    runtime_version: str = ""
    vectorized: bool = False
    comment: str = ""


@dataclass(frozen=True, slots=True)
class DropFunction(Statement):
    """DROP [AGGREGATE] FUNCTION `name`."""

    name: TableName
    if_exists: bool = False

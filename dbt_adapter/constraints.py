"""Contracts and constraints of models: what the DDL says of columns, and what a query has to return.

check         a named CHECK of the table: the engine refuses a row that violates it
not_null      a type that is not Nullable: the engine refuses a NULL
primary_key   not null, and the sorting key of a table whose config has none; not unique
custom        as it is written
unique, foreign_key    not there; dbt warns of them

A column may have the keys `codec` and `ttl` in its YAML, as in dbt-clickhouse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dbt_common.contracts.constraints import (
    ColumnLevelConstraint,
    ConstraintType,
    ModelLevelConstraint,
)
from dbt_common.exceptions import CompilationError

import olapdb
from olapdb.functions import parse_type

from .column import OlapdbColumn
from .relation import quote

Constraint: TypeAlias = ColumnLevelConstraint | ModelLevelConstraint
Supported: TypeAlias = Callable[[Constraint, Callable[[Constraint], str | None]], str | None]
"""dbt's filter of constraints: warns of those that are not supported, and renders the others."""
_NULLABLE = re.compile(r"^(LowCardinality\()?Nullable\((.*)\)$", re.DOTALL)


@dataclass(frozen=True)
class Contract:
    """The columns that a model declares, and its constraints."""

    columns: Sequence[Mapping[str, Any]]
    constraints: Sequence[ModelLevelConstraint]

    @classmethod
    def of(cls, model: Mapping[str, Any]) -> Contract:
        """Return the contract of a node of the manifest."""
        constraints = [ModelLevelConstraint.from_dict(c) for c in model.get("constraints") or ()]
        return cls(list((model.get("columns") or {}).values()), constraints)

    def elements(self, supported: Supported) -> list[str]:
        """Return the elements of a CREATE TABLE: columns with their types, then CHECKs.

        A CHECK without a name is `<column>_check`, `<column>_check2` …; one of the model
        `check_<number>`."""
        columns, checks = [], []
        for column in self.columns:
            words = [quote(str(column["name"])), self._type(column, str(column["data_type"]))]
            words += _storage(column)
            names = iter(f"{column['name']}_check{number}" for number in ("", *range(2, 1000)))
            for constraint in _of_column(column):
                name = next(names) if constraint.type == ConstraintType.check else ""
                element = supported(constraint, _render(name))
                if element and constraint.type == ConstraintType.custom:
                    words.append(element)
                elif element:
                    checks.append(element)
            columns.append(" ".join(words))
        for number, constraint in enumerate(self.constraints, start=1):
            element = supported(constraint, _render(f"check_{number}"))
            checks += [element] if element else []
        return columns + checks

    def stored_otherwise(self) -> list[str]:
        """Return the names of the columns that have a codec or a TTL."""
        return [str(column["name"]) for column in self.columns if _storage(column)]

    def primary_key(self) -> list[str]:
        """Return the columns of the primary key, [] if none is declared."""
        for constraint in self.constraints:
            if constraint.type == ConstraintType.primary_key:
                return [name.strip('`"') for name in constraint.columns]
        return [
            str(column["name"])
            for column in self.columns
            if any(c.type == ConstraintType.primary_key for c in _of_column(column))
        ]

    def compare(
        self, described: Sequence[OlapdbColumn]
    ) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        """Return the promised and the returned columns as dbt formats them in its error.

        Aliases of types are equal (`text` is String). Whether a column is Nullable in the query does
        not matter where a constraint refuses NULL."""
        promised = {str(c["name"]): c for c in self.columns}
        return (
            [_formatted(name, self._type(c, _engine_type(c))) for name, c in promised.items()],
            [_formatted(c.name, self._type(promised.get(c.name, {}), c.dtype)) for c in described],
        )

    def _type(self, column: Mapping[str, Any], data_type: str) -> str:
        """Return the type of a column, without Nullable if no NULL may be in it."""
        refused = any(c.type == ConstraintType.not_null for c in _of_column(column))
        if refused or column.get("name") in self.primary_key():
            return _without_null(data_type)
        return data_type


def _storage(column: Mapping[str, Any]) -> list[str]:
    """Return the clauses of how a column is stored, as its YAML says: CODEC, then TTL."""
    codec, ttl = column.get("codec"), column.get("ttl")
    return [*([f"CODEC({codec})"] if codec else []), *([f"TTL {ttl}"] if ttl else [])]


def _render(name: str) -> Callable[[Constraint], str | None]:
    """Return a function from a CHECK or custom constraint to its clause, and from any other kind to None.

    `name` is that of a CHECK that has none. The function raises CompilationError for a CHECK without an
    expression."""

    def render(constraint: Constraint) -> str | None:
        """Return the clause of a CHECK or custom constraint; None for any other kind."""
        if constraint.type == ConstraintType.custom:
            return str(constraint.expression) if constraint.expression else None
        if constraint.type != ConstraintType.check:
            return None
        if not constraint.expression:
            raise CompilationError(f"The check constraint {name} has no expression.")
        return f"CONSTRAINT {quote(constraint.name or name)} CHECK ({constraint.expression})"

    return render


def _formatted(name: str, data_type: str) -> dict[str, str]:
    """Return a column as dbt's error of contracts takes it."""
    return {"name": name, "data_type": data_type, "formatted": f"{name} {data_type}"}


def _engine_type(column: Mapping[str, Any]) -> str:
    """Return the declared type as the engine names it. Raises CompilationError."""
    declared = column.get("data_type")
    if not declared:
        raise CompilationError(
            f"The contract has no data_type of the column {column['name']}; each column needs one."
        )
    try:
        return str(parse_type(str(declared)))
    except olapdb.Error as error:
        raise CompilationError(
            f"The contract's data_type {declared!r} of the column {column['name']} is no type of "
            f"olapdb: {error}"
        ) from error


def _without_null(data_type: str) -> str:
    """Return the type without the Nullable around it, also inside LowCardinality."""
    nullable = _NULLABLE.match(data_type.strip())
    if nullable is None:
        return data_type
    low_cardinality, inner = nullable.groups()
    return f"LowCardinality({inner.removesuffix(')')})" if low_cardinality else str(inner)


def _of_column(column: Mapping[str, Any]) -> list[ColumnLevelConstraint]:
    """Return the constraints of a column."""
    return [ColumnLevelConstraint.from_dict(raw) for raw in column.get("constraints") or ()]

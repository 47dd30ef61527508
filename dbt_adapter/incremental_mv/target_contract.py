"""The contract of a model on its target: which rows an INSERT into the source may not make.

Names and types are compared before the run. A CHECK and a NOT NULL become constraints of the target,
so the engine refuses an INSERT whose rows violate them. They can only be over columns that each row
has finished: the group keys, and any column of a model that aggregates nothing. A state belongs to a
part of a group, so a condition on it would judge a part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbt_common.contracts.constraints import ConstraintType

from olapdb.bind.syntax import walk
from olapdb.errors import Error
from olapdb.sql import nodes
from olapdb.sql.parser import parse_one
from olapdb.types import DataType, is_nullable

from ..constraints import Contract
from ..relation import quote
from .errors import refuse

if TYPE_CHECKING:
    from .model_definition import ModelDefinition

_FINISHED = ("key", "column")
"""The kinds of columns that a row of the target has finished."""


@dataclass(frozen=True)
class TargetContract:
    """The constraints of a model: `checks` are CONSTRAINT clauses, `not_null` columns."""

    checks: tuple[str, ...]
    not_null: tuple[str, ...]


def contract_of(model: Mapping[str, Any]) -> TargetContract | None:
    """Return the constraints of a node of the manifest; None if its contract is not enforced.

    Raises CompilationError for columns with a codec or ttl."""
    config = model.get("config") or {}
    if not (config.get("contract") or {}).get("enforced"):
        return None
    contract = Contract.of(model)
    if stored := contract.stored_otherwise():
        raise refuse(
            f"the contract gives {', '.join(stored)} a codec or ttl,",
            "and the columns of the target are others: states, where the model aggregates.",
            "Set it in a post_hook (ALTER TABLE <model>__target MODIFY COLUMN …); rows leave by "
            "config ttl.",
        )
    elements = contract.elements(
        lambda constraint, render: (
            render(constraint) if constraint.type == ConstraintType.check else None
        )
    )
    declared = [
        str(column["name"])
        for column in contract.columns
        if any(c.get("type") == "not_null" for c in column.get("constraints") or ())
    ]
    not_null = dict.fromkeys((*declared, *contract.primary_key()))
    return TargetContract(tuple(elements[len(contract.columns) :]), tuple(not_null))


def with_contract(
    definition: ModelDefinition, contract: TargetContract, described: Sequence[tuple[str, DataType]]
) -> ModelDefinition:
    """Return the definition with the constraints in its target.

    `described` are the columns of the model's query. Raises CompilationError for a constraint over a
    column of states."""
    kinds = {name: kind for name, (kind, _) in definition.column_kinds.items()}
    for check in contract.checks:
        _refuse_states(check, kinds)
    nullable = {name for name, data_type in described if is_nullable(data_type)}
    checks = list(contract.checks)
    for name in contract.not_null:
        if name not in nullable:
            continue  # the type of the column has no NULL
        if kinds.get(name) not in _FINISHED:
            raise refuse(
                f"the contract says not_null of {name},",
                "which is computed from states and may be NULL.",
                f"Give it a value in the SELECT: coalesce(…, 0) AS {name}.",
            )
        checks.append(f"CONSTRAINT {quote(f'{name}_not_null')} CHECK ({quote(name)} IS NOT NULL)")
    return replace(definition, checks=tuple(checks))


def _refuse_states(check: str, kinds: Mapping[str, str]) -> None:
    """Raise CompilationError if a CHECK does not parse, or reads a column that is not finished."""
    try:
        table = parse_one(f"CREATE TABLE t (x UInt8, {check}) ENGINE = Memory")
    except Error as error:
        raise refuse(f"{check} does not parse:", str(error), "") from error
    assert isinstance(table, nodes.CreateTable)
    for node in walk(table):
        if not isinstance(node, nodes.Identifier) or kinds.get(node.parts[-1]) in _FINISHED:
            continue
        column = node.parts[-1]
        listed = ", ".join(name for name, kind in kinds.items() if kind in _FINISHED) or "none"
        if column not in kinds:
            raise refuse(
                f"{check} reads {column},", f"which is no column; it may read {listed}.", ""
            )
        raise refuse(
            f"{check} reads {column},",
            "of which the target has states of parts of a group, so no row could be judged.",
            f"A check may read {listed}; test the others by a data test of the model.",
        )

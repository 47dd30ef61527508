"""The engine and TTL of a model's target: what the config asks for, if it keeps the model right."""

from __future__ import annotations

from collections.abc import Sequence

from olapdb import types
from olapdb.types import DataType

from ..relation import quote
from .config import ModelConfig
from .errors import refuse

_PREFIXES = ("Replicated", "Shared")
_WHY_NOT = {
    "SummingMergeTree": "drops groups whose sums are all zero.",
    "ReplacingMergeTree": "keeps one row of each key and drops the states of the others.",
    "MergeTree": "does not merge the rows of one group.",
}


def target_engine(config: ModelConfig, *, aggregated: bool) -> str:
    """Return the target's engine: AggregatingMergeTree, or MergeTree if the model aggregates nothing.

    Raises CompilationError if config engine names another one. A name that begins with Replicated or
    Shared is that of the plain engine."""
    derived = "AggregatingMergeTree" if aggregated else "MergeTree"
    configured = config.engine.split("(")[0].strip()
    for prefix in _PREFIXES:
        configured = configured.removeprefix(prefix)
    if configured in ("", derived):
        return derived
    reason = _WHY_NOT.get(configured, "does not keep the model's rows as the model needs them.")
    if not aggregated:
        reason = "drops or joins rows of one sorting key, which the model has as rows."
    raise refuse(
        f"config engine is {config.engine}, and the target of this model is {derived}:",
        f"{configured} {reason}",
        "Remove engine, or set it to what is derived.",
    )


def target_ttl(config: ModelConfig, keys: Sequence[tuple[str, DataType]]) -> str:
    """Return the target's TTL expression, "" for none.

    Config retain is counted from the one date or time among `keys`, the sorting key's columns with
    their types. Raises CompilationError if there is none, or more than one."""
    if not config.retain:
        return config.ttl
    times = [name for name, data_type in keys if _is_time(data_type)]
    if len(times) != 1:
        listed = f"has {', '.join(times)}" if times else "has none"
        raise refuse(
            f"config retain ('{config.retain.lower()}') counts from the date or time",
            f"among the keys, of which the model {listed}.",
            "Give config ttl, for example ttl='day + INTERVAL 1 YEAR'.",
        )
    return f"{quote(times[0])} + INTERVAL {config.retain}"


def _is_time(data_type: DataType) -> bool:
    """Return whether values of a type are dates or times."""
    plain = types.plain(data_type)
    return isinstance(plain, types.Date | types.Date32 | types.DateTime | types.DateTime64)

"""The config of an `incremental_mv`, read from dbt's dictionary into typed settings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..config_reader import ON_SCHEMA_CHANGE, ConfigReader, any_of, config_error
from ..credentials import BACKFILL_ENGINES, OlapdbCredentials
from ..storage_clause import check_syntax, is_misspelt, table_settings, ttl_expression
from .target_contract import TargetContract, contract_of

ON_DEFINITION_CHANGE = ("fail", "rebuild", "replay", "ignore")
RECONCILE_MODES = ("full", "sample", "stale", "off")
BACKFILL_ON = ("local", "spark", "auto")
_SCOPE_KEYS = ("from", "to", "parallel")
_RECONCILE_KEYS = ("mode", "tolerance", "sample")
_PARALLEL_MAX = 64
_OF_TARGET = ("order_by", "partition_by", "engine", "ttl", "retain", "settings", "table_settings")
_SAMPLE_PARTITIONS = 10
_ENGINE_OF = {"local": "in_process", "in_process": "in_process", "spark": "spark"}
_INTERVAL = re.compile(r"^\s*(\d+)\s+(second|minute|hour|day|week|month|quarter|year)s?\s*$", re.I)


@dataclass(frozen=True)
class BackfillScope:
    """The part of the source that dbt runs backfill.

    `enabled` is False for `backfill: none`. `first` and `last` bound the partitions of the source,
    both included: each is a value of its partition key or of the column below it; "" is no bound.
    `parallel` is the number of chunks computed at a time, 0 for the engine's choice."""

    enabled: bool = True
    first: str = ""
    last: str = ""
    parallel: int = 0

    @property
    def is_bounded(self) -> bool:
        """Return whether only some partitions of the source are backfilled."""
        return bool(self.first or self.last)


@dataclass(frozen=True)
class ReconcilePolicy:
    """The comparison that the test `reconciled` makes unless its arguments say otherwise.

    `mode` is full (all partitions), sample (`sample` partitions at random), stale (what the ledger
    says, nothing is recomputed) or off. A partition of whose keys at most the share `tolerance` (0
    to 1) differs is a warning in the log and no failure."""

    mode: str = "full"
    tolerance: float = 0.0
    sample: int = _SAMPLE_PARTITIONS


@dataclass(frozen=True)
class ModelConfig:
    """The configs of a model that its definition depends on.

    `order_by` and `partition_by` are an SQL expression or a list of them, None if not set. `engine`
    and `ttl` are "" if not set. `retain` is an interval such as "13 MONTH" for which the target
    keeps its rows, "" for ever. `dimensions` are the tables that the model declares to join, None
    if it declares nothing. `deduplicate_by` are the columns by which the source must drop rows that
    are delivered twice. `contract` are the constraints of an enforced contract, None without one.
    `target` is the model into whose target this one writes, "" for one of its own."""

    unique_id: str
    order_by: object = None
    partition_by: object = None
    table_settings: Mapping[str, object] | None = None
    engine: str = ""
    ttl: str = ""
    retain: str = ""
    dimensions: tuple[str, ...] | None = None
    deduplicate_by: tuple[str, ...] = ()
    contract: TargetContract | None = None
    target: str = ""


@dataclass(frozen=True)
class RunSettings:
    """The settings of one run of a model.

    `backfill_engine` is `in_process` or `spark`. `on_schema_change` is "" if the model does not set
    it. `on_configuration_change` is that of a `materialized_view`, "" for other models. Without
    `attach_triggers` the trigger is created and then detached, so that INSERTs do not fire it; each
    run backfills what has arrived."""

    model: ModelConfig
    backfill_engine: str
    on_definition_change: str
    full_refresh: bool
    on_schema_change: str = ""
    backfill: BackfillScope = field(default_factory=BackfillScope)
    reconcile: ReconcilePolicy = field(default_factory=ReconcilePolicy)
    attach_triggers: bool = True
    on_configuration_change: str = ""


def settings_of(
    config: Mapping[str, Any],
    model: Mapping[str, Any],
    credentials: OlapdbCredentials,
    flags: Mapping[str, Any],
) -> RunSettings:
    """Return the settings of a run; raise one CompilationError for all values that are wrong."""
    reader = ConfigReader(config)
    explicit = model.get("unrendered_config") or {}
    model_config = _model_config(reader, str(model["unique_id"]))
    settings = RunSettings(
        model=replace(model_config, contract=contract_of(model)),
        backfill_engine=_backfill_engine(reader, credentials.backfill_engine),
        on_definition_change=reader.choice(
            "on_definition_change", ON_DEFINITION_CHANGE, _default_change(config)
        ),
        full_refresh=bool(flags.get("full_refresh")),
        on_schema_change=_on_schema_change(reader, explicit),
        backfill=_backfill_scope(reader),
        reconcile=_reconcile_policy(reader),
        attach_triggers=credentials.attach_triggers,
        on_configuration_change=_on_configuration_change(config),
    )
    if reader.problems:
        raise config_error(reader.problems)
    return settings


def _on_configuration_change(config: Mapping[str, Any]) -> str:
    """Return dbt's on_configuration_change of a `materialized_view` ("apply" if not set), "" for
    other models and for one that sets on_definition_change."""
    if config.get("materialized") != "materialized_view" or config.get("on_definition_change"):
        return ""
    return str(config.get("on_configuration_change") or "apply")


def _default_change(config: Mapping[str, Any]) -> str:
    """Return what a changed definition does if the model does not say so: fail, or what dbt's
    `on_configuration_change` says of a `materialized_view`."""
    changes = {"apply": "rebuild", "continue": "ignore", "fail": "fail", "": "fail"}
    return changes[_on_configuration_change(config)]


def mistakes(config: Mapping[str, Any], credentials: OlapdbCredentials) -> list[str]:
    """Return the mistakes in the values of a model's config."""
    reader = ConfigReader(config)
    _model_config(reader, "")
    _backfill_engine(reader, credentials.backfill_engine)
    reader.choice("on_definition_change", ON_DEFINITION_CHANGE, "fail")
    _on_schema_change(reader, config)
    _backfill_scope(reader)
    _reconcile_policy(reader)
    return reader.problems


def _model_config(reader: ConfigReader, unique_id: str) -> ModelConfig:
    """Return the configs on which the definition depends."""
    ttl = ttl_expression(reader)
    for name in ("order_by", "partition_by"):
        check_syntax(reader, name, reader.expression(name))
    check_syntax(reader, "ttl", ttl)
    deduplicate_by = reader.names("deduplicate_by") or ()
    columns = tuple(c.strip() for name in deduplicate_by for c in name.split(","))
    engine = reader.value("engine")
    if engine is not None and not isinstance(engine, str):
        reader.refuse(f"engine is the name of a table engine, not {engine!r}.")
        engine = None
    is_misspelt(reader, engine or "MergeTree")
    return ModelConfig(
        unique_id=unique_id,
        order_by=reader.value("order_by"),
        partition_by=reader.value("partition_by"),
        table_settings=table_settings(reader) or None,
        engine=engine or "",
        ttl=ttl,
        retain=_retain(reader),
        dimensions=reader.names("dimensions"),
        deduplicate_by=columns,
        target=_shared_target(reader),
    )


def _shared_target(reader: ConfigReader) -> str:
    """Return the model whose target the model writes, "" for a target of its own."""
    value = reader.value("target")
    if value is None:
        return ""
    if not isinstance(value, str) or not value:
        reader.refuse(f"target is the name of an incremental_mv model, not {value!r}.")
        return ""
    for name in _OF_TARGET:
        if reader.value(name) is not None:
            reader.refuse(
                f"{name} is of the target, which belongs to {value}: set it there, not in a model "
                f"with target='{value}'."
            )
    return value


def _retain(reader: ConfigReader) -> str:
    """Return for how long the target keeps its rows, as "13 MONTH"; "" for ever."""
    value = reader.value("retain")
    if value is None:
        return ""
    if reader.value("ttl") is not None:
        reader.refuse(
            "retain and ttl both say when rows leave the target; give one. retain is the interval "
            "after the model's one date or time among its keys, ttl any expression."
        )
    match = _INTERVAL.match(value) if isinstance(value, str) else None
    if match is None or int(match[1]) == 0:
        reader.refuse(f"retain is an interval such as '13 months', not {value!r}.")
        return ""
    return f"{match[1]} {match[2].upper()}"


def _backfill_engine(reader: ConfigReader, default: str) -> str:
    """Return where backfills run, "in_process" or "spark".

    `backfill_engine` is the older name of `backfill_on`; `auto` is the profile's."""
    choices = (*BACKFILL_ON, *BACKFILL_ENGINES)
    name = "backfill_on" if reader.value("backfill_on") is not None else "backfill_engine"
    if reader.value("backfill_on", "backfill_engine") is None:
        return default
    chosen = reader.choice(name, tuple(dict.fromkeys(choices)), "auto")
    return _ENGINE_OF.get(chosen, default)


def _on_schema_change(reader: ConfigReader, explicit: Mapping[str, Any]) -> str:
    """Return on_schema_change if the model sets it, else "": dbt's own default is `ignore`."""
    chosen = reader.choice("on_schema_change", ON_SCHEMA_CHANGE, "ignore")
    return chosen if "on_schema_change" in explicit else ""


def _backfill_scope(reader: ConfigReader) -> BackfillScope:
    """Return which part of the source is backfilled; `catchup: false` is `backfill: none`."""
    catchup, value = reader.value("catchup"), reader.value("backfill")
    if catchup is not None:
        if not isinstance(catchup, bool):
            reader.refuse(f"catchup is true or false, not {catchup!r}; here it is called backfill.")
        if value is None:
            return BackfillScope(enabled=catchup is not False)
        reader.refuse("catchup is another spelling of backfill: auto or none; give one.")
    if value is None or value == "auto":
        return BackfillScope()
    if value == "none":
        return BackfillScope(enabled=False)
    if not isinstance(value, Mapping):
        reader.refuse(f"backfill is auto, none or a mapping {{from, to, parallel}}, not {value!r}.")
        return BackfillScope()
    _refuse_unknown(reader, "backfill", value, _SCOPE_KEYS)
    parallel = value.get("parallel", 0)
    if isinstance(parallel, bool) or not isinstance(parallel, int):
        reader.refuse(f"backfill.parallel is a number of chunks, not {parallel!r}.")
        parallel = 0
    elif not 0 <= parallel <= _PARALLEL_MAX:
        reader.refuse(f"backfill.parallel is 0 to {_PARALLEL_MAX}, not {parallel}.")
    return BackfillScope(
        first=_bound(reader, value, "from"), last=_bound(reader, value, "to"), parallel=parallel
    )


def _bound(reader: ConfigReader, scope: Mapping[str, object], name: str) -> str:
    """Return a bound of `backfill` as text, "" if it is not set."""
    value = scope.get(name)
    if value is None:
        return ""
    if isinstance(value, bool | Mapping | list):
        reader.refuse(
            f"backfill.{name} is a date or another value of the source's partition, not {value!r}."
        )
        return ""
    return str(value)


def reconcile_policy(config: Mapping[str, Any]) -> ReconcilePolicy:
    """Return the model's policy for `reconciled`; raise CompilationError if it is none."""
    reader = ConfigReader(config)
    policy = _reconcile_policy(reader)
    if reader.problems:
        raise config_error(reader.problems)
    return policy


def _reconcile_policy(reader: ConfigReader) -> ReconcilePolicy:
    """Return how the test `reconciled` compares: a mode, or `{mode, tolerance, sample}`."""
    value = reader.value("reconcile")
    if value is None:
        return ReconcilePolicy()
    if value is False:  # YAML reads `off` as false
        return ReconcilePolicy(mode="off")
    chosen = value if isinstance(value, Mapping) else {"mode": value}
    _refuse_unknown(reader, "reconcile", chosen, _RECONCILE_KEYS)
    mode = chosen.get("mode", "full")
    mode = "off" if mode is False else mode
    if mode not in RECONCILE_MODES:
        reader.refuse(f"reconcile is {any_of(RECONCILE_MODES)}, not {mode!r}.")
        mode = "full"
    tolerance, sample = chosen.get("tolerance", 0), chosen.get("sample", _SAMPLE_PARTITIONS)
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float):
        reader.refuse(f"reconcile.tolerance is a share of the keys, 0 to 1, not {tolerance!r}.")
        tolerance = 0
    elif not (math.isfinite(tolerance) and 0 <= tolerance <= 1):
        reader.refuse(f"reconcile.tolerance is a share of the keys, 0 to 1, not {tolerance}.")
    if isinstance(sample, bool) or not isinstance(sample, int) or sample < 1:
        reader.refuse(f"reconcile.sample is a number of partitions from 1, not {sample!r}.")
        sample = _SAMPLE_PARTITIONS
    return ReconcilePolicy(str(mode), float(tolerance), sample)


def _refuse_unknown(
    reader: ConfigReader, name: str, value: Mapping[str, object], known: tuple[str, ...]
) -> None:
    """Add a mistake for each key of a mapping that has no meaning."""
    for key in value:
        if key not in known:
            reader.refuse(f"{name} has {', '.join(known)}, not {key}.")

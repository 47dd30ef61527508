"""The adapter: its configs and capabilities. Its methods are in `methods`, by subject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dbt.adapters.base import AdapterConfig
from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt_common.contracts.constraints import ConstraintType

from .methods.incremental_mv import IncrementalMvMethods
from .methods.materializations import MaterializationMethods
from .methods.python_models import PythonModelMethods


@dataclass
class OlapdbConfig(AdapterConfig):
    """The model configs that are specific to olapdb; see docs/dbt.md."""

    engine: str | None = None
    order_by: str | list[str] | None = None
    partition_by: str | list[str] | None = None
    primary_key: str | list[str] | None = None
    ttl: str | list[str] | None = None
    table_settings: dict[str, Any] | None = None
    settings: dict[str, Any] | None = None
    query_settings: dict[str, Any] | None = None
    indexes: list[dict[str, Any]] | None = None
    on_definition_change: str | None = None
    refresh: str | dict[str, Any] | None = None
    refreshable: str | dict[str, Any] | None = None
    backfill: str | dict[str, Any] | None = None
    backfill_on: str | None = None
    backfill_engine: str | None = None
    retain: str | None = None
    dimensions: list[str] | None = None
    reconcile: str | dict[str, Any] | None = None
    deduplicate_by: str | list[str] | None = None
    submission_method: str | None = None
    arrow_input: str | None = None


class OlapdbAdapter(PythonModelMethods, MaterializationMethods, IncrementalMvMethods):
    """The adapter of olapdb: names of two levels, one commit a statement, models that are triggers."""

    AdapterSpecificConfigs = OlapdbConfig

    _capabilities: ClassVar[CapabilityDict] = CapabilityDict(
        {
            Capability.SchemaMetadataByRelations: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadataBatch: CapabilitySupport(support=Support.Full),
            Capability.GetCatalogForSingleRelation: CapabilitySupport(support=Support.Full),
            Capability.MicrobatchConcurrency: CapabilitySupport(support=Support.Full),
        }
    )

    CONSTRAINT_SUPPORT: ClassVar[dict[ConstraintType, ConstraintSupport]] = {
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.primary_key: ConstraintSupport.NOT_ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }

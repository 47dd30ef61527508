"""Finds the partitions of a target that the rows of a source part reach, by running the view."""

from __future__ import annotations

from dataclasses import field

from olapdb.errors import CorruptedData, FileDoesntExist
from olapdb.ingest.dimension_requirements import dimension_requirements
from olapdb.ingest.read_parts import read_rows
from olapdb.ingest.trigger import TriggerContext
from olapdb.lineage.invalidation import StaleSlices
from olapdb.lineage.retention import is_lineage_unknown
from olapdb.model.part import Part
from olapdb.model.requirements import DataVersionIs, Requirement, SchemaIs
from olapdb.model.schema import MaterializedView, Table
from olapdb.records import dataclass


@dataclass
class PartLookup:
    """A lookup that runs the view on source parts to find the partitions of the target that their
    rows reach. A part's blocks are a range, and a block may have rows in several partitions, so the
    names alone do not suffice."""

    view: MaterializedView
    source: Table
    context: TriggerContext
    requirements: list[Requirement] = field(default_factory=list)

    def reached(self, part: Part) -> frozenset[str] | None:
        """Return the partitions. None if they stay unknown: the view is broken, the part is, or
        the target may hold the result of another definition, or of another state of a dimension."""
        snapshot = self.context.snapshot
        if self.view.unprovable or is_lineage_unknown(self.view, snapshot):
            return None
        slices = StaleSlices.of(self.view)
        try:
            rows = read_rows(self.context, self.source, part)
        except (CorruptedData, FileDoesntExist):
            return None
        slices.add(self.context, rows)
        version = snapshot.data_version(self.source.id, part.partition_id)
        self.requirements += [
            SchemaIs(self.source.id, self.source.version),
            DataVersionIs(self.source.id, part.partition_id, version),
            *(needed for needed, _ in dimension_requirements(self.view, snapshot)),
        ]
        return None if None in slices.rows else frozenset(filter(None, slices.rows))

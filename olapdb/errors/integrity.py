"""Leaves of IntegrityError: constraints, dependents, views and deliveries."""

from __future__ import annotations

from olapdb.errors.tree import IntegrityError


class ViolatedConstraint(IntegrityError, name="VIOLATED_CONSTRAINT", code=469):
    """An inserted row that fails a CHECK constraint."""


class HaveDependentObjects(IntegrityError, name="HAVE_DEPENDENT_OBJECTS", code=630):
    """An object that others, such as views, still depend on."""


class ViewNotProvable(IntegrityError, name="QUERY_IS_NOT_SUPPORTED_IN_MATERIALIZED_VIEW", code=397):
    """A view whose rows merging would corrupt; the message has the reason and the fix."""


class BypassRows(IntegrityError, name="BYPASS_ROWS", code=2003):
    """A slice of a view's target with rows that no trigger, backfill or replay wrote."""


class RetainedRows(IntegrityError, name="RETAINED_ROWS", code=2006):
    """A slice with results of source rows that retention deleted; replacing it would lose them."""


class ViewDiffers(IntegrityError, name="VIEW_DIFFERS", code=2007):
    """A view whose content differs from a recomputation from its source."""


class OffsetHole(IntegrityError, name="OFFSET_HOLE", code=2005):
    """Source offsets that do not follow the stored ones."""


class DuplicateInsert(IntegrityError, name="INSERT_WAS_DEDUPLICATED", code=389):
    """An INSERT whose token was committed before; the caller treats it as done."""

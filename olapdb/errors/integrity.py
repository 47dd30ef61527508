"""Rows, views or deliveries would not be what they are said to be."""

from __future__ import annotations

from olapdb.errors.tree import IntegrityError


class ViolatedConstraint(IntegrityError):
    name = "VIOLATED_CONSTRAINT"
    code = 469


class HaveDependentObjects(IntegrityError):
    name = "HAVE_DEPENDENT_OBJECTS"
    code = 630


class ViewNotProvable(IntegrityError):
    """A view's definition would be corrupted by merging; the message has the reason and the fix."""

    name = "QUERY_IS_NOT_SUPPORTED_IN_MATERIALIZED_VIEW"
    code = 397


class BypassRows(IntegrityError):
    """A slice holds rows that no trigger, backfill or replay put there."""

    name = "BYPASS_ROWS"
    code = 2003


class RetainedRows(IntegrityError):
    """A slice holds what was made of source rows that have left by retention: it would be lost."""

    name = "RETAINED_ROWS"
    code = 2006


class ViewDiffers(IntegrityError):
    """A version of a view is not equal to a recomputation from its source."""

    name = "VIEW_DIFFERS"
    code = 2007


class ViewGap(IntegrityError):
    """An operation needs coverage that the view does not have; backfill first."""

    name = "VIEW_GAP"
    code = 2004


class OffsetHole(IntegrityError):
    """Source offsets do not follow the stored ones."""

    name = "OFFSET_HOLE"
    code = 2005


class DuplicateInsert(IntegrityError):
    """An INSERT with this token was committed before; the caller treats it as done."""

    name = "INSERT_WAS_DEDUPLICATED"
    code = 389

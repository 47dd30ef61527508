"""The time zones that types name, and the zone of a conversion's result."""

from __future__ import annotations

from olapdb.types import DataType, DateTime, DateTime64, Nullable, plain


def own_zone(data_type: DataType) -> str | None:
    """Return the zone that a DateTime or DateTime64 names; None for other types."""
    inner = plain(data_type)
    return inner.zone if isinstance(inner, DateTime | DateTime64) else None


def with_zone_of(source: DataType, target: DataType) -> DataType:
    """Return the target type of a CAST from `source`: a DateTime target without a zone takes the source's zone."""
    zone = own_zone(source)
    if zone is None:
        return target
    match target:
        case DateTime(None):
            return DateTime(zone)
        case DateTime64(precision, None):
            return DateTime64(precision, zone)
        case Nullable(inner):
            return Nullable(with_zone_of(source, inner))
        case _:
            return target

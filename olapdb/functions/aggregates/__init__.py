"""Aggregates as triads (state, merge, finalize); `registry.resolve_aggregate` is the way in."""

"""Aggregates as triads (state, merge, finalize). `registry.resolve_aggregate` returns one by name."""

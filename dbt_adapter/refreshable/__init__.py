"""Materialized views that are refreshed on a schedule: the config `refresh` of `materialized_view`."""

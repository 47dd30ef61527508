"""The `incremental_mv` materialization: a SELECT becomes target, trigger and read view."""

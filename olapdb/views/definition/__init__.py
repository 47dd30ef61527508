"""Definitions of materialized views: create, judge, modify, detach, drop, rename."""

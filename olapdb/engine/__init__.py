"""Semantics of the MergeTree engines: layout, default values, combining rows by sorting key."""

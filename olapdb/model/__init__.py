"""Frozen facts about tables, parts, views and commits; no input or output."""

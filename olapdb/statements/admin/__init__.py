"""Statements that administer a warehouse: SYSTEM, KILL, CHECK, read-only mode."""

"""Statements that change the schema."""

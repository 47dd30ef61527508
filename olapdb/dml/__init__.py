"""Statements that change rows: INSERT, DELETE, UPDATE, mutations, TRUNCATE, TTL, partition commands."""

"""The catalog in an SQLite file."""

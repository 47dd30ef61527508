"""Bytes: stores, parts written and read. Sees no SQL."""

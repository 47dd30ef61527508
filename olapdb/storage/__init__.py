"""Bytes of parts: stores, writer, reader, indexes and caches. Sees no SQL text."""

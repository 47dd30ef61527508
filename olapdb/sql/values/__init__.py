"""Readers of the VALUES clause."""

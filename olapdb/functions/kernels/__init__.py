"""Helpers for columns, Arrow buffers, slices and hashes that functions of every family use."""

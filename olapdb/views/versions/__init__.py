"""Versions of a view: rebuild beside the old one, swap, roll back."""

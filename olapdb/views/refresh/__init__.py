"""Refreshable views: when a refresh is due, and what one refresh commits."""

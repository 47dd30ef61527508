"""Merges parts, in the background and on demand, and vacuums what they leave."""

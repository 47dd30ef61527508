"""The adapter is released with the engine and has its version."""

from olapdb import __version__ as version

__all__ = ["version"]

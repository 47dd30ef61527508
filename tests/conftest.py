"""Registers the fixtures of the harness for all tests."""

from __future__ import annotations

pytest_plugins = ["tests.harness.fixtures"]

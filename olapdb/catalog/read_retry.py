"""Reads that are worth nothing once a writer came meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from olapdb.errors import CatalogChanged, Error

READ_ATTEMPTS_MAX = 10
Answer = TypeVar("Answer")


def retry_read(
    read: Callable[[], Answer], worthless: tuple[type[Error], ...] = (CatalogChanged,)
) -> Answer:
    """What `read` gives; again, bounded, where it raised one of `worthless`."""
    for _ in range(READ_ATTEMPTS_MAX - 1):
        try:
            return read()
        except worthless:
            continue
    return read()

"""Retry reads that a concurrent writer invalidated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from olapdb.errors import CatalogChanged, Error

READ_ATTEMPTS_MAX = 10
Answer = TypeVar("Answer")


def retry_read(
    read: Callable[[], Answer], retried: tuple[type[Error], ...] = (CatalogChanged,)
) -> Answer:
    """Call `read` and return its result. Repeat it when it raises one of `retried`, a bounded
    number of times; then raise that error."""
    for _ in range(READ_ATTEMPTS_MAX - 1):
        try:
            return read()
        except retried:
            continue
    return read()

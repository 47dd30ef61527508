"""A catalog and a store of which the n-th call fails, before or after it was made in earnest."""

from __future__ import annotations

import errno
import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.errors import CommitUnknown, OperationalError
from olapdb.runtime.services import Services
from olapdb.storage.store import LocalStore, storage_error

When = Literal["before", "after"]

_STORE = ("open_input", "write", "sync", "delete", "exists", "size", "list")
_NO_CALLS = frozenset({"close", "unpin"})
"""Of the catalog: what ends its life, and what only forgets."""


@dataclass(frozen=True)
class Fault:
    """The call `number` (1 is the first) fails, `forever` all later ones too. "after": once it was
    made; of a commit nobody knows then whether it happened."""

    number: int
    when: When
    forever: bool
    lying: bool = False
    """A commit of which nobody knows is called one that did not happen: what rule 14 is about."""

    def __str__(self) -> str:
        return f"call {self.number} fails {self.when}{' for ever' if self.forever else ''}"


@dataclass
class Calls:
    """The names of the calls so far, in their order."""

    fault: Fault | None
    names: list[str]
    lock: threading.Lock

    def next(self, name: str) -> bool:
        """Whether this one is to fail."""
        with self.lock:
            self.names.append(name)
            number = len(self.names)
        fault = self.fault
        if fault is None:
            return False
        return number == fault.number or (fault.forever and number > fault.number)


@contextmanager
def failing(services: Services, fault: Fault | None) -> Iterator[Calls]:
    """Inside of the `with` each public call of the warehouse's catalog counts, and of its store; so
    do those of other stores in files, such as a backup's."""
    calls = Calls(fault, [], threading.Lock())
    catalog, store = services.catalog, services.store
    names = [
        name
        for name, member in vars(type(catalog)).items()
        if not name.startswith("_") and callable(member) and name not in _NO_CALLS
    ]
    for name in names:
        setattr(catalog, name, _counted(f"catalog.{name}", getattr(catalog, name), calls))
    kind = type(store)
    real = {name: getattr(kind, name) for name in _STORE}
    for name, method in real.items():
        setattr(kind, name, _counted(f"store.{name}", method, calls))
    sync = catalog._sync_files  # type: ignore[attr-defined]
    catalog._sync_files = lambda: store.sync()  # type: ignore[attr-defined]
    try:
        yield calls
    finally:
        catalog._sync_files = sync  # type: ignore[attr-defined]
        for name in names:
            delattr(catalog, name)
        for name, method in real.items():
            setattr(kind, name, method)


@contextmanager
def failing_anywhere(fault: Fault | None) -> Iterator[Calls]:
    """As `failing`, of every catalog and store of the process, those that are opened inside of the
    `with` too; and of renames and flushes by the process itself."""
    calls = Calls(fault, [], threading.Lock())
    real: list[tuple[Any, str, Any]] = []
    for kind, label, names in (
        (SqliteCatalog, "catalog", ("apply", "copy_to", "snapshot")),
        (LocalStore, "store", _STORE),
        (os, "os", ("replace", "fsync")),
    ):
        for name in names:
            real.append((kind, name, getattr(kind, name)))
            setattr(kind, name, _counted(f"{label}.{name}", getattr(kind, name), calls))
    try:
        yield calls
    finally:
        for kind, name, method in real:
            setattr(kind, name, method)


def _counted(name: str, real: Callable[..., Any], calls: Calls) -> Callable[..., Any]:
    @functools.wraps(real)
    def call(*positional: Any, **named: Any) -> Any:
        if not calls.next(name):
            return real(*positional, **named)
        assert calls.fault is not None
        if calls.fault.when == "before":
            raise _error(name)
        real(*positional, **named)
        if name == "catalog.apply" and not calls.fault.lying:
            raise CommitUnknown("planted", hint="planted")
        raise _error(name)

    return call


def _error(name: str) -> Exception:
    if name.startswith("os."):
        return OSError(errno.EIO, "planted")
    if name.startswith("store."):
        return storage_error(OSError(errno.EIO, "planted"), name)
    return OperationalError(f"planted in {name}")

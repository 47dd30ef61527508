"""A catalog and a store whose n-th call fails, before or after its real execution."""

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
"""Methods of the catalog that do not count: they end its life, or only release something."""


@dataclass(frozen=True)
class Fault:
    """A planted fault. The call `number` (1 is the first) fails, with `forever` all later ones
    too. "after" fails once the call was executed; the outcome of a commit is unknown then.

    With `name`, only the calls of that name count: threads of another open warehouse also call
    stores, and would shift the number."""

    number: int
    when: When
    forever: bool
    lying: bool = False
    """Whether a commit with unknown outcome raises as if it had not happened, against rule 14."""
    name: str | None = None

    def __str__(self) -> str:
        return f"call {self.number} {self.name or ''} fails {self.when}{' for ever' if self.forever else ''}"


@dataclass
class Calls:
    """The names of the calls so far, in their order."""

    fault: Fault | None
    names: list[str]
    lock: threading.Lock

    def next(self, name: str) -> bool:
        """Record a call; return whether it must fail."""
        with self.lock:
            self.names.append(name)
            fault = self.fault
            if fault is None or fault.name not in (None, name):
                return False
            number = len(self.names) if fault.name is None else self.names.count(name)
        return number == fault.number or (fault.forever and number > fault.number)


@contextmanager
def failing(services: Services, fault: Fault | None) -> Iterator[Calls]:
    """Count, and fail, public calls of the warehouse's catalog and store, and of other file
    stores such as a backup's."""
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
    """Do as `failing` for every catalog and store of the process, also those opened inside of
    the `with`, and for renames and flushes by the process itself."""
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

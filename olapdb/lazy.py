"""Modules that are imported when first used, for statements and work that a process may never need.

    if TYPE_CHECKING:
        from olapdb.statements.ddl import alter, create
    else:
        alter, create = lazy_modules("olapdb.statements.ddl", "alter", "create")

Type checkers and import-linter see the first form; a test compares the two. A module is deferred
where many others hang on it. What every SELECT uses is imported as usual.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType


class LazyModule:
    """A stand-in for a module, which is imported at the first attribute that is asked of it.

    It keeps the module, but no attribute, so that one that a test replaces in the module is replaced here too.
    """

    __slots__ = ("_module", "_module_name")

    def __init__(self, module_name: str) -> None:
        self._module_name = module_name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> object:
        module = self._module
        if module is None:
            module = self._module = import_module(self._module_name)
        return getattr(module, name)

    def __repr__(self) -> str:
        return f"<module {self._module_name!r}, imported when used>"


def lazy_modules(package: str, *names: str) -> Iterator[LazyModule]:
    """Yield stand-ins for modules of a package, in the order of the names."""
    return (LazyModule(f"{package}.{name}") for name in names)


@contextmanager
def without_collections() -> Iterator[None]:
    """Pause the collection of garbage: modules make many objects and hardly any garbage, and looking
    through them again and again takes a tenth of the time to import the engine."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

"""ICU for tests of COLLATE."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from olapdb.functions.strings import collations

FOLDER = Path(sys.prefix) / "icu"
"""Where `make setup` installs ICU, beside the other packages."""
_held: dict[str, ModuleType] = {}
"""The modules of ICU between two blocks: its library cannot be loaded twice."""


def packages_for(path: Path) -> AbstractContextManager[None]:
    """Return the block in which to run a file of SQL tests: that of COLLATE needs ICU."""
    return with_icu() if path.stem == "collations" else nullcontext()


@contextmanager
def with_icu() -> Iterator[None]:
    """Let the block find ICU, and nothing behind it: parsedatetime, which dbt needs, would read dates by it. Skip the test
    where ICU is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        sys.modules.update(_held)
        if find_spec("icu") is None:
            pytest.skip(f"COLLATE needs ICU, an optional requirement: {FOLDER} lacks it")
        collations._library.cache_clear()
        try:
            yield
        finally:
            collations._library.cache_clear()
            for name in [name for name in sys.modules if name.partition(".")[0] == "icu"]:
                _held[name] = sys.modules.pop(name)

"""The memory pool of what lasts is jemalloc where the program has not chosen a pool."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pytest

pytestmark = pytest.mark.feature("storage")

POOL = "from olapdb.native.memory import lasting_pool; print(lasting_pool().backend_name)"


def _pool_of_a_process(program: str, chosen: str | None) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "ARROW_DEFAULT_MEMORY_POOL"}
    if chosen is not None:
        environment["ARROW_DEFAULT_MEMORY_POOL"] = chosen
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout.strip()


def test_it_is_jemalloc_in_place_of_mimalloc() -> None:
    backends = pa.supported_memory_backends()
    if "mimalloc" not in backends or "jemalloc" not in backends:
        pytest.skip("this pyarrow has one of them only")
    assert _pool_of_a_process(POOL, None) == "jemalloc"


def test_a_pool_that_the_program_chose_is_heeded() -> None:
    assert _pool_of_a_process(POOL, "system") == "system"
    chosen = f"import pyarrow; pyarrow.set_memory_pool(pyarrow.system_memory_pool()); {POOL}"
    assert _pool_of_a_process(chosen, None) == "system"

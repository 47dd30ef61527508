"""Build the library of compiled kernels: `python -m olapdb.native.build [file]`.

`setup.py` runs the same function when a wheel is built or the project is installed from source.  It
imports nothing but the standard library, so that it runs before olapdb's requirements are there.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent
LIBRARY = FOLDER / "_kernels.so"
FLAGS = ("-O3", "-std=c11", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-Wall")
"""Sums of floats must not depend on the machine, so that no two operations become one."""


class CompilerMissing(Exception):
    """No C compiler that can build the kernels was found, or it failed; the text says why."""


def build(target: Path = LIBRARY) -> Path:
    """Compile the kernels to `target` and return it. Raises CompilerMissing.

    The library replaces an older one at once, so that running processes keep the one they have."""
    target.parent.mkdir(parents=True, exist_ok=True)
    sources = [str(path) for path in sorted(FOLDER.glob("*.c"))]
    problems = []
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        for compiler in compilers():
            command = [*compiler, *FLAGS, "-o", str(made), *sources]
            try:
                run = subprocess.run(command, capture_output=True, text=True, check=False)
            except OSError as error:
                problems.append(f"{shlex.join(compiler)}: {error}")
                continue
            if run.returncode == 0:
                os.replace(made, target)
                return target
            problems.append(f"{shlex.join(compiler)}: {run.stderr.strip()}")
    raise CompilerMissing("\n".join(problems) or "No C compiler is installed (gcc, clang or cc).")


def compilers() -> Iterator[list[str]]:
    """Yield the commands of C compilers in the order in which to try them.

    `CC` decides if it is set. The package ziglang serves where the machine has no compiler."""
    chosen = os.environ.get("CC")
    if chosen:
        yield shlex.split(chosen)
        return
    configured = shlex.split(sysconfig.get_config_var("CC") or "")
    for command in (configured[:1], ["cc"], ["gcc"], ["clang"]):
        if command and shutil.which(command[0]):
            yield command
    if importlib.util.find_spec("ziglang") is not None:
        yield [sys.executable, "-m", "ziglang", "cc"]


if __name__ == "__main__":
    try:
        print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else LIBRARY))  # noqa: T201
    except CompilerMissing as missing:
        sys.exit(f"The kernels were not built; olapdb runs without them.\n{missing}")

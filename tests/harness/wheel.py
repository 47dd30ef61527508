"""The wheel of the project, and a run of pytest that tests the wheel instead of the sources.

    python -m pytest tests/contract/dbt/suite -p tests.harness.wheel -p dbt.tests.fixtures.project …

As a plugin it installs the wheel into a temporary folder, first on the path of this process and of
those that it starts. It imports nothing of olapdb, which would come from the sources.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("olapdb", "dbt_adapter", "macros", "setup.py", "pyproject.toml", "README.md")
FOLDER = pytest.StashKey[Path]()
"""The folder in which the tested wheel is installed; only in the stash of a run with this plugin."""


def build_wheel(folder: Path, **environment: str) -> Path:
    """Build the wheel in the folder, from a copy of the sources, and return its file.

    Variables of the `environment` are added to those of this process.

    A build in the tree would pack what earlier builds left in `build`."""
    sources = folder / "sources"
    sources.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(ROOT / name, sources / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, sources / name)
    build = ("-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(sources))
    _run(*build, **environment)
    (wheel,) = folder.glob("*.whl")
    return wheel


class InstalledWheel:
    """The wheel, installed in a temporary folder for the time of a run of pytest."""

    def __init__(self) -> None:
        """Build and install the wheel, and put it first on the path."""
        self._folder = Path(tempfile.mkdtemp(prefix="olapdb-wheel-"))
        self.installed = self._folder / "installed"
        wheel = build_wheel(self._folder)
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
        _run(*pip, "--no-index", "--target", str(self.installed), str(wheel))
        sys.path.insert(0, str(self.installed))
        inherited = os.environ.get("PYTHONPATH")
        path = [str(self.installed), *([inherited] if inherited else [])]
        os.environ["PYTHONPATH"] = os.pathsep.join(path)

    def pytest_configure(self, config: pytest.Config) -> None:
        """Tell the tests where the wheel is."""
        config.stash[FOLDER] = self.installed

    def pytest_unconfigure(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)


def pytest_plugin_registered(plugin: object, manager: pytest.PytestPluginManager) -> None:
    """Install the wheel as soon as this plugin is registered: before the plugins that follow it,
    and all conftests, import packages of olapdb or dbt."""
    if plugin is not sys.modules[__name__]:
        return
    loaded = sorted({"olapdb", "dbt"} & {name.partition(".")[0] for name in sys.modules})
    if loaded:
        raise pytest.UsageError(f"Name -p {__name__} before the plugins that import {loaded[0]}.")
    manager.register(InstalledWheel(), "installed-wheel")


def _run(*arguments: str, **environment: str) -> None:
    """Run Python with the arguments. Raises UsageError with what it printed if it fails."""
    variables = os.environ | environment
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if done.returncode != 0:
        raise pytest.UsageError(f"{arguments} failed:\n{done.stdout}\n{done.stderr}")

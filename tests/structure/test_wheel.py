"""The wheel holds what an installed olapdb needs, macros, yml files and compiled kernels too."""

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.harness.wheel import build_wheel

pytestmark = pytest.mark.feature("house")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of this machine."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.mark.slow
def test_wheel_holds_every_package_and_file(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        "olapdb" + str(p).removeprefix(str(ROOT / "olapdb"))
        for p in (ROOT / "olapdb").rglob("*.py")
    }
    for folder, package in (
        ("dbt_adapter", "dbt/adapters/olapdb"),
        ("macros", "dbt/include/olapdb"),
    ):
        for pattern in ("*.py", "*.sql", "*.yml"):
            for path in (ROOT / folder).rglob(pattern):
                expected.add(package + str(path).removeprefix(str(ROOT / folder)))
    expected |= {"olapdb/py.typed", "dbt/adapters/olapdb/py.typed"}
    assert expected <= names, sorted(expected - names)


@pytest.mark.slow
def test_wheel_of_this_machine_runs_the_kernels_in_a_clean_environment(
    wheel: Path, tmp_path: Path
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("There is no C compiler.")
    assert wheel.name.split("-", 2)[2].startswith("py3-none-")
    assert not wheel.name.endswith("-any.whl")
    assert "olapdb/native/_kernels.so" in zipfile.ZipFile(wheel).namelist()
    assert installed_answer(wheel, tmp_path) == "compiled 499500"


@pytest.mark.slow
def test_wheel_without_a_compiler_is_for_every_platform(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path, CC="/no/compiler")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so")]
    assert installed_answer(wheel, tmp_path).endswith("python -m olapdb.native.build 499500")


def installed_answer(wheel: Path, folder: Path) -> str:
    """Install the wheel apart from this tree; return which kernels run there, and a sum."""
    site = folder / "site"
    install = ("-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--target", str(site))
    subprocess.run([sys.executable, *install, str(wheel)], check=True)
    requirements = sysconfig.get_path("purelib")
    program = f"""import sys; sys.path += [{str(site)!r}, {requirements!r}]
import olapdb
assert olapdb.__file__.startswith({str(site)!r})
with olapdb.connect({str(folder / "warehouse")!r}) as connection:
    query = "SELECT value, (SELECT sum(number) FROM numbers(1000)) FROM system.build_options"
    print(*connection.execute(query + " WHERE name = 'KERNELS'").fetchone())"""
    command = [sys.executable, "-I", "-S", "-c", program]
    run = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return run.stdout.strip()

"""The wheel holds what an installed olapdb needs, macros and yml files too."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.feature("house")

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_wheel_holds_every_package_and_file(tmp_path: Path) -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            str(tmp_path),
            ".",
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
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

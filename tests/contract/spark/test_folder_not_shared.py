"""A worker that joins late and does not see the warehouse's folder, or sees another one in its
place: nothing is committed, and the error says what to share.

One cluster for the file: worker A sees what the driver sees; worker B has in the place of `hidden` an
empty folder, of `copied` a copy of before, and of `overlaid` the folder itself for reading, while what
it writes goes elsewhere.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.contract.spark.cluster import (
    ENDS_WITH_THIS_THREAD,
    Cluster,
    can_unshare,
    driver_environment,
)
from tests.contract.spark.cluster_driver import PARTITIONS, ROWS, WAREHOUSES

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not can_unshare(), reason="mount namespaces need root"),
    pytest.mark.feature("spark"),
]

WORK = ("read", "write", "reconcile", "backfill", "replay")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the outcome of each step as the driver prints it, by warehouse."""
    folder = tmp_path_factory.mktemp("cluster")
    warehouses, elsewhere = folder / "warehouses", folder / "elsewhere"
    warehouses.mkdir()
    elsewhere.mkdir()
    with Cluster(folder) as cluster:
        cluster.add_worker("a")
        with started_driver(cluster, warehouses) as driver:
            assert driver.stdout is not None
            alone = driver.stdout.readline()
            if not alone:
                pytest.fail(f"{driver.communicate()[1]}\n{cluster.log()}")
            assert json.loads(alone) == {"alone": dict.fromkeys(WAREHOUSES, ROWS)}
            cluster.add_worker("b", mounts(warehouses, elsewhere))
            out, err = driver.communicate("joined\n")
        if driver.returncode != 0:
            pytest.fail(f"{err}\n{cluster.log()}")
    result: dict[str, Any] = json.loads(out)
    return result


@contextmanager
def started_driver(cluster: Cluster, warehouses: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the driver; at the end of the body, and of this thread, it is gone with its JVM."""
    module = "tests.contract.spark.cluster_driver"
    with subprocess.Popen(
        [*ENDS_WITH_THIS_THREAD, sys.executable, "-m", module, cluster.master, str(warehouses)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=driver_environment(),
        start_new_session=True,
    ) as driver:
        try:
            yield driver
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)


def mounts(warehouses: Path, elsewhere: Path) -> str:
    (elsewhere / "empty").mkdir()
    (elsewhere / "upper").mkdir()
    shutil.copytree(warehouses / "copied", elsewhere / "copy")
    upper, overlaid = elsewhere / "upper", warehouses / "overlaid"
    return "; ".join(
        (
            f"mount --bind {elsewhere}/empty {warehouses}/hidden",
            f"mount --bind {elsewhere}/copy {warehouses}/copied",
            f"mount -t tmpfs none {upper}",
            f"mkdir {upper}/rows {upper}/work",
            f"mount -t overlay none -o lowerdir={overlaid},upperdir={upper}/rows,"
            f"workdir={upper}/work {overlaid}",
        )
    )


def test_workers_that_share_the_folder_work(told: dict[str, Any]) -> None:
    found = told["shared"]
    assert {name: found[name].get("error") for name in WORK} == dict.fromkeys(WORK)
    assert found["frame of before"]["answer"] == str(ROWS)
    assert found["read"]["answer"] == str(ROWS + 8)
    assert found["write"]["answer"] == str(ROWS)
    assert found["rows"] == 2 * ROWS + 8


@pytest.mark.parametrize("name", ["write", "replay", "reconcile"])
@pytest.mark.parametrize("warehouse", ["hidden", "copied"])
def test_work_on_another_folder_is_refused(told: dict[str, Any], warehouse: str, name: str) -> None:
    found = told[warehouse][name]
    assert (found["error"], found["commits"]) == ("FolderNotShared", 0), found
    assert f"/warehouses/{warehouse}" in found["message"]
    assert "Share the folder with every executor under this very path" in found["message"]


@pytest.mark.parametrize("warehouse", ["hidden", "copied", "overlaid"])
def test_chunks_on_another_folder_fail_and_others_are_published(
    told: dict[str, Any], warehouse: str
) -> None:
    found = told[warehouse]["backfill"]
    assert found["error"] == "BackfillIncomplete"
    assert "Share the folder" in found["message"]
    assert found["commits"] < PARTITIONS


@pytest.mark.parametrize("warehouse", ["hidden", "copied"])
def test_a_frame_on_another_folder_fails_and_never_gives_some_rows(
    told: dict[str, Any], warehouse: str
) -> None:
    """Spark tries a task again elsewhere: either all is read by the worker that sees the folder, or the
    frame fails. (The copy was made after the frame of before, and has all that it reads.)"""
    for name, rows in (("read", ROWS + 8), ("frame of before", ROWS)):
        found = told[warehouse][name]
        if "answer" in found:
            assert found["answer"] == str(rows)
            continue
        assert found["error"] == "PySparkException"
        assert "FOLDER_NOT_SHARED" in found["message"] or "SNAPSHOT_TOO_OLD" in found["message"]
        assert f"/warehouses/{warehouse}" in found["message"]


def test_files_that_the_driver_does_not_see_are_not_committed(told: dict[str, Any]) -> None:
    """The worker reads all that the driver writes, but what it stages lands elsewhere."""
    found = told["overlaid"]
    assert found["read"]["answer"] == str(ROWS + 8)
    for name in ("write", "replay"):
        assert (found[name]["error"], found[name]["commits"]) == ("FolderNotShared", 0)
        assert "is not in the driver's folder" in found[name]["message"]


@pytest.mark.parametrize("warehouse", WAREHOUSES)
def test_what_is_committed_can_be_read(told: dict[str, Any], warehouse: str) -> None:
    found = told[warehouse]
    assert found["rows"] == (2 * ROWS if warehouse == "shared" else ROWS) + 8
    assert found["verdicts"] == ["equal"]
    assert found["problems"] == []
    assert found["markers"] == 2, "those of the two frames, until the connection is closed"

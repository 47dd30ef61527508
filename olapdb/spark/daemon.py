"""The parent process of Spark's Python workers on a local master: pyspark's own, after slow
imports.

Workers are forked from it, so that a new one starts in a second rather than in four.
"""

from __future__ import annotations

import pyarrow
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()

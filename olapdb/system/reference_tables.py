"""system.table_engines, table_functions, data_type_families, aggregate_function_combinators, formats,
time_zones, tokenizers and build_options: facts about this release, independent of the warehouse."""

from __future__ import annotations

import platform
import zoneinfo
from collections.abc import Iterator
from importlib.metadata import version

import pyarrow as pa

from olapdb.bind.table_functions import FUNCTIONS
from olapdb.formats.registry import formats
from olapdb.functions.strings.tokenizers import NAMES, REFUSED
from olapdb.native.library import about as about_kernels
from olapdb.system.registry import Row, SystemContext, SystemTable
from olapdb.types.families import type_families

_ENGINES = (
    ("MergeTree", "Sorted parts, merged in the background."),
    (
        "ReplacingMergeTree",
        "Of rows with one sorting key the last, or that of the highest version.",
    ),
    ("SummingMergeTree", "Rows with one sorting key are added up."),
    ("CoalescingMergeTree", "The last value that is not NULL of each column is kept."),
    ("AggregatingMergeTree", "States of rows with one sorting key are merged."),
    ("CollapsingMergeTree", "Rows of sign 1 and -1 cancel each other."),
    ("VersionedCollapsingMergeTree", "As CollapsingMergeTree, in any order of insertion."),
    ("Memory", "Rows in the order of insertion, without keys; they are kept on disk too."),
    ("Log", "Rows in the order of insertion, without keys."),
    ("TinyLog", "The same as Log."),
    ("StripeLog", "The same as Log."),
    ("Set", "The same as Log, for the right side of IN."),
    ("Join", "The same as Log, for the right side of one kind of JOIN and for joinGet."),
    ("Merge", "No rows: those of all tables whose name matches are read."),
    ("Null", "Stores nothing; views fire on what is inserted."),
)
_REPLICATED = "The plain engine: a warehouse is its own replica."
_COMBINATORS = (
    ("If", "Only rows of which the last argument, a condition, is true."),
    ("Array", "Over the elements of arrays."),
    ("Map", "Over the values of maps, each key on its own."),
    ("ForEach", "The first elements of arrays, the second ones, … each on their own."),
    ("Resample", "Rows by the bucket of their last argument, each bucket on its own."),
    ("ArgMin", "Only the rows of which the last argument is the smallest."),
    ("ArgMax", "Only the rows of which the last argument is the largest."),
    ("Tuple", "Each element of tuples on its own."),
    ("Distinct", "Each value, or each set of values, once."),
    ("OrDefault", "The default of the type where there is no row."),
    ("OrNull", "NULL where there is no row."),
    ("State", "The state instead of the result."),
    ("SimpleState", "The result as a SimpleAggregateFunction."),
    ("Merge", "The result of states that are merged."),
    ("MergeState", "The state of states that are merged."),
)


def _table_engines(context: SystemContext) -> Iterator[Row]:
    """List the table engines and what each supports; each MergeTree also as Replicated…."""
    for name, description in _ENGINES:
        sorts = int(name.endswith("MergeTree"))
        takes_settings = int(name not in ("Merge", "Null"))
        parallel = int(sorts or name in ("Memory", "Null"))
        yield name, takes_settings, sorts, sorts, sorts, sorts, 0, 0, parallel, description
        if sorts:
            yield f"Replicated{name}", 1, 1, 1, 1, 1, 0, 1, 1, _REPLICATED


def _data_type_families(context: SystemContext) -> Iterator[Row]:
    """List the type names with their aliases."""
    yield from type_families()


def _combinators(context: SystemContext) -> Iterator[Row]:
    """List the combinators of aggregate functions, such as -If."""
    for name, description in _COMBINATORS:
        yield name, 0, description


def _formats(context: SystemContext) -> Iterator[Row]:
    """List the formats by all their names, and whether they are read and written."""
    for data_format in formats():
        reads = int(
            data_format.reader is not None or data_format.name == "Values"
        )  # the parser reads VALUES
        for name in (data_format.name, *data_format.aliases):
            yield name, reads, int(data_format.writer is not None), data_format.description


def _table_functions(context: SystemContext) -> Iterator[Row]:
    """List the functions that a FROM may call."""
    for name in sorted((*FUNCTIONS, "view")):
        yield name, "", 1


def _time_zones(context: SystemContext) -> Iterator[Row]:
    """List the time zones of Python's zoneinfo by name."""
    for name in sorted(zoneinfo.available_timezones()):
        yield (name,)


def _tokenizers(context: SystemContext) -> Iterator[Row]:
    """List the tokenizers, under all their names."""
    for name, stands_for in NAMES.items():
        if stands_for not in REFUSED:
            yield (name,)


def _build_options(context: SystemContext) -> Iterator[Row]:
    """List the versions of olapdb, Python and Arrow, the machine, and which kernels run."""
    release = version("olapdb")
    yield "VERSION_FULL", f"olapdb {release}"
    yield "VERSION_DESCRIBE", release
    yield "SYSTEM", platform.system()
    yield "SYSTEM_PROCESSOR", platform.machine()
    yield "PYTHON_VERSION", platform.python_version()
    yield "ARROW_VERSION", pa.__version__
    yield "KERNELS", about_kernels()


TABLES = (
    SystemTable(
        "table_engines",
        """name String, supports_settings UInt8, supports_skipping_indices UInt8,
        supports_projections UInt8, supports_sort_order UInt8, supports_ttl UInt8,
        supports_replication UInt8, supports_deduplication UInt8, supports_parallel_insert UInt8,
        description String""",
        _table_engines,
        "The engines that a table can have",
    ),
    SystemTable(
        "data_type_families",
        "name String, case_insensitive UInt8, alias_to String",
        _data_type_families,
        "The types that a column can have, and their other names",
    ),
    SystemTable(
        "aggregate_function_combinators",
        "name String, is_internal UInt8, description String",
        _combinators,
        "What may stand behind the name of an aggregate function",
    ),
    SystemTable(
        "formats",
        "name String, is_input UInt8, is_output UInt8, description String",
        _formats,
        "The formats of input and output",
    ),
    SystemTable(
        "table_functions",
        "name String, description String, allow_readonly UInt8",
        _table_functions,
        "The functions that a FROM may call",
    ),
    SystemTable("time_zones", "time_zone String", _time_zones, "The names of time zones"),
    SystemTable("tokenizers", "name String", _tokenizers, "What splits texts into tokens"),
    SystemTable(
        "build_options",
        "name String, value String",
        _build_options,
        "The release and what it runs on",
    ),
)

"""The sizes at which a faster way of doing the same begins, in one table.

An answer never depends on a value here.  `OFF` turns every fast path off and `EAGER` turns each on
from the first rows; tests run the same statements under both.  Read a value as an attribute of this
module (`tuning.TOP_ROWS_MIN`), so that a test can set it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# --- grouping, joins and sets --------------------------------------------------------------------

DENSE_RADIX_MIN = 1 << 12
"""Group values by a table where they lie this near to each other, or as near as there are rows.
A table of 4,096 codes stays in a processor's first cache; others are numbered by hashing."""

SLICED_ROWS_MIN = 1 << 20
"""Group mostly distinct rows slice by slice from here on. One hash table of them all would be many
times their size and fit no processor's cache."""

SLICE_ROWS = 1 << 15
"""Rows of such a slice: with its hash table it stays in a processor's second cache."""

SAMPLE_ROWS = 1 << 14
"""Rows that are sampled to see whether rows are mostly distinct."""

SHARED_CODES_ROWS_MIN = 1_024
"""Share the codes of a block's columns between views from here on. Below, finding shared codes
costs as much as making them."""

RENUMBER_RADIX_MAX = 1 << 20
"""Renumber packed codes below this through a table (8 MiB), above it by hashing."""

INDEXED_VALUES_MIN = 1 << 14
"""Keep an index of hashes for JOIN and IN from this many values on. A hash table of so many costs
about what a batch of rows does."""

EQUAL_HASHES_MAX = 16
"""Do without that index where more distinct rows than this share one hash: of numbers of 256 bits
only the lower half is hashed."""

HASHED_ROWS = 1 << 15
HASHED_BYTES = 1 << 19
"""Hash at most so many rows, or about so many bytes of them, at a time. The columns between stay in
a processor's second cache."""

MERGE_ROWS_MIN = 1_000_000
"""Merge the partial states of a GROUP BY when they hold this many rows, and again at twice what was
left: each row is merged a bounded number of times."""

JOINED_BATCH_ROWS_MAX = 524_288
JOINED_GROUPS_MIN = 16_384
ROWS_PER_JOINED_GROUP_MAX = 4
"""Group batches together, up to so many rows, after one that had so many groups, and at most so many rows a
group. 3,000,000 rows of 150,000 users took half of the CPU of batches of 131,072 rows."""

ORDERED_ROWS_TRIED = 1_024
"""Look at so many rows first to see whether rows are in order already."""

RADIX_SORT_ROWS_MIN = 2_048
"""Sort integers, dates and times digit by digit from here on, where kernels are compiled. 2,048 rows take
as long as in Arrow's sort, 65,536 a tenth, 1,000,000 a tenth (three columns: a quarter)."""

TOP_ROWS_MIN = 16_384
"""Cut the rows of ORDER BY … LIMIT back when twice the limit are held, but no fewer than this: the
cost of one sort is spread over them."""

TOP_SAMPLE_PER_ROW = 400
"""Look for a first bound of ORDER BY … LIMIT in so many rows for each row of the limit: about 20 of the rows of
a task remain for each row of the limit then, and no more is sorted."""

JOIN_ORDER_ROWS_MIN = 20_000
"""Choose the order of inner joins from this many rows of all tables on. Of fewer any order is fast,
and choosing takes longer."""

CODED_JOIN_ROWS_MAX = 1 << 20
"""Number the texts of a join's held side once, where a GROUP BY above takes codes, up to so many rows. Of more
rows the dictionary fits no processor's cache, and most texts may never be asked for."""

SHARED_BYTES_MAX = 1 << 28
"""Keep the rows of a subplan that a query has several times up to so many bytes; a larger one runs
again for each place."""

MEMBER_TABLE_BYTES_MAX = 1 << 22
"""Find integers and days in the set of an IN by a bit for each number of its span up to this size:
a tenth of the time of hashing them."""

CODE_TABLE_BYTES_MAX = 1 << 23
CODE_TABLE_FACTOR = 16
CODE_TABLE_ROWS_MIN = 4_096
"""Find integers and days in the keys of a join by a table of all numbers in their span up to this size, where so
many rows are looked up at a time and the span has at most so many numbers for each of them, or of the keys."""

JOIN_FILTER_ROWS_MIN = 16_384
JOIN_FILTER_PASS_PERCENT_MAX = 20
"""Drop rows of a table of at least so many rows by the keys of a join's other side, if at most that
part of the keys is expected to remain: each row that remains is looked up twice."""

JOINED_CHUNK_ROWS_MIN = 1_024
"""Look up left rows of a join at least so many at a time: batches that filters left tiny are joined."""

PARTITIONED_BYTES = 1 << 22
"""Divide rows that spill among partitions when so many bytes of them wait. A join of 4 million rows of two
numbers on disk took 1.52 s of a processor with a batch at a time, 1.37 s with 4 MiB, and 1.17 s with 16 MiB,
which a small limit of memory does not leave."""

LEFT_FIRST_FACTOR = 4
LEFT_FIRST_PASS_PERCENT_MAX = 50
HELD_LEFT_BYTES_MAX = 1 << 26
"""Read the left side of a join first, and drop rows of the right side by its keys, where the right side
is expected to have at least so many times its rows, and at most that part of its keys is expected to
remain; hold up to so many bytes of the left side."""

# --- reading -------------------------------------------------------------------------------------

READ_AT_ONCE_ROWS_MAX = 8_192
"""Read all columns of a part with at most so many rows before the condition is known. A second read
costs more than it can save."""

TASK_ROWS = 65_536
"""Read row groups and small parts together up to this many rows in the first task of each thread: a
LIMIT may need no more."""

LARGE_TASK_ROWS = 1_048_576
LARGE_TASK_BYTES = 1 << 25
TASKS_PER_THREAD_MIN = 2
"""Let tasks grow up to so many rows, to rows of so many bytes in memory, and to a share of the rows that
leaves each thread so many tasks. A task costs some 0.3 ms, in which it holds the interpreter's lock: TPC-H at
scale factor 1 took 0.86 of the CPU of tasks of half the size."""

LATE_TASK_FACTOR = 4
"""Let tasks of so many times those bytes be read where a join's keys are looked up first and leave few rows: most
bytes are of columns that are read for these alone. A task of TPC-H 19 costs some 20 calls of Arrow for a
condition, whatever its rows."""

TOP_TASK_ROWS = 131_072
"""The same for ORDER BY … LIMIT, which leaves out tasks that no row of the top can be in."""

JOINED_TASK_ROWS_MAX = 16_384
"""Read pieces of several parts together only if each has at most so many rows: their columns are copied,
which costs more than another task does."""

RANGE_ROWS_MIN = 4_096
"""Keep the ranges of values that conditions name by a kernel once a filter has seen so many rows. The first
batch pays some 50 µs for each condition; after it the kernel is the faster one for any batch."""

LATE_ROWS_MAX = 65_536
"""Read the columns that neither conditions nor sort keys need after ORDER BY … LIMIT or LIMIT, for
its rows alone, where these are at most so many."""

ROWS_PER_LATE_ROW_MIN = 16
"""Pick the rows that conditions keep out of the other columns, in place of filtering these, where
there are so many rows for each."""

SHARED_DICTIONARY_ROWS_MIN = 65_536
SHARED_DICTIONARY_ROWS_PER_TEXT_MIN = 3
"""Keep text columns of a part of at least so many rows as codes of one dictionary, where a text has so
many rows on average. With fewer, codes save little and the dictionary is large."""

JOINED_PIECE_ROWS_MIN = 16_384
"""Join the chunks of a block that are smaller than this on average: a batch has its own cost."""

LISTED_VALUES_MAX = 1 << 16
"""Compare each value of an IN with a part's bounds up to this many, beyond only the least and the
greatest."""

# --- keys and statistics -------------------------------------------------------------------------

MONOTONIC_ROWS_MIN = 1_000
MONOTONIC_ROWS_PER_VALUE_MIN = 4
"""Evaluate a monotonic key once for each value in a column's span where a block has so many rows,
and so many for each value. Fewer rows are evaluated one by one."""

MIN_MAX_ROWS_MIN = 4_096
"""Narrow a text column down to rows that may be least or greatest from here on; Arrow compares
fewer texts in less time than the sample takes."""

SKETCH_ROWS_MIN = 1_000
"""Write sketches of distinct values with parts of so many rows. They take 350 bytes a column."""

SAMPLED_ROWS_MIN = 1
"""Read some rows of tables of so many rows for the estimates of joins."""

CALENDAR_ROWS_MIN = 1_000
"""Make a table of the calendar days of a column from here on, where the span has fewer days."""

# --- writing -------------------------------------------------------------------------------------

PARALLEL_COLUMNS_ROWS_MIN = 1 << 18
"""Make the columns of a block in threads from here on. Below, threads cost what they save."""

BESIDE_ROWS_MIN = 131_072
"""Write a block in a thread while views fire on it from here on."""

PLAIN_ROWS_MAX = 65_536
"""Run a view of projections, filters and one GROUP BY without pipeline, threads and cursor on blocks
of at most so many rows."""

SMALL_BLOCK_ROWS_MAX = 1_000
"""Run such a view on blocks of at most so many rows as functions over one batch. In larger ones the codes that
views share, and arguments that occur several times, are worth more."""

SORTED_WHOLE_ROWS_MAX = 1 << 18
"""Sort a block before it is split up to this: once, not for each of a thousand partitions. The
partitions of a larger one are often sorted already."""

STRETCH_ROWS = 1 << 17
"""Rows that one thread encodes at a time: what a Parquet writer costs by itself is little of it."""

THREADED_MERGES_MIN = 8
"""Flush the files of a batch of at least so many merges in threads."""

JSON_TEXT_MAX = 1 << 20
"""Read VALUES of at most so many characters as JSON. Beyond, the CSV reader is the faster one."""

_NEVER = 1 << 62

OFF: Final[Mapping[str, int]] = MappingProxyType(
    {
        "JOIN_ORDER_ROWS_MIN": _NEVER,
        "MEMBER_TABLE_BYTES_MAX": 0,
        "CODE_TABLE_ROWS_MIN": _NEVER,
        "CODED_JOIN_ROWS_MAX": -1,
        "SHARED_BYTES_MAX": -1,
        "JOIN_FILTER_ROWS_MIN": _NEVER,
        "LEFT_FIRST_FACTOR": _NEVER,
        "PARTITIONED_BYTES": 0,
        "JOINED_CHUNK_ROWS_MIN": 0,
        "DENSE_RADIX_MIN": 0,
        "SLICED_ROWS_MIN": _NEVER,
        "SHARED_CODES_ROWS_MIN": _NEVER,
        "RENUMBER_RADIX_MAX": 0,
        "INDEXED_VALUES_MIN": _NEVER,
        "MERGE_ROWS_MIN": _NEVER,
        "JOINED_BATCH_ROWS_MAX": 0,
        "JOINED_GROUPS_MIN": _NEVER,
        "ROWS_PER_JOINED_GROUP_MAX": 1,
        "RADIX_SORT_ROWS_MIN": _NEVER,
        "TOP_ROWS_MIN": _NEVER,
        "TOP_SAMPLE_PER_ROW": _NEVER,
        "READ_AT_ONCE_ROWS_MAX": 0,
        "JOINED_TASK_ROWS_MAX": _NEVER,
        "RANGE_ROWS_MIN": _NEVER,
        "LATE_ROWS_MAX": -1,
        "ROWS_PER_LATE_ROW_MIN": _NEVER,
        "LARGE_TASK_ROWS": 1 << 16,
        "LATE_TASK_FACTOR": 1,
        "SHARED_DICTIONARY_ROWS_MIN": _NEVER,
        "JOINED_PIECE_ROWS_MIN": 0,
        "LISTED_VALUES_MAX": 0,
        "MONOTONIC_ROWS_MIN": _NEVER,
        "MIN_MAX_ROWS_MIN": _NEVER,
        "SKETCH_ROWS_MIN": _NEVER,
        "SAMPLED_ROWS_MIN": _NEVER,
        "CALENDAR_ROWS_MIN": _NEVER,
        "PARALLEL_COLUMNS_ROWS_MIN": _NEVER,
        "BESIDE_ROWS_MIN": _NEVER,
        "PLAIN_ROWS_MAX": -1,
        "SMALL_BLOCK_ROWS_MAX": -1,
        "SORTED_WHOLE_ROWS_MAX": -1,
        "THREADED_MERGES_MIN": _NEVER,
        "JSON_TEXT_MAX": -1,
    }
)
"""The values at which no fast path is taken."""

EAGER: Final[Mapping[str, int]] = MappingProxyType(
    {
        "JOIN_ORDER_ROWS_MIN": 0,
        "MEMBER_TABLE_BYTES_MAX": 1 << 23,
        "CODE_TABLE_ROWS_MIN": 1,
        "JOIN_FILTER_ROWS_MIN": 0,
        "LEFT_FIRST_FACTOR": 0,
        "PARTITIONED_BYTES": 1 << 26,
        "JOINED_CHUNK_ROWS_MIN": 1 << 16,
        "JOIN_FILTER_PASS_PERCENT_MAX": _NEVER,
        "DENSE_RADIX_MIN": 1 << 16,
        "SLICED_ROWS_MIN": 2,
        "SLICE_ROWS": 2,
        "SHARED_CODES_ROWS_MIN": 1,
        "INDEXED_VALUES_MIN": 1,
        "HASHED_ROWS": 2,
        "MERGE_ROWS_MIN": 2,
        "JOINED_BATCH_ROWS_MAX": 7,
        "JOINED_GROUPS_MIN": 0,
        "ROWS_PER_JOINED_GROUP_MAX": _NEVER,
        "RADIX_SORT_ROWS_MIN": 2,
        "TOP_ROWS_MIN": 1,
        "TOP_SAMPLE_PER_ROW": 2,
        "READ_AT_ONCE_ROWS_MAX": _NEVER,
        "RANGE_ROWS_MIN": 1,
        "LATE_ROWS_MAX": _NEVER,
        "ROWS_PER_LATE_ROW_MIN": 1,
        "JOINED_TASK_ROWS_MAX": 1,
        "TASK_ROWS": 2,
        "LARGE_TASK_ROWS": 4,
        "LARGE_TASK_BYTES": 1,
        "LATE_TASK_FACTOR": 1 << 20,
        "SHARED_DICTIONARY_ROWS_MIN": 1,
        "SHARED_DICTIONARY_ROWS_PER_TEXT_MIN": 0,
        "JOINED_PIECE_ROWS_MIN": _NEVER,
        "LISTED_VALUES_MAX": _NEVER,
        "MONOTONIC_ROWS_MIN": 1,
        "MONOTONIC_ROWS_PER_VALUE_MIN": 1,
        "MIN_MAX_ROWS_MIN": 1,
        "SKETCH_ROWS_MIN": 1,
        "CALENDAR_ROWS_MIN": 0,
        "PARALLEL_COLUMNS_ROWS_MIN": 0,
        "BESIDE_ROWS_MIN": 1,
        "PLAIN_ROWS_MAX": _NEVER,
        "SMALL_BLOCK_ROWS_MAX": _NEVER,
        "SORTED_WHOLE_ROWS_MAX": _NEVER,
        "THREADED_MERGES_MIN": 1,
        "JSON_TEXT_MAX": _NEVER,
    }
)
"""The values at which every fast path is taken from the first rows."""

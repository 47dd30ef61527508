"""The sizes at which a faster way of doing the same begins, in one table, with the measurements that chose them.

`python tests/benchmarks/thresholds.py NAME` repeats most of the measurements; times are of one processor.

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
A table of 4,096 codes stays in a processor's first cache; others are numbered by hashing. GROUP BY of 2,000 rows
took 0.93 ms, by hashing 1.11 ms, by a table of 65,536 codes 1.33 ms."""

SLICED_ROWS_MIN = 1 << 20
"""Group mostly distinct rows slice by slice from here on, where there are no kernels. One hash table of them all
would be many times their size and fit no processor's cache: 1,048,576 rows took 260 ms instead of 322 ms, and
262,144 rows 65 ms instead of 66 ms."""

SLICE_ROWS = 1 << 15
"""Rows of such a slice: with its hash table it stays in a processor's second cache. 1,048,576 numbers took 161 ms,
157 ms with 4,096 rows a slice, 164 ms with 262,144."""

SAMPLE_ROWS = 1 << 14
"""Rows that are sampled to see whether rows are mostly distinct: it takes 1.7 ms, a hundredth of what the slices take;
8 times as many take 17 ms."""

MERGED_ROWS_MIN = 1 << 17
MERGED_ELEMENTS_MIN = 1 << 17
"""Number the columns of keys, and merge the states of several aggregates, at the same time in several threads where
there are so many rows; merge ranges of groups at the same time where their states are lists with so many elements.
Two threads merged 1,350,000 hashes of 25 groups in 33 ms instead of 61 ms."""

SHARED_CODES_ROWS_MIN = 1_024
"""Share the codes of a block's columns between views from here on. Below, finding shared codes
costs as much as making them: with two views of one key no difference can be measured up to 8,192 rows."""

TOTALLED_ROWS_MIN = 4_096
TOTALLED_RADIX_MAX = 1 << 18
"""Group rows, and compute counts, sums and extremes of the groups, in one pass from so many rows on, where the keys have
at most so many values, each of which gets a place. 1,000,000 rows of 250 keys took 1.2 ms instead of 2.3 ms."""

RENUMBER_RADIX_MAX = 1 << 20
"""Renumber packed codes below this through a table (8 MiB), above it by hashing: 65,536 codes below this bound took
0.43 ms by a table, 0.79 ms by hashing; below four times the bound 1.96 ms and 0.81 ms."""

INDEXED_VALUES_MIN = 1 << 14
"""Keep an index of hashes for JOIN and IN from this many values on. A hash table of so many costs
about what a batch of rows does. A join of 200,000 rows with 16,384 took 8.0 ms instead of 10.6 ms, with 262,144
27 ms instead of 47 ms, with 1,024 6.4 ms instead of 6.9 ms."""

EQUAL_HASHES_MAX = 16
"""Do without that index where more distinct rows than this share one hash: of numbers of 256 bits
only the lower half is hashed."""

HASHED_ROWS = 1 << 15
HASHED_BYTES = 1 << 19
"""Hash at most so many rows, or about so many bytes of them, at a time. The columns between stay in
a processor's second cache: a join of a million rows on each side took 138 ms, with 4,096 rows at a time 154 ms, with
262,144 152 ms."""

MERGE_ROWS_MIN = 1_000_000
"""Merge the partial states of a GROUP BY when they hold this many rows, and again at twice what was
left: each row is merged a bounded number of times. 2,000,000 rows of 1,000,000 groups took 107 ms, merged from
100,000 rows on 121 ms; merged once at the end 98 ms, but all states are held until then."""

JOINED_BATCH_ROWS_MAX = 524_288
JOINED_GROUPS_MIN = 16_384
ROWS_PER_JOINED_GROUP_MAX = 4
"""Group batches together, up to so many rows, after one that had so many groups, and at most so many rows a
group. 3,000,000 rows of 150,000 users took half of the CPU of batches of 131,072 rows."""

DIVISION_ROWS = 1 << 18
"""Group so many rows of a GROUP BY of many keys at a time, once they are divided by their keys. Threads wait for each
other in the interpreter between the calls of kernels: of 3,000,000 rows with keys of their own, which took 182 ms, pieces
half as long took 203 ms; twice as long ones 180 ms, and 172 ms instead of 159 ms with 2,400,000 keys."""

TABLE_ROWS = 1 << 15
"""Number so many of these rows through one hash table, which stays in a processor's second cache. 3,000,000 rows with
2,400,000 keys took 169 ms, 163 ms with half as many, 181 ms with four times as many, 204 ms with 524,288."""

DIVIDED_GROUPS_MIN = 1 << 20
"""Divide partials by their keys to merge them where they have so many groups. 3,000,000 rows of 150,000 users, whose
four partials are merged by a table, took 44 ms instead of 33 ms with 262,144."""

DIVIDED_BYTES_MAX = 1 << 28
"""Look, after so many bytes of such rows, whether they still have few repeats: else their groups take less memory. It
bounds memory; time does not decide it."""

ORDERED_ROWS_TRIED = 1_024
"""Look at so many rows first to see whether rows are in order already. Of rows in no order a few tell; those of a sorted
part are all compared anyway, so the number hardly matters: 1,048,576 rows took 101 to 104 ms with 16 to all."""

RADIX_SORT_ROWS_MIN = 2_048
"""Sort integers, dates and times digit by digit from here on, where kernels are compiled. 2,048 rows take
as long as in Arrow's sort, 65,536 a tenth, 1,000,000 a tenth (three columns: a quarter)."""

SORTED_TEXTS_SAMPLE = 1_024
"""Look at so many texts to see whether they repeat: then they are sorted by the places of the distinct ones. 1,048,576 texts
of ten took 18 ms instead of 107 ms; where all differ, the look is lost, 0.1 ms."""

TOP_ROWS_MIN = 16_384
"""Cut the rows of ORDER BY … LIMIT back when twice the limit are held, but no fewer than this: the
cost of one sort is spread over them. The first 100 of 1,048,576 rows took 8.3 ms, 9.1 ms with 1,024 and 8.6 ms
with 262,144."""

TOP_SAMPLE_PER_ROW = 400
"""Look for a first bound of ORDER BY … LIMIT in so many rows for each row of the limit: about 20 of the rows of
a task remain for each row of the limit then, and no more is sorted. The first 100 of 1,048,576 rows took 8.6 ms
with 50 or 400, 9.2 ms with 3,200."""

JOIN_ORDER_ROWS_MIN = 20_000
"""Choose the order of inner joins from this many rows of all tables on. Of fewer any order is fast,
and choosing takes longer: a join of three tables, the smallest written last, took 2.5 ms instead of 2.2 ms at 2,000
rows, 3.4 ms instead of 3.3 ms at 20,000, 5.8 ms instead of 6.8 ms at 200,000."""

GROUPED_PARTNERS_ROWS_MIN = 50_000
GROUPED_PARTNERS_FACTOR = 2
"""Group the right side of a SEMI or ANTI join that asks for another value, from so many rows on with as many rows a
key as the factor says. Of 720,000 orders of 12 lines each it took 71 ms instead of 320 ms."""

SWAPPED_PAIRS_FACTOR = 2
"""Hold the left side of an inner join, of which only the keys count, where it makes this many times as many pairs
as the larger side has rows."""

PUSHED_AGGREGATE_ROWS_MIN = 100_000
PUSHED_AGGREGATE_COST_PERCENT_MAX = 70
"""Group rows before they are joined where the GROUP BY above the joins has so many rows, and grouping twice is
expected to cost at most this part of joining all rows."""

CODED_JOIN_ROWS_MAX = 1 << 20
"""Number the texts of a join's held side once, where a GROUP BY above takes codes, up to so many rows. Of more
rows the dictionary fits no processor's cache, and most texts may never be asked for. A held side of 65,536 rows took
31 ms instead of 40 ms, of 1,048,576 rows 152 ms instead of 153 ms."""

SHARED_BYTES_MAX = 1 << 28
"""Keep the rows of a subplan that a query has several times up to so many bytes; a larger one runs
again for each place. It bounds memory; time does not decide it."""

MEMBER_TABLE_BYTES_MAX = 1 << 22
"""Find integers and days in the set of an IN by a bit for each number of its span up to this size:
a tenth of the time of hashing them."""

CODE_TABLE_BYTES_MAX = 1 << 23
CODE_TABLE_FACTOR = 16
CODE_TABLE_ROWS_MIN = 4_096
"""Find integers and days in the keys of a join by a table of all numbers in their span up to this size, where so
many rows are looked up at a time and the span has at most so many numbers for each of them, or of the keys. With
5,000 keys 65,536 rows took 2.9 ms instead of 3.6 ms, 4,096 rows 1.9 ms instead of 1.8 ms."""

RANKED_SPAN_FACTOR = 256
"""Number the keys of a join that all differ by a bit for each number of their span, where the span has at most so many
numbers for each key; in place of sorting them by their hashes. TPC-H 9 took 227 ms and not 259 ms, TPC-H 3 65 ms and not
72 ms."""

JOIN_FILTER_ROWS_MIN = 16_384
JOIN_FILTER_PASS_PERCENT_MAX = 60
"""Drop rows of a table of at least so many rows by the keys of a join's other side, if at most that
part of the keys is expected to remain: each row that remains is looked up twice. A join of 1,000,000 rows with
100,000 keys took 15 ms instead of 18 ms where 5 % of the keys remain, 19 ms instead of 27 ms at 20 %, 35 ms instead
of 44 ms at 60 %. Where the rows have more columns, filters save more: Q4.1 of the Star Schema Benchmark, three of
whose joins leave 19 to 40 %, took 58 ms, and 165 ms with filters below 20 % only. With 1,000 keys of
integers, which a table finds at once, 131,072 rows took as long with a filter as without, and 16,384 rows
2.9 ms instead of 2.2 ms."""

JOINED_CHUNK_ROWS_MIN = 1_024
"""Look up left rows of a join at least so many at a time: batches that filters left tiny are joined. Where a
condition keeps one of 5,000 rows, 2,097,152 rows took 17.4 ms, 17.6 ms without, 16.6 ms with 16,384."""

PARTITIONED_BYTES = 1 << 22
"""Divide rows that spill among partitions when so many bytes of them wait. A join of 4 million rows of two
numbers on disk took 1.52 s of a processor with a batch at a time, 1.37 s with 4 MiB, and 1.17 s with 16 MiB,
which a small limit of memory does not leave."""

LEFT_FIRST_FACTOR = 4
HELD_LEFT_BYTES_MAX = 1 << 26
"""Read the left side of a join first, and drop rows of the right side by its keys, where the right side
is expected to have at least so many times its rows, and these keys drop enough of them. Hold up to so many
bytes of the left side. A LEFT JOIN of 5,000 rows took 28 ms instead of 76 ms with 1,000,000 rows on the
right, 7.1 ms instead of 9.0 ms with 80,000, 4.7 ms instead of 4.4 ms with 20,000."""

# --- reading -------------------------------------------------------------------------------------

READ_AT_ONCE_ROWS_MAX = 8_192
"""Read all columns of a part with at most so many rows before the condition is known. A second read
costs more than it can save: of 9 columns, 1,024 rows took 1.16 ms instead of 1.45 ms, 8,192 rows 1.32 ms instead of
1.39 ms, 65,536 rows 2.13 ms instead of 2.19 ms, in memory; from a disk a read saves more."""

REMEMBERED_ROWS_MIN = 65_536
"""Remember which rows of a part a condition keeps from so many rows on. Of fewer rows finding them again costs
about what finding the mask does."""

TASK_ROWS = 65_536
"""Read row groups and small parts together up to this many rows in the first task of each thread: a
LIMIT may need no more. LIMIT 10 over 9 columns took 2.9 ms, 3.1 ms with 8,192 rows, 9.0 ms with 1,048,576."""

ROW_GROUP_BYTES_MAX = 1 << 23
"""The most bytes of values that a column should have in a row group: a reader decodes all of a row group, or nothing.
65,536 texts of 128 bytes have as many. ClickHouse's index_granularity_bytes are 10 MiB of all columns."""

LARGE_TASK_ROWS = 1_048_576
LARGE_TASK_BYTES = 1 << 25
UNREAD_TEXT_BYTES = 3 << 22
TASKS_PER_THREAD_MIN = 1
"""Let tasks grow up to so many rows, to rows of so many bytes in memory, and to a share of the rows that
leaves each thread so many tasks. A task costs some 0.3 ms, in which it holds the interpreter's lock: TPC-H at
scale factor 1 took 0.86 of the CPU of tasks of half the size. With two tasks a thread the 38 reads of the benchmark, on
two threads, took 1.07 of the time. Texts that a process reads for the first time come in tasks of fewer bytes: memory that
it never used costs more than the decoding."""

KEPT_AT_ONCE_BYTES_MAX = 1 << 22
"""Keep what a task reads of a column for the first time in the column cache only up to so many bytes; more from the
second read on. A first LIKE over 3,000,000 texts of 41 bytes took 127 ms instead of 567 ms where the system gives out
memory slowly, a first sum of four numbers 65 ms instead of 108 ms."""

KEPT_BLOCK_BYTES_MAX = 1 << 23
"""Keep the rows of a block in the column cache as it is written, up to so many bytes. What is kept takes memory that the
process never used: an INSERT SELECT of 1,000,000 rows, 24 MB, took 78 ms of processor time instead of 137 ms where the
system gives out memory slowly. A query that reads them decodes only the columns that it needs."""

ALONE_TASK_FACTOR = 2
"""Let a task for a thread that does all of them have so many times LARGE_TASK_ROWS, which is a window of the column
cache. A sum of 20,000,000 integers took 16.6 ms instead of 22.6 ms of CPU, a sum of an expression of them the same."""

LATE_TASK_FACTOR = 4
"""Let tasks of so many times those bytes be read where a join's keys are looked up first and leave few rows: most
bytes are of columns that are read for these alone. A task of TPC-H 19 costs some 20 calls of Arrow for a
condition, whatever its rows."""

TOP_TASK_ROWS = 524_288
"""The same for ORDER BY … LIMIT, which leaves out tasks that no row of the top can be in. Where none can be left out,
the first 10 of 3,000,000 rows took 20 ms, 29 ms with 131,072 rows a task and 21 ms with 1,048,576."""

BEST_ROWS_MAX = 1_024
"""Let a kernel keep the best rows of a task for ORDER BY … LIMIT where these are at most so many: it keeps them in a
heap. The first 1,000 of 1,048,576 numbers took 0.45 of the CPU time."""

JOINED_TASK_ROWS_MAX = 16_384
"""Read pieces of several parts together only if each has at most so many rows: their columns are copied,
which costs more than another task does. 16 parts took 2.6 ms instead of 8.0 ms with 4,096 rows each, 6 ms instead of
11 ms with 16,384, 27 ms either way with 131,072."""

ALONE_MICROSECONDS = 12_000
ALONE_TASK_MICROSECONDS = 3_000
TASK_MICROSECONDS = 450
STAGE_MICROSECONDS = 350
"""Read a table in the query's thread where that is expected to take less than so long, or less than so long a task,
judged by the first tasks. TASK_MICROSECONDS of their time is not for rows, and STAGE_MICROSECONDS for each operator
after the first. Threads take turns in the interpreter, and a turn wakes a thread that sleeps: of 3,145,728 rows, sums took 5.0 ms and not 9.4 ms, a median 9.9 ms and not 13.6 ms,
a GROUP BY with a condition 12 ms and not 13 ms; what takes 35 ms takes 25 ms with two threads. Tasks of many operators and
few rows that remain mostly interpret: TPC-H 7 took 66 ms, and with threads 97 ms."""

KNOWN_ALONE_MICROSECONDS = 12_000
"""The same where earlier runs of the plan tell how long the tasks take one thread in all. Of 3,000,000 rows, what takes
13 ms took 12 ms with two threads, 22 ms took 18 ms, 40 ms took 33 ms."""

TRIED_MICROSECONDS_MAX = 100_000
"""Try one thread where threads are expected to save no more than so long. Of TPC-H at scale 1 on two cores, one thread was
quicker for 15 of 22 queries: Q12 took 28 ms and not 47 ms."""

UNREAD_VALUES_MIN = 1 << 22
"""Begin with threads where so many values are not in the column cache. A kernel decodes them in some 10 ms without the
interpreter, so that the first tasks need not be judged."""

UNSURE_FACTOR = 10
"""Judge by the second task, too, where the first one lets expect up to so many times that time: a first task of few rows
overrates what a row costs. TPC-H 3 took 60 ms and not 70 ms."""

ALONE_FIRST_MICROSECONDS = 6_000
"""Work on batches that come one by one in the query's thread until they have taken so long. TPC-H 11 took 12 ms and not
24 ms; a batch that takes longer than this delays the threads by itself alone."""

BATCH_MICROSECONDS = 30_000
SLOW_BATCH_ROWS = 8_192
"""Work on so many rows of a task at once as are expected to take so long, but not on fewer than these: a query that is
cancelled ends after them. A regular expression over texts that all differ ended 1 to 31 ms after it was cancelled, 45
to 440 ms with the rows of a task at once."""

BOUNDED_TASK_SHARE = 4
"""Expect so many times less of the later tasks of ORDER BY … LIMIT, whose rows are compared with the best so far. The
first 10 rows of a LIKE took 31 ms instead of 47 ms."""

ALONE_TASKS_MIN = 3
"""Judge so only where there are so many tasks; fewer are worked on at once."""

FEW_PAIRS_MAX = 16
"""Let a thread join the rows of a task, and do what comes above, in one go where no key of the right side has more
rows than this: its pairs are never held at once, but what is grouped of them is."""

SLICED_TEXTS_MIN = 4_096
"""Compute the values of a dictionary's texts slice by slice, of so many texts at least, so that several threads
share the work. A regular expression over 100,000 texts of each of three parts took 146 ms instead of 201 ms on two
threads."""

RANGE_ROWS_MIN = 4_096
"""Keep the ranges of values that conditions name by a kernel once a filter has seen so many rows. The first
batch pays some 50 µs for each condition; after it the kernel is the faster one for any batch: three conditions on
262,144 rows took 3.5 ms instead of 3.7 ms, on 4,096 rows 1.2 ms either way."""

LATE_ROWS_MAX = 65_536
"""Read the columns that neither conditions nor sort keys need after ORDER BY … LIMIT or LIMIT, for
its rows alone, where these are at most so many. Of 1,000,000 rows with 8 texts, the first 1,000 took 16 ms instead of
27 ms, the first 65,536 176 ms instead of 219 ms."""

ROWS_PER_LATE_ROW_MIN = 16
"""Pick the rows that conditions keep out of the other columns, in place of filtering these, where
there are so many rows for each. A condition on 300,000 rows with 8 texts in memory shows no gain: one row of 16 took
25 ms instead of 22 ms, one of 128 9.7 ms instead of 8.8 ms. Joins estimate by it what their filters save."""

SHARED_DICTIONARY_ROWS_MIN = 65_536
SHARED_DICTIONARY_ROWS_PER_TEXT_MIN = 3
"""Keep text columns of a part of at least so many rows as codes of one dictionary, where a text has so
many rows on average. With fewer, codes save little and the dictionary is large. GROUP BY a text of 1,000 values took
5.8 ms instead of 6.8 ms at 524,288 rows, 1.32 ms instead of 1.40 ms at 65,536, no less at 8,192."""

JOINT_VALUES_MIN = 4_096
"""Take the codes of the parts of a query as those of one dictionary where a part's has so many values. Translating codes
costs 1 ns a row, which fewer values save nowhere."""

CODED_SPAN_MIN = 1 << 18
"""Keep wide integers whose values repeat as such codes, too, where their least and greatest lie so far apart that no
table has a place for each."""

JOINED_PIECE_ROWS_MIN = 16_384
"""Join the chunks of a block that are smaller than this on average: a batch has its own cost. An INSERT of 500,000 rows
in chunks of 1,000 with one view took 178 ms instead of 193 ms; in chunks of 16,000 94 ms instead of 96 ms."""

BLOCK_BATCH_ROWS = 1 << 18
ROWS_PER_JOINED_VALUE_MIN = 16
"""Let a view read so many rows of a block as one batch, where their columns are narrow, and join chunks of the block
to such batches where each value of their dictionaries has so many rows."""

LISTED_VALUES_MAX = 1 << 16
"""Compare each value of an IN with a part's bounds up to this many, beyond only the least and the
greatest. Where no part can be left out, 65,536 values cost 0.8 ms of 10 ms, 500,000 14 ms of 59 ms."""

# --- keys and statistics -------------------------------------------------------------------------

MONOTONIC_ROWS_MIN = 1_000
MONOTONIC_ROWS_PER_VALUE_MIN = 4
"""Evaluate a monotonic key once for each value in a column's span where a block has so many rows,
and so many for each value. Fewer rows are evaluated one by one. An INSERT of 8,000 rows by toYYYYMM took 3.2 ms
instead of 3.5 ms, of 1,000 rows 2.6 ms instead of 2.4 ms."""

MIN_MAX_ROWS_MIN = 4_096
"""Narrow a column of floats or texts down to rows that may be least or greatest from here on; Arrow compares
fewer in less time than the sample takes. 65,536 floats took 36 µs instead of 303 µs, codes of two letters 70 µs instead
of 830 µs, texts of many lengths about as long; 4,096 took 20 µs instead of 24 µs and 36 µs instead of 59 µs, and
1,024 twice as long."""

SKETCH_ROWS_MIN = 1_000
"""Write sketches of distinct values with parts of so many rows. They take 350 bytes a column, and a tenth of the
time of an INSERT of 65,536 rows of two columns; at 1,000 rows no time that can be measured."""

SAMPLED_ROWS_MIN = 1
"""Read some rows of tables of so many rows for the estimates of joins: of any that has rows. It is a switch for
tests; how many rows are read bounds the time."""

CALENDAR_ROWS_MIN = 1_000
"""Make a table of the calendar days of a column from here on, where the span has fewer days. Years and months of
65,536 days took 2.8 ms instead of 9.2 ms, of 1,000 days as long either way."""

# --- writing -------------------------------------------------------------------------------------

PARALLEL_COLUMNS_ROWS_MIN = 1 << 18
"""Make the columns of a block in threads from here on. Below, threads cost what they save: some 0.5 ms of processor time
for 65,536 rows of three columns."""

BESIDE_ROWS_MIN = 131_072
"""Write a block in a thread while views fire on it from here on. It saves waiting for the disk; of processor time an
INSERT of 131,072 rows with two views took 31 ms instead of 29 ms, of 1,048,576 rows 196 ms either way."""

PLAIN_ROWS_MAX = 65_536
"""Run a view of projections, filters and one GROUP BY without pipeline, threads and cursor on blocks
of at most so many rows. Larger ones gain nothing that can be measured: two views over 65,536 rows took 21 ms either way."""

SMALL_BLOCK_ROWS_MAX = 1_000
"""Run such a view on blocks of at most so many rows as functions over one batch. In larger ones the codes that
views share, and arguments that occur several times, are worth more. With two views 100 rows took 5.7 ms instead of
6.5 ms, 1,000 rows 4.9 ms instead of 5.4 ms, 16,384 rows 12 ms either way."""

CHUNK_IN_CALLER_ROWS_MAX = 1 << 16
"""Compute chunks one after the other in the caller's thread where one thread computes them and each has at most so
many source rows. Between threads that wait for the interpreter a change of threads costs up to 5 ms, twice a chunk."""

SORTED_WHOLE_ROWS_MAX = 1 << 18
"""Sort a block before it is split up to this: once, not for each of a thousand partitions. The
partitions of a larger one are often sorted already. An INSERT into 50 partitions took 23 ms instead of 27 ms with
16,384 rows, 180 ms either way with 262,144, 469 ms instead of 319 ms with 1,048,576."""

STRETCH_ROWS = 1 << 17
"""Rows that one thread encodes at a time: what a Parquet writer costs by itself is little of it. A file of 1,048,576 rows
is divided among at most 8 threads; encoded by one thread it took 74 ms of processor time, by two up to 117 ms."""

ENCODED_ROWS_MIN = 1_024
"""Encode pages of parts of so many rows by kernels; of fewer rows what a file costs by itself is most of the time."""

PACKED_INLINE_BYTES_MIN = 1 << 14
"""Compress the values of an inline part of so many bytes within its Arrow file, by ZSTD, where the catalog would deflate the
file, holding the lock of writers: 10,000 rows of 250 KB took 0.62 ms instead of 2.25 ms, 1,000 of them 0.16 ms instead
of 0.25 ms, 100 of them 0.1 ms instead of 0.03 ms. They are as small."""

THREADED_MERGES_MIN = 8
"""Flush the files of a batch of at least so many merges in threads. It saves waiting for the disk, not processor time, and
depends on the disk."""

JSON_TEXT_MAX = 1 << 14
"""Read VALUES of at most so many characters as JSON. Beyond, the CSV reader is the faster one: of rows (number, text,
float) 8 KiB took 0.23 ms as JSON and 0.31 ms as CSV, 32 KiB 0.82 ms and 0.42 ms, 1 MiB 30 ms and 5.8 ms."""

_NEVER = 1 << 62

OFF: Final[Mapping[str, int]] = MappingProxyType(
    {
        "JOIN_ORDER_ROWS_MIN": _NEVER,
        "GROUPED_PARTNERS_ROWS_MIN": _NEVER,
        "GROUPED_PARTNERS_FACTOR": _NEVER,
        "SWAPPED_PAIRS_FACTOR": _NEVER,
        "PUSHED_AGGREGATE_ROWS_MIN": _NEVER,
        "PUSHED_AGGREGATE_COST_PERCENT_MAX": 0,
        "MEMBER_TABLE_BYTES_MAX": 0,
        "RANKED_SPAN_FACTOR": 0,
        "CODE_TABLE_ROWS_MIN": _NEVER,
        "CODED_JOIN_ROWS_MAX": -1,
        "SHARED_BYTES_MAX": -1,
        "JOIN_FILTER_ROWS_MIN": _NEVER,
        "LEFT_FIRST_FACTOR": _NEVER,
        "PARTITIONED_BYTES": 0,
        "JOINED_CHUNK_ROWS_MIN": 0,
        "DENSE_RADIX_MIN": 0,
        "SLICED_ROWS_MIN": _NEVER,
        "MERGED_ROWS_MIN": _NEVER,
        "MERGED_ELEMENTS_MIN": _NEVER,
        "FEW_PAIRS_MAX": 0,
        "SLICED_TEXTS_MIN": _NEVER,
        "UNREAD_VALUES_MIN": _NEVER,
        "SHARED_CODES_ROWS_MIN": _NEVER,
        "TOTALLED_ROWS_MIN": _NEVER,
        "RENUMBER_RADIX_MAX": 0,
        "INDEXED_VALUES_MIN": _NEVER,
        "MERGE_ROWS_MIN": _NEVER,
        "JOINED_BATCH_ROWS_MAX": 0,
        "JOINED_GROUPS_MIN": _NEVER,
        "ROWS_PER_JOINED_GROUP_MAX": 1,
        "DIVISION_ROWS": _NEVER,
        "TABLE_ROWS": _NEVER,
        "DIVIDED_GROUPS_MIN": _NEVER,
        "RADIX_SORT_ROWS_MIN": _NEVER,
        "SORTED_TEXTS_SAMPLE": 1,
        "TOP_ROWS_MIN": _NEVER,
        "TOP_SAMPLE_PER_ROW": _NEVER,
        "BEST_ROWS_MAX": 0,
        "READ_AT_ONCE_ROWS_MAX": 0,
        "REMEMBERED_ROWS_MIN": _NEVER,
        "JOINED_TASK_ROWS_MAX": _NEVER,
        "RANGE_ROWS_MIN": _NEVER,
        "LATE_ROWS_MAX": -1,
        "ROWS_PER_LATE_ROW_MIN": _NEVER,
        "LARGE_TASK_ROWS": 1 << 16,
        "UNREAD_TEXT_BYTES": _NEVER,
        "KEPT_AT_ONCE_BYTES_MAX": _NEVER,
        "KEPT_BLOCK_BYTES_MAX": _NEVER,
        "LATE_TASK_FACTOR": 1,
        "SHARED_DICTIONARY_ROWS_MIN": _NEVER,
        "CODED_SPAN_MIN": _NEVER,
        "JOINT_VALUES_MIN": _NEVER,
        "JOINED_PIECE_ROWS_MIN": 0,
        "BLOCK_BATCH_ROWS": 0,
        "ROWS_PER_JOINED_VALUE_MIN": _NEVER,
        "LISTED_VALUES_MAX": 0,
        "MONOTONIC_ROWS_MIN": _NEVER,
        "MIN_MAX_ROWS_MIN": _NEVER,
        "ENCODED_ROWS_MIN": _NEVER,
        "SKETCH_ROWS_MIN": _NEVER,
        "SAMPLED_ROWS_MIN": _NEVER,
        "CALENDAR_ROWS_MIN": _NEVER,
        "PARALLEL_COLUMNS_ROWS_MIN": _NEVER,
        "BESIDE_ROWS_MIN": _NEVER,
        "PLAIN_ROWS_MAX": -1,
        "CHUNK_IN_CALLER_ROWS_MAX": 0,
        "SMALL_BLOCK_ROWS_MAX": -1,
        "SORTED_WHOLE_ROWS_MAX": -1,
        "PACKED_INLINE_BYTES_MIN": _NEVER,
        "THREADED_MERGES_MIN": _NEVER,
        "JSON_TEXT_MAX": -1,
    }
)
"""The values at which no fast path is taken."""

EAGER: Final[Mapping[str, int]] = MappingProxyType(
    {
        "JOIN_ORDER_ROWS_MIN": 0,
        "GROUPED_PARTNERS_ROWS_MIN": 0,
        "GROUPED_PARTNERS_FACTOR": 0,
        "SWAPPED_PAIRS_FACTOR": 0,
        "PUSHED_AGGREGATE_ROWS_MIN": 0,
        "PUSHED_AGGREGATE_COST_PERCENT_MAX": 1 << 40,
        "MEMBER_TABLE_BYTES_MAX": 1 << 23,
        "RANKED_SPAN_FACTOR": 1 << 40,
        "CODE_TABLE_ROWS_MIN": 1,
        "JOIN_FILTER_ROWS_MIN": 0,
        "LEFT_FIRST_FACTOR": 0,
        "PARTITIONED_BYTES": 1 << 26,
        "JOINED_CHUNK_ROWS_MIN": 1 << 16,
        "JOIN_FILTER_PASS_PERCENT_MAX": _NEVER,
        "DENSE_RADIX_MIN": 1 << 16,
        "SLICED_ROWS_MIN": 2,
        "MERGED_ROWS_MIN": 1,
        "MERGED_ELEMENTS_MIN": 1,
        "FEW_PAIRS_MAX": 1 << 20,
        "SLICED_TEXTS_MIN": 1,
        "ALONE_MICROSECONDS": 0,
        "ALONE_TASK_MICROSECONDS": 0,
        "TASK_MICROSECONDS": 0,
        "KNOWN_ALONE_MICROSECONDS": 0,
        "TRIED_MICROSECONDS_MAX": -_NEVER,
        "UNREAD_VALUES_MIN": 1,
        "STAGE_MICROSECONDS": 0,
        "ALONE_TASKS_MIN": 2,
        "UNSURE_FACTOR": 0,
        "ALONE_FIRST_MICROSECONDS": 0,
        "BOUNDED_TASK_SHARE": 1,
        "BATCH_MICROSECONDS": 1,
        "SLOW_BATCH_ROWS": 1,
        "SLICE_ROWS": 2,
        "TOTALLED_ROWS_MIN": 1,
        "TOTALLED_RADIX_MAX": 1 << 20,
        "SHARED_CODES_ROWS_MIN": 1,
        "INDEXED_VALUES_MIN": 1,
        "HASHED_ROWS": 2,
        "MERGE_ROWS_MIN": 2,
        "JOINED_BATCH_ROWS_MAX": 7,
        "JOINED_GROUPS_MIN": 0,
        "DIVISION_ROWS": 1,
        "TABLE_ROWS": 1,
        "DIVIDED_GROUPS_MIN": 1,
        "DIVIDED_BYTES_MAX": 1,
        "ROWS_PER_JOINED_GROUP_MAX": _NEVER,
        "RADIX_SORT_ROWS_MIN": 2,
        "SORTED_TEXTS_SAMPLE": _NEVER,
        "TOP_ROWS_MIN": 1,
        "TOP_SAMPLE_PER_ROW": 2,
        "BEST_ROWS_MAX": 1 << 20,
        "READ_AT_ONCE_ROWS_MAX": _NEVER,
        "REMEMBERED_ROWS_MIN": 0,
        "RANGE_ROWS_MIN": 1,
        "LATE_ROWS_MAX": _NEVER,
        "ROWS_PER_LATE_ROW_MIN": 1,
        "JOINED_TASK_ROWS_MAX": 1,
        "TASK_ROWS": 2,
        "LARGE_TASK_ROWS": 4,
        "LARGE_TASK_BYTES": 1,
        "UNREAD_TEXT_BYTES": 1,
        "KEPT_AT_ONCE_BYTES_MAX": 0,
        "KEPT_BLOCK_BYTES_MAX": 0,
        "LATE_TASK_FACTOR": 1 << 20,
        "SHARED_DICTIONARY_ROWS_MIN": 1,
        "SHARED_DICTIONARY_ROWS_PER_TEXT_MIN": 0,
        "CODED_SPAN_MIN": 0,
        "JOINT_VALUES_MIN": 1,
        "JOINED_PIECE_ROWS_MIN": _NEVER,
        "ROWS_PER_JOINED_VALUE_MIN": 0,
        "LISTED_VALUES_MAX": _NEVER,
        "MONOTONIC_ROWS_MIN": 1,
        "MONOTONIC_ROWS_PER_VALUE_MIN": 1,
        "MIN_MAX_ROWS_MIN": 1,
        "ENCODED_ROWS_MIN": 1,
        "SKETCH_ROWS_MIN": 1,
        "CALENDAR_ROWS_MIN": 0,
        "PARALLEL_COLUMNS_ROWS_MIN": 0,
        "BESIDE_ROWS_MIN": 1,
        "PLAIN_ROWS_MAX": _NEVER,
        "CHUNK_IN_CALLER_ROWS_MAX": _NEVER,
        "SMALL_BLOCK_ROWS_MAX": _NEVER,
        "SORTED_WHOLE_ROWS_MAX": _NEVER,
        "PACKED_INLINE_BYTES_MIN": 1,
        "THREADED_MERGES_MIN": 1,
        "JSON_TEXT_MAX": _NEVER,
    }
)
"""The values at which every fast path is taken from the first rows."""

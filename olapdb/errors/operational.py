"""Leaves of OperationalError: limits, files, locks, concurrent statements, the environment."""

from __future__ import annotations

from olapdb.errors.tree import OperationalError


class MemoryLimitExceeded(OperationalError, name="MEMORY_LIMIT_EXCEEDED", code=241):
    """A statement that needs more than `max_memory_usage`, or than the machine has."""


class TimeoutExceeded(OperationalError, name="TIMEOUT_EXCEEDED", code=159):
    """A statement that ran longer than its time limit."""


class TooSlow(OperationalError, name="TOO_SLOW", code=160):
    """A call that would wait longer than a limit allows."""


class QueryWasCancelled(OperationalError, name="QUERY_WAS_CANCELLED", code=394):
    """A statement that a KILL QUERY, a cancel or the end of the process stopped."""


class TooManyParts(OperationalError, name="TOO_MANY_PARTS", code=252):
    """A table with too many parts to insert into, or a block with too many partitions."""


class TooManyRows(OperationalError, name="TOO_MANY_ROWS", code=158):
    """A statement that reads, or a result that has, more rows than a limit allows."""


class TooManyPartitions(OperationalError, name="TOO_MANY_PARTITIONS", code=565):
    """A query that reads more partitions than a limit allows."""


class TooManyRowsOrBytes(OperationalError, name="TOO_MANY_ROWS_OR_BYTES", code=396):
    """A query with a larger result, or more temporary data on disk, than a limit allows."""


class TooManyBytes(OperationalError, name="TOO_MANY_BYTES", code=307):
    """A query that reads more bytes than a limit allows."""


class TooManyColumns(OperationalError, name="TOO_MANY_COLUMNS", code=161):
    """A query that reads more columns of a table than a limit allows."""


class TooDeepAst(OperationalError, name="TOO_DEEP_AST", code=167):
    """A query whose syntax tree has more levels than `max_ast_depth`."""


class TooBigAst(OperationalError, name="TOO_BIG_AST", code=168):
    """A query whose syntax tree has more nodes than `max_ast_elements`."""


class TooDeepSubqueries(OperationalError, name="TOO_DEEP_SUBQUERIES", code=162):
    """A query with more subqueries in each other than `max_subquery_depth`."""


class LimitExceeded(OperationalError, name="LIMIT_EXCEEDED", code=290):
    """A value with more parts than a setting allows."""


class SetSizeLimitExceeded(OperationalError, name="SET_SIZE_LIMIT_EXCEEDED", code=191):
    """A set, a DISTINCT or a join's right side with more rows than a limit allows."""


class TooDeepRecursion(OperationalError, name="TOO_DEEP_RECURSION", code=306):
    """Expressions, subqueries or views nested deeper than a limit allows."""


class CorruptedData(OperationalError, name="CORRUPTED_DATA", code=246):
    """Stored data or catalog content that violates its format."""


class ChecksumDoesntMatch(CorruptedData, name="CHECKSUM_DOESNT_MATCH", code=40):
    """A file whose content differs from its stored checksum."""


class FileDoesntExist(OperationalError, name="FILE_DOESNT_EXIST", code=107):
    """A file that should exist, such as one of a part, but does not."""


class NotEnoughSpace(OperationalError, name="NOT_ENOUGH_SPACE", code=243):
    """A disk without space for the write."""


class ReadOnly(OperationalError, name="READONLY", code=164):
    """A write to a read-only warehouse, file or folder."""


class Aborted(OperationalError, name="ABORTED", code=236):
    """A statement that a concurrent change or a revoked lease stopped; nothing was changed."""


class TableAltered(Aborted):
    """An INSERT whose table was altered while it ran; nothing was inserted."""


class CannotOpenWarehouse(OperationalError, name="CANNOT_OPEN_FILE", code=76):
    """A folder that is no warehouse, or has a version unknown to this release."""


class SnapshotTooOld(OperationalError, name="SNAPSHOT_TOO_OLD", code=2001):
    """A pinned snapshot whose parts have been vacuumed; read again."""


class CommitConflict(OperationalError, name="COMMIT_CONFLICT", code=2002):
    """A commit with a violated requirement; nothing was changed, the caller may retry.

    `requirement` is the violated one (`olapdb.model.requirements.Requirement`).
    """

    requirement: object = None


class CommitUnknown(OperationalError, name="UNKNOWN_STATUS_OF_TRANSACTION", code=659):
    """A commit whose outcome could not be determined; nothing was deleted. Reopen and check."""


class CatalogChanged(OperationalError, name="ABORTED", code=236):
    """A commit that changed the catalog while a read-only process read it without locks.

    The read is invalid and is repeated.
    """


class CatalogBusy(OperationalError, name="DEADLOCK_AVOIDED", code=473):
    """A catalog that another process locked for longer than `lock_acquire_timeout`."""


class ExternalToolMissing(OperationalError, name="SUPPORT_IS_DISABLED", code=344):
    """A tool outside Python that is needed (Java for Spark); the message says how to get it."""


class ExecutorFailed(OperationalError, name="EXTERNAL_EXECUTABLE_NOT_FOUND", code=1004):
    """A Spark task or worker that failed; the message has its item, error class and text."""


class FolderNotShared(ExecutorFailed, name="FOLDER_NOT_SHARED", code=2015):
    """A Spark executor that sees another folder under the warehouse's path; nothing was committed."""


class ViewLimitExceeded(OperationalError, name="VIEW_LIMIT_EXCEEDED", code=2008):
    """A view that exceeded a `max_view_…` setting in an INSERT; nothing was inserted."""


class BackfillIncomplete(OperationalError, name="BACKFILL_INCOMPLETE", code=2009):
    """A backfill with failed chunks, which the message names; the other chunks are published.

    `rows` has one row for each chunk, failed or not (`olapdb.views.jobs.backfill_pass.BackfillRow`).
    """

    rows: tuple[object, ...] = ()


class RefreshFailed(OperationalError, name="REFRESH_FAILED", code=730):
    """A refresh of a view that its query or its commit ended; the view keeps its rows."""


class FileAlreadyExists(OperationalError, name="FILE_ALREADY_EXISTS", code=504):
    """A file that a statement would overwrite without a setting that allows it."""


class CannotStat(OperationalError, name="CANNOT_STAT", code=400):
    """A file that a statement reads, but that does not exist."""


class CannotAppendToFile(OperationalError, name="CANNOT_APPEND_TO_FILE", code=641):
    """A file of a format that has one result, to which a statement would append."""

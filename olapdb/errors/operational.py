"""The environment, other statements, or a limit got in the way."""

from __future__ import annotations

from olapdb.errors.tree import OperationalError


class MemoryLimitExceeded(OperationalError):
    name = "MEMORY_LIMIT_EXCEEDED"
    code = 241


class TimeoutExceeded(OperationalError):
    name = "TIMEOUT_EXCEEDED"
    code = 159


class QueryWasCancelled(OperationalError):
    name = "QUERY_WAS_CANCELLED"
    code = 394


class TooManyParts(OperationalError):
    name = "TOO_MANY_PARTS"
    code = 252


class TooManyRows(OperationalError):
    name = "TOO_MANY_ROWS"
    code = 158


class TooDeepRecursion(OperationalError):
    name = "TOO_DEEP_RECURSION"
    code = 306


class CorruptedData(OperationalError):
    name = "CORRUPTED_DATA"
    code = 246


class ChecksumDoesntMatch(CorruptedData):
    name = "CHECKSUM_DOESNT_MATCH"
    code = 40


class FileDoesntExist(OperationalError):
    name = "FILE_DOESNT_EXIST"
    code = 107


class NotEnoughSpace(OperationalError):
    name = "NOT_ENOUGH_SPACE"
    code = 243


class ReadOnly(OperationalError):
    name = "READONLY"
    code = 164


class Aborted(OperationalError):
    name = "ABORTED"
    code = 236


class TableAltered(Aborted):
    """An INSERT's table was altered while it ran; nothing was inserted."""


class CannotOpenWarehouse(OperationalError):
    """The folder is not a warehouse, or one of a version that this release does not know."""

    name = "CANNOT_OPEN_FILE"
    code = 76


class SnapshotTooOld(OperationalError):
    """The pinned snapshot's parts have been vacuumed; read again."""

    name = "SNAPSHOT_TOO_OLD"
    code = 2001


class CommitConflict(OperationalError):
    """A requirement of a commit no longer held; nothing was changed, the work may be redone.

    `requirement` is the one that did not hold (`olapdb.model.changes.Requirement`).
    """

    name = "COMMIT_CONFLICT"
    code = 2002
    requirement: object = None


class CommitUnknown(OperationalError):
    """The outcome of a commit could not be learnt; nothing was deleted. Reopen and look."""

    name = "UNKNOWN_STATUS_OF_TRANSACTION"
    code = 659


class CatalogChanged(OperationalError):
    """A writer came while a read-only process read without locks; the read is worthless, and is
    done again."""

    name = "ABORTED"
    code = 236


class CatalogBusy(OperationalError):
    """Another process holds the catalog longer than `lock_acquire_timeout`."""

    name = "DEADLOCK_AVOIDED"
    code = 473


class ExternalToolMissing(OperationalError):
    """Something outside Python is needed (Java for Spark); the message says how to get it."""

    name = "SUPPORT_IS_DISABLED"
    code = 344


class ExecutorFailed(OperationalError):
    """A Spark task or worker failed; the message carries item, class and text of its error."""

    name = "EXTERNAL_EXECUTABLE_NOT_FOUND"
    code = 1004


class FolderNotShared(ExecutorFailed):
    """A Spark executor does not work in the warehouse's folder, but in another one under its path;
    nothing was committed."""

    name = "FOLDER_NOT_SHARED"
    code = 2015


class ViewLimitExceeded(OperationalError):
    """A view did more in an INSERT than a `max_view_…` setting allows; nothing was inserted."""

    name = "VIEW_LIMIT_EXCEEDED"
    code = 2008


class BackfillIncomplete(OperationalError):
    """Some chunks of a backfill failed, which the message names; the others are published.

    `rows` are those of all chunks (`olapdb.views.jobs.backfill.BackfillRow`)."""

    name = "BACKFILL_INCOMPLETE"
    code = 2009
    rows: tuple[object, ...] = ()

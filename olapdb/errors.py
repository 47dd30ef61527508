"""The one error tree: PEP 249 classes, each leaf with a ClickHouse error name and code.

A caller decides by class (`except UnknownTable`) or by `error.name`, never by the text of a
message.  Messages say what was wrong and what to do next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Position:
    """A place in SQL text; line and column count from 1, offset from 0 (in characters)."""

    line: int
    column: int
    offset: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Warning(Exception):  # the name is fixed by PEP 249
    """Something that was done, but that the user should know about."""


class Error(Exception):
    """Base of everything that olapdb raises.

    `code` and `name` are ClickHouse's (`60`, `"UNKNOWN_TABLE"`), `position` is the place in the
    SQL text where there is one, `hint` says what to do next.
    """

    code: ClassVar[int] = 1001
    name: ClassVar[str] = "STD_EXCEPTION"

    def __init__(self, message: str, *, hint: str = "", position: Position | None = None) -> None:
        super().__init__(message, hint, position)
        self.message = message
        self.hint = hint
        self.position = position

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.position)

    def __str__(self) -> str:
        text = f"Code: {self.code}. {self.message}"
        if self.position is not None:
            text += f" (at {self.position})"
        if self.hint:
            text += f" {self.hint}"
        return f"{text} ({self.name})"

    def at(self, position: Position | None) -> Error:
        """The same error with a position, where it had none; returned for `raise error.at(p)`."""
        if self.position is None:
            self.position = position
            self.args = (self.message, self.hint, position)
        return self


def _rebuild(cls: type[Error], message: str, hint: str, position: Position | None) -> Error:
    return cls(message, hint=hint, position=position)


class InterfaceError(Error):
    """The Python interface was used wrongly (a closed cursor, an unknown parameter)."""

    name = "BAD_ARGUMENTS"
    code = 36


class DatabaseError(Error):
    """Base of what the database itself reports."""


class DataError(DatabaseError):
    """A value does not fit: parsing, range, conversion.

    `row` is the index, from 0, of the first bad row of the column that was converted, or None.
    """

    row: int | None = None

    def at_row(self, row: int) -> DataError:
        """The same error about a row; returned for `raise error.at_row(5)`."""
        self.row = row
        return self

    def __reduce__(self) -> tuple[object, ...]:
        rebuild, arguments, *_ = super().__reduce__()
        return rebuild, arguments, {"row": self.row}


class OperationalError(DatabaseError):
    """The environment got in the way: files, memory, locks, time."""


class IntegrityError(DatabaseError):
    """Relational or protocol integrity would be violated."""


class InternalError(DatabaseError):
    """A bug of olapdb: an invariant of ours does not hold."""

    name = "LOGICAL_ERROR"
    code = 49


class ProgrammingError(DatabaseError):
    """The statement is wrong: syntax, names, types, arguments."""


class NotSupportedError(DatabaseError):
    """A real feature of ClickHouse or SQL that olapdb does not have; the message names it."""

    name = "NOT_IMPLEMENTED"
    code = 48


# --- ProgrammingError -----------------------------------------------------------------------


class SyntaxError(ProgrammingError):  # the ClickHouse name; used qualified
    name = "SYNTAX_ERROR"
    code = 62


class BadArguments(ProgrammingError):
    name = "BAD_ARGUMENTS"
    code = 36


class UnknownTable(ProgrammingError):
    name = "UNKNOWN_TABLE"
    code = 60


class UnknownDatabase(ProgrammingError):
    name = "UNKNOWN_DATABASE"
    code = 81


class UnknownIdentifier(ProgrammingError):
    name = "UNKNOWN_IDENTIFIER"
    code = 47


class AmbiguousIdentifier(ProgrammingError):
    name = "AMBIGUOUS_IDENTIFIER"
    code = 207


class NoSuchColumn(ProgrammingError):
    name = "NO_SUCH_COLUMN_IN_TABLE"
    code = 16


class ThereIsNoColumn(ProgrammingError):
    name = "THERE_IS_NO_COLUMN"
    code = 8


class IndexNotUsed(ProgrammingError):
    """A setting asks for an index that the query cannot use."""

    name = "INDEX_NOT_USED"
    code = 277


class TableNotEmpty(ProgrammingError):
    name = "TABLE_NOT_EMPTY"
    code = 705


class DuplicateColumn(ProgrammingError):
    name = "DUPLICATE_COLUMN"
    code = 15


class UnknownFunction(ProgrammingError):
    name = "UNKNOWN_FUNCTION"
    code = 46


class UnknownAggregateFunction(ProgrammingError):
    name = "UNKNOWN_AGGREGATE_FUNCTION"
    code = 63


class UnknownType(ProgrammingError):
    name = "UNKNOWN_TYPE"
    code = 50


class UnknownSetting(ProgrammingError):
    name = "UNKNOWN_SETTING"
    code = 115


class UnknownStorage(ProgrammingError):
    name = "UNKNOWN_STORAGE"
    code = 56


class UnknownFormat(ProgrammingError):
    name = "UNKNOWN_FORMAT"
    code = 73


class TableAlreadyExists(ProgrammingError):
    name = "TABLE_ALREADY_EXISTS"
    code = 57


class DatabaseAlreadyExists(ProgrammingError):
    name = "DATABASE_ALREADY_EXISTS"
    code = 82


class IllegalTypeOfArgument(ProgrammingError):
    name = "ILLEGAL_TYPE_OF_ARGUMENT"
    code = 43


class NumberOfArgumentsDoesntMatch(ProgrammingError):
    name = "NUMBER_OF_ARGUMENTS_DOESNT_MATCH"
    code = 42


class TooFewArguments(ProgrammingError):
    name = "TOO_FEW_ARGUMENTS_FOR_FUNCTION"
    code = 35


class ArgumentOutOfBound(ProgrammingError):
    name = "ARGUMENT_OUT_OF_BOUND"
    code = 69


class ParameterOutOfBound(ProgrammingError):
    name = "PARAMETER_OUT_OF_BOUND"
    code = 12


class NoCommonType(ProgrammingError):
    name = "NO_COMMON_TYPE"
    code = 386


class NotAnAggregate(ProgrammingError):
    name = "NOT_AN_AGGREGATE"
    code = 215


class IllegalAggregation(ProgrammingError):
    name = "ILLEGAL_AGGREGATION"
    code = 184


class MultipleExpressionsForAlias(ProgrammingError):
    name = "MULTIPLE_EXPRESSIONS_FOR_ALIAS"
    code = 179


class CyclicAliases(ProgrammingError):
    name = "CYCLIC_ALIASES"
    code = 174


class IllegalTypeOfColumnForFilter(ProgrammingError):
    name = "ILLEGAL_TYPE_OF_COLUMN_FOR_FILTER"
    code = 59


class InvalidLimitExpression(ProgrammingError):
    name = "INVALID_LIMIT_EXPRESSION"
    code = 440


class InvalidJoinOnExpression(ProgrammingError):
    name = "INVALID_JOIN_ON_EXPRESSION"
    code = 403


class NumberOfColumnsDoesntMatch(ProgrammingError):
    name = "NUMBER_OF_COLUMNS_DOESNT_MATCH"
    code = 20


class UnionStructuresMismatch(ProgrammingError):
    name = "UNION_ALL_RESULT_STRUCTURES_MISMATCH"
    code = 258


class IllegalFinal(ProgrammingError):
    name = "ILLEGAL_FINAL"
    code = 181


class ExpectedUnionMode(ProgrammingError):
    name = "EXPECTED_ALL_OR_DISTINCT"
    code = 558


class UnknownQueryParameter(ProgrammingError):
    name = "UNKNOWN_QUERY_PARAMETER"
    code = 456


class IncorrectQuery(ProgrammingError):
    name = "INCORRECT_QUERY"
    code = 80


class QueryNotSupportedInMaterializedView(ProgrammingError):
    name = "QUERY_IS_NOT_SUPPORTED_IN_MATERIALIZED_VIEW"
    code = 397


class IncorrectNumberOfColumns(ProgrammingError):
    name = "INCORRECT_NUMBER_OF_COLUMNS"
    code = 7


class BadTypeOfField(ProgrammingError):
    name = "BAD_TYPE_OF_FIELD"
    code = 169


class DataTypeCannotBeUsedInKey(ProgrammingError):
    name = "DATA_TYPE_CANNOT_BE_USED_IN_KEY"
    code = 549


class IllegalColumn(ProgrammingError):
    name = "ILLEGAL_COLUMN"
    code = 44


class AlterOfColumnIsForbidden(ProgrammingError):
    name = "ALTER_OF_COLUMN_IS_FORBIDDEN"
    code = 524


class NotFoundColumnInBlock(ProgrammingError):
    name = "NOT_FOUND_COLUMN_IN_BLOCK"
    code = 10


class CannotUpdateColumn(ProgrammingError):
    name = "CANNOT_UPDATE_COLUMN"
    code = 420


class MultipleAssignments(ProgrammingError):
    name = "MULTIPLE_ASSIGNMENTS_TO_COLUMN"
    code = 419


class ReadonlySetting(ProgrammingError):
    name = "READONLY_SETTING"
    code = 472


class NoDefaultValue(ProgrammingError):
    name = "THERE_IS_NO_DEFAULT_VALUE"
    code = 116


class UnknownCodec(ProgrammingError):
    name = "UNKNOWN_CODEC"
    code = 432


class TypeNotForTables(ProgrammingError):
    name = "DATA_TYPE_CANNOT_BE_USED_IN_TABLES"
    code = 370


class EmptyListOfColumns(ProgrammingError):
    name = "EMPTY_LIST_OF_COLUMNS_PASSED"
    code = 90


class AggregateDoesntAllowParameters(ProgrammingError):
    name = "AGGREGATE_FUNCTION_DOESNT_ALLOW_PARAMETERS"
    code = 133


class CannotCompileRegexp(ProgrammingError):
    name = "CANNOT_COMPILE_REGEXP"
    code = 427


class UnexpectedAstStructure(ProgrammingError):
    name = "UNEXPECTED_AST_STRUCTURE"
    code = 223


class InvalidPartitionValue(ProgrammingError):
    name = "INVALID_PARTITION_VALUE"
    code = 248


class IllegalCodecParameter(ProgrammingError):
    name = "ILLEGAL_CODEC_PARAMETER"
    code = 433


class CodecTakesNoArguments(ProgrammingError):
    name = "DATA_TYPE_CANNOT_HAVE_ARGUMENTS"
    code = 378


class IllegalCodecType(ProgrammingError):
    name = "ILLEGAL_SYNTAX_FOR_CODEC_TYPE"
    code = 431


class IllegalIndex(ProgrammingError):
    name = "ILLEGAL_INDEX"
    code = 127


class CannotParseSetting(ProgrammingError):
    name = "CANNOT_PARSE_INPUT_ASSERTION_FAILED"
    code = 27


class SettingOutOfRange(ProgrammingError):
    name = "CANNOT_CONVERT_TYPE"
    code = 70


class UnsupportedMethod(NotSupportedError):
    """The statement is fine, but this kind of table cannot do it."""

    name = "NOT_IMPLEMENTED"
    code = 48


# --- DataError ------------------------------------------------------------------------------


class CannotParse(DataError):
    name = "CANNOT_PARSE_TEXT"
    code = 6


class CannotParseNumber(DataError):
    name = "CANNOT_PARSE_NUMBER"
    code = 72


class CannotParseDate(DataError):
    name = "CANNOT_PARSE_DATE"
    code = 38


class CannotParseDateTime(DataError):
    name = "CANNOT_PARSE_DATETIME"
    code = 41


class CannotParseUUID(DataError):
    name = "CANNOT_PARSE_UUID"
    code = 376


class CannotParseBool(DataError):
    name = "CANNOT_PARSE_BOOL"
    code = 467


class IncorrectData(DataError):
    name = "INCORRECT_DATA"
    code = 117


class AttemptToReadAfterEof(DataError):
    """An empty text where a value should be."""

    name = "ATTEMPT_TO_READ_AFTER_EOF"
    code = 32


class CannotParseInput(DataError):
    name = "CANNOT_PARSE_INPUT_ASSERTION_FAILED"
    code = 27


class CannotReadArray(DataError):
    name = "CANNOT_READ_ARRAY_FROM_TEXT"
    code = 130


class CannotConvertType(DataError):
    name = "CANNOT_CONVERT_TYPE"
    code = 70


class IllegalConversion(DataError):
    """There is no cast between the two types."""

    name = "ILLEGAL_TYPE_OF_ARGUMENT"
    code = 43


class SizesOfArraysDoNotMatch(DataError):
    name = "SIZES_OF_ARRAYS_DONT_MATCH"
    code = 190


class UnequalMappedArrays(DataError):
    """Arrays of keys and of values have different lengths."""

    name = "BAD_ARGUMENTS"
    code = 36


class IllegalPrewhere(ProgrammingError):
    name = "ILLEGAL_PREWHERE"
    code = 182


class TypeMismatch(DataError):
    name = "TYPE_MISMATCH"
    code = 53


class DecimalOverflow(DataError):
    name = "DECIMAL_OVERFLOW"
    code = 407


class ValueOutOfBound(DataError):
    """A text or value that its type has no room for."""

    name = "ARGUMENT_OUT_OF_BOUND"
    code = 69


class IllegalDivision(DataError):
    name = "ILLEGAL_DIVISION"
    code = 153


class CannotInsertNull(DataError):
    name = "CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN"
    code = 349


class TooLargeStringSize(DataError):
    name = "TOO_LARGE_STRING_SIZE"
    code = 131


class ThrowIfNonZero(DataError):
    name = "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO"
    code = 395


class IncorrectResultOfScalarSubquery(DataError):
    name = "INCORRECT_RESULT_OF_SCALAR_SUBQUERY"
    code = 125


class IncompatibleColumns(ProgrammingError):
    name = "INCOMPATIBLE_COLUMNS"
    code = 122


class BadTtlExpression(ProgrammingError):
    name = "BAD_TTL_EXPRESSION"
    code = 450


class SupportIsDisabled(NotSupportedError):
    name = "SUPPORT_IS_DISABLED"
    code = 344


class BadDataPartName(ProgrammingError):
    name = "BAD_DATA_PART_NAME"
    code = 233


class NoSuchDataPart(ProgrammingError):
    name = "NO_SUCH_DATA_PART"
    code = 232


# --- OperationalError -----------------------------------------------------------------------


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


# --- IntegrityError -------------------------------------------------------------------------


class ViolatedConstraint(IntegrityError):
    name = "VIOLATED_CONSTRAINT"
    code = 469


class HaveDependentObjects(IntegrityError):
    name = "HAVE_DEPENDENT_OBJECTS"
    code = 630


class ViewNotProvable(IntegrityError):
    """A view's definition would be corrupted by merging; the message has the reason and the fix."""

    name = "QUERY_IS_NOT_SUPPORTED_IN_MATERIALIZED_VIEW"
    code = 397


class BypassRows(IntegrityError):
    """A slice holds rows that no trigger, backfill or replay put there."""

    name = "BYPASS_ROWS"
    code = 2003


class RetainedRows(IntegrityError):
    """A slice holds what was made of source rows that have left by retention: it would be lost."""

    name = "RETAINED_ROWS"
    code = 2006


class ViewDiffers(IntegrityError):
    """A version of a view is not equal to a recomputation from its source."""

    name = "VIEW_DIFFERS"
    code = 2007


class ViewLimitExceeded(OperationalError):
    """A view did more in an INSERT than a `max_view_…` setting allows; nothing was inserted."""

    name = "VIEW_LIMIT_EXCEEDED"
    code = 2008


class BackfillIncomplete(OperationalError):
    """Some chunks of a backfill failed, which the message names; the others are published.

    `rows` are those of all chunks (`olapdb.views.backfill.BackfillRow`)."""

    name = "BACKFILL_INCOMPLETE"
    code = 2009
    rows: tuple[object, ...] = ()


class ViewGap(IntegrityError):
    """An operation needs coverage that the view does not have; backfill first."""

    name = "VIEW_GAP"
    code = 2004


class OffsetHole(IntegrityError):
    """Source offsets do not follow the stored ones."""

    name = "OFFSET_HOLE"
    code = 2005


class DuplicateInsert(IntegrityError):
    """An INSERT with this token was committed before; the caller treats it as done."""

    name = "INSERT_WAS_DEDUPLICATED"
    code = 389

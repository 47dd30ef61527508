"""The statement is wrong, or asks for what olapdb does not have."""

from __future__ import annotations

from olapdb.errors.tree import NotSupportedError, ProgrammingError


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


class UnknownRole(ProgrammingError):
    """A user or role that is not there."""

    name = "UNKNOWN_ROLE"
    code = 511


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


class IllegalPrewhere(ProgrammingError):
    name = "ILLEGAL_PREWHERE"
    code = 182


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

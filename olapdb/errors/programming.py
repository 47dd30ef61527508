"""Leaves of ProgrammingError and NotSupportedError: wrong or unsupported statements."""

from __future__ import annotations

from olapdb.errors.tree import NotSupportedError, ProgrammingError


class SyntaxError(ProgrammingError, name="SYNTAX_ERROR", code=62):  # the name is ClickHouse's
    """A statement that does not parse."""


class WrongSizeOfFixedString(ProgrammingError, name="SIZE_OF_FIXED_STRING_DOESNT_MATCH", code=19):
    """A setting of one character with a longer text."""


class BadArguments(ProgrammingError, name="BAD_ARGUMENTS", code=36):
    """An argument with an unusable value."""


class NoDataToInsert(ProgrammingError, name="NO_DATA_TO_INSERT", code=108):
    """An INSERT of VALUES or a FORMAT with no rows behind it."""


class IllegalStatistics(ProgrammingError, name="ILLEGAL_STATISTICS", code=708):
    """Statistics that a column cannot have, or does not have."""


class ExpectedAllOrAny(ProgrammingError, name="EXPECTED_ALL_OR_ANY", code=417):
    """A join of no strictness where the settings give none."""


class BadCollation(ProgrammingError, name="BAD_COLLATION", code=262):
    """COLLATE of values that hold no text."""


class UnsupportedCollationLocale(ProgrammingError, name="UNSUPPORTED_COLLATION_LOCALE", code=186):
    """COLLATE of a language that has no order."""


class IndexNotUsed(ProgrammingError, name="INDEX_NOT_USED", code=277):
    """A setting that requires an index that the query cannot use."""


class TableNotEmpty(ProgrammingError, name="TABLE_NOT_EMPTY", code=705):
    """A table that must be empty, but has rows."""


class TableTooLargeToDrop(
    ProgrammingError, name="TABLE_SIZE_EXCEEDS_MAX_DROP_SIZE_LIMIT", code=359
):
    """A table with more bytes than max_table_size_to_drop lets DROP or TRUNCATE remove."""


class IncorrectDictionaryDefinition(
    ProgrammingError, name="INCORRECT_DICTIONARY_DEFINITION", code=489
):
    """A dictionary without a clause that it needs, or with clauses that do not fit."""


class CannotDropDictionaryAsTable(
    ProgrammingError, name="CANNOT_DETACH_DICTIONARY_AS_TABLE", code=520
):
    """DROP TABLE of a dictionary."""


class NoHierarchy(ProgrammingError, name="UNSUPPORTED_METHOD", code=1):
    """A walk up or down a dictionary that has no hierarchy."""


class IllegalTypeOfArgument(ProgrammingError, name="ILLEGAL_TYPE_OF_ARGUMENT", code=43):
    """An argument of a type that the function does not accept."""


class DeprecatedFunction(ProgrammingError, name="DEPRECATED_FUNCTION", code=721):
    """A function whose result depends on how rows are cut into blocks."""


class NumberOfArgumentsDoesntMatch(
    ProgrammingError, name="NUMBER_OF_ARGUMENTS_DOESNT_MATCH", code=42
):
    """A call with the wrong number of arguments."""


class TooManyArguments(ProgrammingError, name="TOO_MANY_ARGUMENTS_FOR_FUNCTION", code=34):
    """A function was called with more arguments than it takes."""


class TooFewArguments(ProgrammingError, name="TOO_FEW_ARGUMENTS_FOR_FUNCTION", code=35):
    """A call with fewer arguments than the function requires."""


class CannotCreateCharsetConverter(
    ProgrammingError, name="CANNOT_CREATE_CHARSET_CONVERTER", code=360
):
    """The name of a character set that does not exist."""


class ArgumentOutOfBound(ProgrammingError, name="ARGUMENT_OUT_OF_BOUND", code=69):
    """An argument outside the range that the function or type accepts."""


class UnsupportedParameter(ProgrammingError, name="UNSUPPORTED_PARAMETER", code=2):
    """A parameter of a type that its aggregate function does not take."""


class ParameterOutOfBound(ProgrammingError, name="PARAMETER_OUT_OF_BOUND", code=12):
    """A parameter of an aggregate function outside its range."""


class NoCommonType(ProgrammingError, name="NO_COMMON_TYPE", code=386):
    """Types without a common supertype."""


class NotAnAggregate(ProgrammingError, name="NOT_AN_AGGREGATE", code=215):
    """A column that is neither aggregated nor in GROUP BY."""


class IllegalAggregation(ProgrammingError, name="ILLEGAL_AGGREGATION", code=184):
    """An aggregate function in a place that does not allow one."""


class MultipleExpressionsForAlias(
    ProgrammingError, name="MULTIPLE_EXPRESSIONS_FOR_ALIAS", code=179
):
    """An alias that names two different expressions."""


class CyclicAliases(ProgrammingError, name="CYCLIC_ALIASES", code=174):
    """An alias that refers to itself."""


class IllegalTypeOfColumnForFilter(
    ProgrammingError, name="ILLEGAL_TYPE_OF_COLUMN_FOR_FILTER", code=59
):
    """A WHERE, HAVING or PREWHERE condition that is neither Bool nor a number."""


class InvalidLimitExpression(ProgrammingError, name="INVALID_LIMIT_EXPRESSION", code=440):
    """A LIMIT or OFFSET that is not a usable constant."""


class InvalidJoinOnExpression(ProgrammingError, name="INVALID_JOIN_ON_EXPRESSION", code=403):
    """A JOIN condition that cannot be executed."""


class IndexOfPositionalArgument(
    ProgrammingError, name="INDEX_OF_POSITIONAL_ARGUMENT_IS_OUT_OF_RANGE", code=353
):
    """The number of a group that a pattern does not have."""


class IncompatibleTypeOfJoin(ProgrammingError, name="INCOMPATIBLE_TYPE_OF_JOIN", code=264):
    """A join with a table of the engine Join that is not the join of that table."""


class NumberOfColumnsDoesntMatch(ProgrammingError, name="NUMBER_OF_COLUMNS_DOESNT_MATCH", code=20):
    """Two lists of columns that must have equal lengths, but differ."""


class UnionStructuresMismatch(
    ProgrammingError, name="UNION_ALL_RESULT_STRUCTURES_MISMATCH", code=258
):
    """Queries of a UNION with different numbers of columns."""


class IntersectOrExceptMismatch(
    ProgrammingError, name="INTERSECT_OR_EXCEPT_RESULT_STRUCTURES_MISMATCH", code=596
):
    """Queries of an INTERSECT or EXCEPT with different numbers of columns."""


class InvalidConfigParameter(ProgrammingError, name="INVALID_CONFIG_PARAMETER", code=318):
    """A BACKUP to a disk or a file, which no configuration allows."""


class FunctionCannotHaveParameters(
    ProgrammingError, name="FUNCTION_CANNOT_HAVE_PARAMETERS", code=309
):
    """A function that is no aggregate, called as f(parameters)(arguments)."""


class IllegalSyntaxForDataType(ProgrammingError, name="ILLEGAL_SYNTAX_FOR_DATA_TYPE", code=377):
    """NULL or NOT NULL behind a type that is Nullable already."""


class IllegalFinal(ProgrammingError, name="ILLEGAL_FINAL", code=181):
    """FINAL on a table or query that has no FINAL."""


class ExpectedUnionMode(ProgrammingError, name="EXPECTED_ALL_OR_DISTINCT", code=558):
    """A UNION without ALL or DISTINCT where the settings require one."""


class BadQueryParameter(ProgrammingError, name="BAD_QUERY_PARAMETER", code=457):
    """A value that the call of a view gives for a parameter, and that its type does not have."""


class NoColumnsWithoutParameters(ProgrammingError, name="UNSUPPORTED_METHOD", code=1):
    """The columns of a view with parameters, asked for without values of them."""


class SamplingNotSupported(ProgrammingError, name="SAMPLING_NOT_SUPPORTED", code=141):
    """SAMPLE of a source that has no sampling key."""


class IncorrectQuery(ProgrammingError, name="INCORRECT_QUERY", code=80):
    """A statement that contradicts itself or its table."""


class IncorrectNumberOfColumns(ProgrammingError, name="INCORRECT_NUMBER_OF_COLUMNS", code=7):
    """A text index over several columns."""


class QueryNotSupportedInMaterializedView(
    ProgrammingError, name="QUERY_IS_NOT_SUPPORTED_IN_MATERIALIZED_VIEW", code=397
):
    """A query that a materialized view cannot have."""


class InvalidWithFillExpression(ProgrammingError, name="INVALID_WITH_FILL_EXPRESSION", code=475):
    """A WITH FILL whose bounds, step or column cannot be used."""


class BadTypeOfField(ProgrammingError, name="BAD_TYPE_OF_FIELD", code=169):
    """A column whose type does not fit its use."""


class DataTypeCannotBeUsedInKey(ProgrammingError, name="DATA_TYPE_CANNOT_BE_USED_IN_KEY", code=549):
    """A key column of a type that has no stable order."""


class CannotAddDifferentAggregateStates(
    ProgrammingError, name="CANNOT_ADD_DIFFERENT_AGGREGATE_STATES", code=421
):
    """A sum of states of two aggregates, or of one aggregate of two types."""


class IllegalColumn(ProgrammingError, name="ILLEGAL_COLUMN", code=44):
    """A column, or an argument's value, that cannot be used where it is."""


class SuspiciousTypeForLowCardinality(
    ProgrammingError, name="SUSPICIOUS_TYPE_FOR_LOW_CARDINALITY", code=455
):
    """A column that is LowCardinality of numbers or times, which a setting allows."""


class AliasRequired(ProgrammingError, name="ALIAS_REQUIRED", code=206):
    """A joined subquery without an alias."""


class AlterOfColumnIsForbidden(ProgrammingError, name="ALTER_OF_COLUMN_IS_FORBIDDEN", code=524):
    """An ALTER of a column that keys, views or other columns need."""


class CannotUpdateColumn(ProgrammingError, name="CANNOT_UPDATE_COLUMN", code=420):
    """A column that UPDATE cannot assign, such as one of a key."""


class MultipleAssignments(ProgrammingError, name="MULTIPLE_ASSIGNMENTS_TO_COLUMN", code=419):
    """A column that one UPDATE assigns twice."""


class ReadonlySetting(ProgrammingError, name="READONLY_SETTING", code=472):
    """A setting that cannot be changed any more."""


class NoDefaultValue(ProgrammingError, name="THERE_IS_NO_DEFAULT_VALUE", code=116):
    """A column whose default expression cannot be evaluated."""


class TypeNotForTables(ProgrammingError, name="DATA_TYPE_CANNOT_BE_USED_IN_TABLES", code=370):
    """A type that table columns cannot have."""


class EmptyListOfColumns(ProgrammingError, name="EMPTY_LIST_OF_COLUMNS_PASSED", code=90):
    """A table or statement without columns."""


class EmptyListOfColumnsQueried(ProgrammingError, name="EMPTY_LIST_OF_COLUMNS_QUERIED", code=51):
    """A SELECT whose columns are all left out."""


class AggregateDoesntAllowParameters(
    ProgrammingError, name="AGGREGATE_FUNCTION_DOESNT_ALLOW_PARAMETERS", code=133
):
    """Parameters for an aggregate function that takes none."""


class CannotCompileRegexp(ProgrammingError, name="CANNOT_COMPILE_REGEXP", code=427):
    """A regular expression that does not compile."""


class EmptyDataPassed(ProgrammingError, name="EMPTY_DATA_PASSED", code=92):
    """A type or statement without the elements that it needs."""


class WithTiesWithoutOrderBy(ProgrammingError, name="WITH_TIES_WITHOUT_ORDER_BY", code=476):
    """LIMIT … WITH TIES where nothing says which rows are equal."""


class OffsetFetchWithoutOrderBy(ProgrammingError, name="OFFSET_FETCH_WITHOUT_ORDER_BY", code=628):
    """FETCH FIRST n ROWS without ORDER BY."""


class EngineRequired(ProgrammingError, name="ENGINE_REQUIRED", code=119):
    """A CREATE TABLE without an engine where the settings give none."""


class UnexpectedAstStructure(ProgrammingError, name="UNEXPECTED_AST_STRUCTURE", code=223):
    """An expression of a form that its place does not allow."""


class InvalidPartitionValue(ProgrammingError, name="INVALID_PARTITION_VALUE", code=248):
    """A partition value that does not fit the partition key."""


class IllegalCodecParameter(ProgrammingError, name="ILLEGAL_CODEC_PARAMETER", code=433):
    """A parameter that the compression codec does not accept."""


class CodecTakesNoArguments(ProgrammingError, name="DATA_TYPE_CANNOT_HAVE_ARGUMENTS", code=378):
    """Arguments for a compression codec that takes none."""


class IllegalCodecType(ProgrammingError, name="ILLEGAL_SYNTAX_FOR_CODEC_TYPE", code=431):
    """A compression codec that does not fit the column's type or takes no argument."""


class IllegalProjection(ProgrammingError, name="ILLEGAL_PROJECTION", code=583):
    """A projection that cannot be."""


class DataTypeCannotHaveArguments(
    ProgrammingError, name="DATA_TYPE_CANNOT_HAVE_ARGUMENTS", code=378
):
    """A type, such as Date, has arguments in parentheses."""


class IllegalIndex(ProgrammingError, name="ILLEGAL_INDEX", code=127):
    """A skip index that cannot be built."""


class CannotParseSetting(ProgrammingError, name="CANNOT_PARSE_INPUT_ASSERTION_FAILED", code=27):
    """A setting whose text is not a value of its type."""


class CannotParseBoolSetting(ProgrammingError, name="CANNOT_PARSE_BOOL", code=467):
    """A setting whose text is no Bool."""


class SettingOutOfRange(ProgrammingError, name="CANNOT_CONVERT_TYPE", code=70):
    """A setting's value that its type cannot represent."""


class AccessDenied(ProgrammingError, name="ACCESS_DENIED", code=497):
    """A statement that needs a right which the one user lacks, as to manage users."""


class UnsupportedMethod(NotSupportedError, name="NOT_IMPLEMENTED", code=48):
    """A valid statement that this kind of table does not support."""


class InvalidSettingValue(ProgrammingError, name="INVALID_SETTING_VALUE", code=471):
    """An option of EXPLAIN that is neither 0 nor 1."""


class UnexpectedExpression(ProgrammingError, name="UNEXPECTED_EXPRESSION", code=183):
    """ORDER BY ALL beside a column of the name `all`."""


class UnsupportedInProcess(NotSupportedError, name="UNSUPPORTED_METHOD", code=1):
    """A statement about a server: olapdb runs in the process and has none."""


class RecursiveFunction(ProgrammingError, name="UNSUPPORTED_METHOD", code=1):
    """A call of a function that users made, whose body leads back to it."""


class UnsupportedRecursion(ProgrammingError, name="UNSUPPORTED_METHOD", code=1):
    """A WITH RECURSIVE that is no UNION ALL of a first step and repeated ones."""


class CannotDropFunction(ProgrammingError, name="CANNOT_DROP_FUNCTION", code=610):
    """DROP FUNCTION of a function of the engine."""


class CannotCreateRecursiveFunction(
    ProgrammingError, name="CANNOT_CREATE_RECURSIVE_FUNCTION", code=611
):
    """CREATE FUNCTION with a body that calls the function itself."""


class IllegalPrewhere(ProgrammingError, name="ILLEGAL_PREWHERE", code=182):
    """PREWHERE on a table or in a query that does not allow it."""


class IncompatibleColumns(ProgrammingError, name="INCOMPATIBLE_COLUMNS", code=122):
    """Columns that must have equal types or names, but differ."""


class SettingConstraintViolation(ProgrammingError, name="SETTING_CONSTRAINT_VIOLATION", code=452):
    """A setting that contradicts another one."""


class BadTtlExpression(ProgrammingError, name="BAD_TTL_EXPRESSION", code=450):
    """A TTL expression that does not yield a date or time."""


class SupportIsDisabled(NotSupportedError, name="SUPPORT_IS_DISABLED", code=344):
    """A form of a statement that olapdb does not support in this place."""


class CannotAssignOptimize(ProgrammingError, name="CANNOT_ASSIGN_OPTIMIZE", code=388):
    """A way of OPTIMIZE that the table's engine does not have."""


class BadDatabaseForTemporaryTable(
    ProgrammingError, name="BAD_DATABASE_FOR_TEMPORARY_TABLE", code=442
):
    """A temporary table with the name of a database in front."""


class FormatNotForInput(ProgrammingError, name="FORMAT_IS_NOT_SUITABLE_FOR_INPUT", code=85):
    """A format that is only written."""


class FormatNotForOutput(ProgrammingError, name="FORMAT_IS_NOT_SUITABLE_FOR_OUTPUT", code=399):
    """A format that is only read."""


class PathNotAllowed(ProgrammingError, name="DATABASE_ACCESS_DENIED", code=291):
    """A path outside of the folders that statements may read and write."""


class QueryIsProhibited(NotSupportedError, name="QUERY_IS_PROHIBITED", code=392):
    """A statement for a cluster, or one that defines an object where `allow_ddl` is off."""


class CannotForgetPartition(ProgrammingError, name="CANNOT_FORGET_PARTITION", code=716):
    """FORGET PARTITION of one that has rows."""


class NoElementsInConfig(ProgrammingError, name="NO_ELEMENTS_IN_CONFIG", code=139):
    """A name that only a server's configuration could give a meaning."""


class DictionariesWasNotLoaded(ProgrammingError, name="DICTIONARIES_WAS_NOT_LOADED", code=156):
    """A dictionary that ClickHouse's configuration would name."""


class InvalidUsageOfInput(ProgrammingError, name="INVALID_USAGE_OF_INPUT", code=477):
    """The function input() where no data of an INSERT are."""


class InvalidTemplate(ProgrammingError, name="INVALID_TEMPLATE_FORMAT", code=474):
    """A template of the format Template that has no place for the rows, or a placeholder of no
    meaning."""


class FunctionNotAllowed(ProgrammingError, name="FUNCTION_NOT_ALLOWED", code=446):
    """A setting forbids the function."""

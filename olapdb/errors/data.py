"""Leaves of DataError: values that do not parse, convert or fit."""

from __future__ import annotations

from olapdb.errors.tree import DataError


class CannotParse(DataError, name="CANNOT_PARSE_TEXT", code=6):
    """A text that does not have the form of its target type."""


class CannotParseNumber(DataError, name="CANNOT_PARSE_NUMBER", code=72):
    """A text that is not a number."""


class CannotParseDate(DataError, name="CANNOT_PARSE_DATE", code=38):
    """A text that is not a Date or Date32."""


class CannotParseDateTime(DataError, name="CANNOT_PARSE_DATETIME", code=41):
    """A text that is not a DateTime or DateTime64."""


class CannotParseUUID(DataError, name="CANNOT_PARSE_UUID", code=376):
    """A text that is not a UUID."""


class UnknownElementOfEnum(DataError, name="UNKNOWN_ELEMENT_OF_ENUM", code=691):
    """A text or number that an Enum does not have."""


class CannotParseIPv4(DataError, name="CANNOT_PARSE_IPV4", code=675):
    """A text that is not an IPv4 address."""


class CannotParseEscapeSequence(DataError, name="CANNOT_PARSE_ESCAPE_SEQUENCE", code=25):
    """A pattern of LIKE that ends in a backslash."""


class CannotParseIPv6(DataError, name="CANNOT_PARSE_IPV6", code=676):
    """A text that is not an IPv6 address."""


class OutOfRange(DataError, name="VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE", code=321):
    """A value beyond the range of its type."""


class CannotParseBool(DataError, name="CANNOT_PARSE_BOOL", code=467):
    """A text that is not a Bool."""


class IncorrectData(DataError, name="INCORRECT_DATA", code=117):
    """A value that is malformed or contradicts its column's contract (a sign that is not 1 or -1)."""


class CannotReadAllData(DataError, name="CANNOT_READ_ALL_DATA", code=33):
    """Data that end within a value or a row."""


class AttemptToReadAfterEof(DataError, name="ATTEMPT_TO_READ_AFTER_EOF", code=32):
    """An empty text where a value is required."""


class CannotParseInput(DataError, name="CANNOT_PARSE_INPUT_ASSERTION_FAILED", code=27):
    """Input with a character other than the one its format requires."""


class CannotFormatDateTime(DataError, name="CANNOT_FORMAT_DATETIME", code=490):
    """A number that is no date or time that can be written."""


class CannotReadArray(DataError, name="CANNOT_READ_ARRAY_FROM_TEXT", code=130):
    """A text that is not an array literal."""


class CannotParseQuotedString(DataError, name="CANNOT_PARSE_QUOTED_STRING", code=26):
    """A text that must stand in quotes, and does not."""


class UnexpectedDataAfterValue(DataError, name="UNEXPECTED_DATA_AFTER_PARSED_VALUE", code=632):
    """A text that goes on behind its value."""


class CannotConvertType(DataError, name="CANNOT_CONVERT_TYPE", code=70):
    """A value that its target type cannot represent."""


class IllegalConversion(DataError, name="ILLEGAL_TYPE_OF_ARGUMENT", code=43):
    """A cast between two types that have none."""


class OpensslError(DataError, name="OPENSSL_ERROR", code=454):
    """A text that its key does not decrypt."""


class SizesOfArraysDoNotMatch(DataError, name="SIZES_OF_ARRAYS_DONT_MATCH", code=190):
    """Arrays of one row that must have equal lengths, but differ."""


class BadGet(DataError, name="BAD_GET", code=170):
    """A parameter of another type than the one that its function reads."""


class ZeroIndex(DataError, name="ZERO_ARRAY_OR_TUPLE_INDEX", code=135):
    """A place 0 where places count from 1."""


class TooLargeArray(DataError, name="TOO_LARGE_ARRAY_SIZE", code=128):
    """An array that would have more elements than an array may have."""


class UnequalMappedArrays(DataError, name="BAD_ARGUMENTS", code=36):
    """Arrays of keys and of values that differ in length."""


class IncorrectElementOfSet(DataError, name="INCORRECT_ELEMENT_OF_SET", code=124):
    """A tuple right of IN with another number of elements than the one on the left."""


class UnsupportedConversion(DataError, name="NOT_IMPLEMENTED", code=48):
    """A CAST between types that ClickHouse says it has not implemented, such as a number and a UUID."""


class TypeMismatch(DataError, name="TYPE_MISMATCH", code=53):
    """A value or column of a type that its use does not allow (a final value for a state)."""


class DecimalOverflow(DataError, name="DECIMAL_OVERFLOW", code=407):
    """A result with more digits than its Decimal or DateTime64 holds."""


class ValueOutOfBound(DataError, name="ARGUMENT_OUT_OF_BOUND", code=69):
    """A value outside the range of its type."""


class ValueOutOfRange(DataError, name="VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE", code=321):
    """A number that the type of its use does not hold."""


class CannotPrintNumber(DataError, name="CANNOT_PRINT_FLOAT_OR_DOUBLE_NUMBER", code=28):
    """A number that cannot be written with so many digits."""


class IllegalDivision(DataError, name="ILLEGAL_DIVISION", code=153):
    """An integer division by zero, or of the least integer by -1."""


class CannotInsertNull(DataError, name="CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN", code=349):
    """A NULL for a column that is not Nullable."""


class TooLargeStringSize(DataError, name="TOO_LARGE_STRING_SIZE", code=131):
    """A string longer than its FixedString, or than a function may return."""


class PythonFunctionFailed(DataError, name="PYTHON_FUNCTION_FAILED", code=2030):
    """An exception, or a result of another type, of a Python function that users made."""


class ThrowIfNonZero(DataError, name="FUNCTION_THROW_IF_VALUE_IS_NON_ZERO", code=395):
    """A row for which throwIf received a non-zero value."""


class IncorrectResultOfScalarSubquery(
    DataError, name="INCORRECT_RESULT_OF_SCALAR_SUBQUERY", code=125
):
    """A scalar subquery that returned more than one row."""


class CannotDetectFormat(DataError, name="CANNOT_DETECT_FORMAT", code=735):
    """A file whose format neither the statement nor its name says."""


class CannotExtractTableStructure(DataError, name="CANNOT_EXTRACT_TABLE_STRUCTURE", code=636):
    """Data in a format, whose columns cannot be found."""

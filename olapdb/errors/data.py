"""A value does not fit."""

from __future__ import annotations

from olapdb.errors.tree import DataError


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

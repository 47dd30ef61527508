"""Parsing of type names, and the list of all type families."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from olapdb import errors
from olapdb.lazy import LazyModule
from olapdb.types.aliases import ALIASES, CASE_INSENSITIVE, DECIMALS, continues, with_length
from olapdb.types.base import DataType
from olapdb.types.compound import (
    AggregateFunction,
    Array,
    LowCardinality,
    Map,
    Nullable,
    SimpleAggregateFunction,
    Tuple,
    is_nullable,
    plain,
)
from olapdb.types.dynamic import Dynamic, Json
from olapdb.types.dynamic_names import dynamic_of, json_of
from olapdb.types.enums import enum_of
from olapdb.types.named import GEOMETRIES, GEOMETRY, Nested
from olapdb.types.scalars import (
    BFLOAT16,
    BOOL,
    DATE,
    DATE32,
    DATETIME,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    INT128,
    INT256,
    INTERVAL_UNITS,
    IPV4,
    IPV6,
    NOTHING,
    STRING,
    TIME,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    UINT128,
    UINT256,
    UUID_TYPE,
    DateTime,
    DateTime64,
    Decimal,
    Enum,
    FixedString,
    Float,
    Integer,
    Interval,
    Nothing,
    String,
    Time64,
)
from olapdb.types.variant import ALTERNATIVES_MAX, Variant, variant_of

if TYPE_CHECKING:
    from olapdb.types import families
else:
    families = LazyModule("olapdb.types.families")

StateOf = Callable[[str, tuple[str, ...], tuple[DataType, ...]], DataType]
"""A function from (name, parameters as SQL, argument types) to the type that represents a state."""

BY_NAME: dict[str, DataType] = {
    **{t.name: t for t in (UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64)},
    **{t.name: t for t in (BFLOAT16, FLOAT32, FLOAT64, BOOL, STRING, DATE, DATE32, DATETIME)},
    **{t.name: t for t in (INT128, UINT128, INT256, UINT256)},
    **{t.name: t for t in (UUID_TYPE, IPV4, IPV6, NOTHING, TIME)},
    **{t.name: t for t in (*GEOMETRIES, GEOMETRY)},
    "Dynamic": Dynamic(),
    "JSON": Json(),
}
"""The types whose names have no arguments."""

_WRAPPERS = (Nullable, LowCardinality)
_NOT_IN_LOW_CARDINALITY = (
    *(Array, Map, Tuple, Variant, Dynamic, Json, Decimal, Enum, AggregateFunction, Time64, Nothing),
)
_QUOTED = re.compile(r"'((?:[^'\\]|\\.|'')*)'", re.DOTALL)
_TRAILING_COMMA = re.compile(r",\s*\)")
_ESCAPED = re.compile(r"\\.|''", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f"}
_UNSUPPORTED = {
    "Object": "Write JSON, which keeps the type of each value.",
    "QBit": "Use Array(Float32), which distances of vectors take.",
}
"""Types of ClickHouse that olapdb does not have, and what to use instead."""


def known_zone(zone: str) -> str:
    """Return `zone` if it names a time zone; raise BadArguments otherwise."""
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError) as error:  # the last is ZoneInfoNotFoundError
        raise errors.BadArguments(
            f"Cannot load time zone {zone}.", hint="SELECT * FROM system.time_zones lists them."
        ) from error
    return zone


def known_zone_or_none(zone: str) -> str:
    """Return `zone` if it is empty or names a time zone; raise BadArguments otherwise."""
    return known_zone(zone) if zone else zone


def parse_type(text: str, state_of: StateOf) -> DataType:
    """Return the type that a ClickHouse type name denotes.

    `state_of` returns the representation of aggregate states; callers use
    `olapdb.functions.parse_type`, which passes the real one.  Raises UnknownType for an unknown
    name, SyntaxError for other wrong texts, and errors of arguments out of bound.
    """
    if text in BY_NAME:
        return BY_NAME[text]
    parser = _TypeParser(text, state_of)
    parsed = parser.parse()
    parser.expect_end()
    return parsed


class _TypeParser:
    """A recursive descent parser of one type name; `at` is the current position in `text`."""

    def __init__(self, text: str, state_of: StateOf) -> None:
        """Begin at the first character of `text`; `state_of` is as of `parse_type`."""
        self.text, self.at, self.state_of = text, 0, state_of

    def parse(self) -> DataType:
        """Parse one type with its arguments; raise UnknownType or SyntaxError."""
        name = self.word()
        while continues(name, self._peek_word()):
            name = f"{name} {self.word()}"
        if not self.take("("):
            return self._simple(name)
        if self.peek() == ")" and (bare := self._with_empty_brackets(name)) is not None:
            self._expect(")")
            return self._with_sign(name, bare)
        parsed = self._parametric(name)
        if self.peek() == ",":
            raise errors.NumberOfArgumentsDoesntMatch(
                f"{name} takes fewer arguments: {self.text!r}."
            )
        self._expect(")")
        return self._with_sign(name, parsed)

    def _with_sign(self, name: str, parsed: DataType) -> DataType:
        """Return the type of INT(11) UNSIGNED if such a word follows the brackets, else `parsed`."""
        if continues(name, self._peek_word()):
            return ALIASES[f"{name} {self.word()}".upper()]
        return parsed

    def _simple(self, name: str) -> DataType:
        """Return the type of a name without arguments. Raises UnknownType for an unknown name."""
        if name in BY_NAME:
            return BY_NAME[name]
        upper = name.upper()
        if upper in ALIASES:
            return ALIASES[upper]
        if upper in DECIMALS:
            return Decimal(10, 0)
        if upper == "DATETIME64":
            return DateTime64(3)
        if name.startswith("Interval") and name[8:] in INTERVAL_UNITS:
            return Interval(name[8:])
        if name in ("Enum8", "Enum16") or upper == "ENUM":
            return enum_of(CASE_INSENSITIVE.get(upper, name), ())
        if name == "Tuple":
            return Tuple(())
        raise families.arguments_missing(name) or self._unknown(name)

    def _with_empty_brackets(self, name: str) -> DataType | None:
        """Return the type that a name followed by () stands for, if all its arguments may be left out; None for other
        types. Raises the error for a type that needs arguments."""
        known = name in BY_NAME or name.upper() in ALIASES
        if known or name.upper() in ("DATETIME64", *DECIMALS):
            return self._simple(name)
        missing = families.arguments_missing(CASE_INSENSITIVE.get(name.upper(), name))
        if missing is not None:
            raise missing
        return None

    def _parametric(self, name: str) -> DataType:
        """Parse the arguments after the opening bracket and return the type. Raises UnknownType,
        UnexpectedAstStructure and ArgumentOutOfBound."""
        upper = name.upper()
        name = CASE_INSENSITIVE.get(upper, name)
        if (nested := self._of_types(name)) is not None:
            return nested
        match name:
            case "FixedString":
                if self.peek() == "'":
                    raise errors.UnexpectedAstStructure("FixedString has a number, its length.")
                length = self.integer()
                if length < 1:
                    raise errors.UnexpectedAstStructure("FixedString needs a length of at least 1.")
                return FixedString(length)
            case "DateTime" if self.peek() == "'":
                return DateTime(known_zone(self._string()))
            case "DateTime" | "DateTime64":
                if self.peek() == "'":
                    raise errors.IllegalTypeOfArgument(
                        "The first argument of DateTime64 is a number."
                    )
                precision = self.integer()
                if not 0 <= precision <= 9:
                    raise errors.ArgumentOutOfBound(
                        f"DateTime64 has a precision of 0 to 9, not {precision}."
                    )
                zone = known_zone(self._string()) if self.take(",") else None
                return DateTime64(precision, zone)
            case "Decimal32" | "Decimal64" | "Decimal128" | "Decimal256":
                width = {"32": 9, "64": 18, "128": 38, "256": 76}[name[7:]]
                return self._decimal(width, self.integer())
            case "Enum" | "Enum8" | "Enum16":
                return enum_of(name, self._enum_elements())
            case _ if upper in DECIMALS:
                return self._decimal(*self._digits())
            case _ if isinstance(plain_type := BY_NAME.get(name), Integer | Float | String):
                self._integers()
                return plain_type
            case _ if (alias := with_length(name)) is not None:
                self._integers()
                return alias
            case _ if upper in ("TIME", "TIME64"):
                return self._time(upper.capitalize())
            case _ if upper == "TIMESTAMP":
                return DateTime64(self.integer())
            case _ if name in BY_NAME:
                raise errors.DataTypeCannotHaveArguments(f"The type {name} cannot have arguments.")
            case _:
                raise self._unknown(name)

    def _of_types(self, name: str) -> DataType | None:
        """Parse the arguments of a type that takes types, such as Array; return None if `name` is none of these."""
        match name:
            case "Nullable":
                return Nullable(
                    self._checked(name, self.parse(), (Array, Map, Variant, Dynamic, *_WRAPPERS))
                )
            case "LowCardinality":
                inner = self.parse()
                self._checked(name, plain(inner), _NOT_IN_LOW_CARDINALITY)
                return LowCardinality(inner)
            case "Array":
                return Array(self.parse())
            case "Map":
                key = self.parse()
                if not self.take(","):
                    raise errors.NumberOfArgumentsDoesntMatch(
                        f"A Map has two types, of its keys and of its values: {self.text!r}."
                    )
                return Map(key, self.parse())
            case "Tuple":
                return self._tuple()
            case "Nested":
                return self._nested()
            case "Variant":
                return self._variant()
            case "Dynamic":
                return dynamic_of(self)
            case "JSON":
                return json_of(self)
            case "AggregateFunction":
                return self._aggregate()
            case "SimpleAggregateFunction":
                function = self.word()
                if not self.take(","):
                    raise families.arguments_missing(name) or self._unknown(name)
                function = families.RESPECTING_NULLS.get(function, function)
                return SimpleAggregateFunction(function, self.parse())
        return None

    def _integers(self) -> None:
        """Skip the one or two length arguments of a type for which they have no meaning: `INT(11)`, `FLOAT(7, 4)`."""
        self.integer()
        if self.take(","):
            self.integer()

    def _time(self, name: str) -> DataType:
        """Parse the precision of a Time64. Raises BadArguments above 9, and IllegalTypeOfArgument for a time zone,
        which no time has."""
        if self.peek() == ")":
            return Time64(3)
        if self.peek() != "'":
            precision = self.integer()
            if precision > 9:
                raise errors.BadArguments(
                    f"DataTypeTime64 scale {precision} is too large, maximum is 9."
                )
            if self.peek() == ")":
                return Time64(precision)
        raise errors.IllegalTypeOfArgument(
            f"Specifying a time zone for the type {name} is not allowed."
        )

    def _checked(self, name: str, inner: DataType, refused: tuple[type[DataType], ...]) -> DataType:
        """Return `inner` unchanged. Raises IllegalTypeOfArgument if it is of a class in `refused` and so cannot be
        inside the type `name`."""
        if isinstance(inner, refused):
            raise errors.IllegalTypeOfArgument(f"The type {inner} cannot be inside of {name}.")
        return inner

    def _digits(self) -> tuple[int, int]:
        """Parse the precision and the scale, by default 0, of a Decimal. Raises IllegalTypeOfArgument for a text, and
        NumberOfArgumentsDoesntMatch if anything follows."""
        if self.peek() == "'":
            raise errors.IllegalTypeOfArgument("The precision of a Decimal is a number.")
        precision = self.integer()
        scale = self.integer() if self.take(",") else 0
        if self.peek() == ",":
            raise errors.NumberOfArgumentsDoesntMatch("A Decimal has a precision and a scale.")
        return precision, scale

    def _decimal(self, precision: int, scale: int) -> Decimal:
        """Return the Decimal; raise ArgumentOutOfBound for an impossible precision or scale."""
        if not 1 <= precision <= 76 or not 0 <= scale <= precision:
            raise errors.ArgumentOutOfBound(
                f"Decimal({precision}, {scale}): precision is 1 to 76, scale 0 to the precision."
            )
        return Decimal(precision, scale)

    def _tuple(self) -> DataType:
        """Parse the elements of a Tuple; raise BadArguments if only some of them have names."""
        names: list[str] = []
        elements: list[DataType] = []
        if self.peek() == ")":
            return Tuple(())
        while True:
            start = self.at
            word = self.word()
            follows = self.peek()
            if follows and follows not in "(,)":
                names.append(word)
                elements.append(self.parse())
            else:
                self.at = start
                elements.append(self.parse())
            if not self.take(","):
                break
        if len(set(names)) < len(names):
            raise errors.DuplicateColumn(
                f"Names of the elements of a tuple must differ: {self.text}"
            )
        if names and len(names) != len(elements):
            raise errors.BadArguments(
                f"Either all or no elements of a tuple have names: {self.text}"
            )
        return Tuple(tuple(elements), tuple(names))

    def _variant(self) -> DataType:
        """Parse the alternatives of a Variant; raise BadArguments without any, and for one that may be
        NULL or is a Variant."""
        alternatives: list[DataType] = []
        while self.peek() != ")":
            alternative = self.parse()
            if isinstance(alternative, Variant):
                raise errors.BadArguments("A Variant cannot be inside of a Variant.")
            if is_nullable(alternative) and not isinstance(alternative, Nothing):
                raise errors.BadArguments(
                    f"The type {alternative} cannot be inside of Variant: every Variant may be NULL."
                )
            alternatives.append(alternative)
            if not self.take(","):
                break
        variant = variant_of([t for t in alternatives if not isinstance(t, Nothing)])
        if not alternatives or len(variant.alternatives) > ALTERNATIVES_MAX:
            raise errors.BadArguments(f"A Variant has 1 to {ALTERNATIVES_MAX} types: {self.text}")
        return variant

    def _nested(self) -> DataType:
        """Parse the elements of a Nested; raise SyntaxError if one has no name."""
        elements = self._tuple()
        if not isinstance(elements, Tuple) or not elements.names:
            raise errors.SyntaxError(f"Each element of a Nested has a name: {self.text}")
        return Nested(elements)

    def _enum_elements(self) -> list[tuple[str, int | None]]:
        """Parse the elements of an Enum, up to the closing bracket: texts, with or without numbers.

        Raises UnexpectedAstStructure for anything else.
        """
        elements: list[tuple[str, int | None]] = []
        while self.peek() != ")":
            if self.peek() != "'":
                raise errors.UnexpectedAstStructure(
                    f"Elements of an Enum have the form 'text' = number or 'text': {self.text}"
                )
            text = self.quoted()
            number = self._signed() if self.take("=") and self.peek() != "'" else None
            if self.peek() not in (",", ")"):
                raise errors.UnexpectedAstStructure(f"The number of {text!r} is no integer.")
            elements.append((text, number))
            if not self.take(","):
                break
        return elements

    def _signed(self) -> int:
        """Parse an integer with an optional sign; raise SyntaxError for another word."""
        sign = -1 if self.take("-") else 1
        return sign * self.integer()

    def quoted(self) -> str:
        """Parse a quoted text and return it without quotes and escapes.

        Raises SyntaxError if the closing quote is missing.
        """
        match = _QUOTED.match(self.text, self.at)
        if match is None:
            raise errors.SyntaxError(
                f"The quote at character {self.at + 1} of type {self.text!r} is not closed."
            )
        self.at = match.end()
        return _ESCAPED.sub(lambda m: _LETTERS.get(m[0][1], m[0][1]), match[1])

    def _aggregate(self) -> DataType:
        """Parse the arguments of an AggregateFunction: `name[(parameters)][, types…]`."""
        function = self.word()
        parameters: list[str] = []
        if self.take("("):
            while not self.take(")"):
                parameters.append(self._literal())
                self.take(",")
        arguments: list[DataType] = []
        while self.take(","):
            arguments.append(self.parse())
        if function.startswith("median"):  # the one alias of a function with combinators
            function = "quantile" + function.removeprefix("median")
        state = self.state_of(function, tuple(parameters), tuple(arguments))
        return AggregateFunction(function, tuple(parameters), tuple(arguments), state)

    def _unknown(self, name: str) -> errors.UnknownType:
        """Return the error for an unknown type name; it says so if ClickHouse has the type but olapdb does not."""
        if name in _UNSUPPORTED:
            return errors.UnknownType(
                f"The type {name} is ClickHouse's, but olapdb does not have it.",
                hint=_UNSUPPORTED[name],
            )
        within = "" if self.text.strip() == name else f" in {self.text!r}"
        return errors.UnknownType(
            f"Unknown data type {name!r}{within}.", hint=families.similar_types(name)
        )

    # --- characters

    def _skip(self) -> None:
        """Skip whitespace."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def peek(self) -> str:
        """Skip whitespace, and a comma behind the last argument of a list, and return the next character, "" at the
        end."""
        self._skip()
        if self.text[self.at : self.at + 1] == "," and _TRAILING_COMMA.match(self.text, self.at):
            behind = self.at - 1
            while behind >= 0 and self.text[behind].isspace():
                behind -= 1
            if behind >= 0 and self.text[behind] not in "(,":
                self.at += 1
                self._skip()
        return self.text[self.at : self.at + 1]

    def take(self, symbol: str) -> bool:
        """Skip the next character if it is `symbol`, after whitespace; return whether it was."""
        if self.peek() == symbol:
            self.at += 1
            return True
        return False

    def _expect(self, symbol: str) -> None:
        """Skip whitespace and the next character. Raises SyntaxError unless the character is `symbol`."""
        if not self.take(symbol):
            raise errors.SyntaxError(
                f"Expected {symbol!r} at character {self.at + 1} of type {self.text!r}."
            )

    def expect_end(self) -> None:
        """Raise SyntaxError if any text follows the type."""
        if self.peek():
            raise errors.SyntaxError(
                f"Unexpected {self.text[self.at :]!r} after the type in {self.text!r}."
            )

    def _peek_word(self) -> str:
        """Return the next word without skipping it; "" if the next character is no letter."""
        start = self.at
        self._skip()
        word = self.word() if self.peek().isalpha() else ""
        self.at = start
        return word

    def word(self) -> str:
        """Return the next word, plain or in backquotes, and skip it; raise SyntaxError if there is
        none.
        """
        self._skip()
        if self.peek() == "`":
            end = self.text.find("`", self.at + 1)
            if end < 0:
                raise errors.SyntaxError(
                    f"The backquote at character {self.at + 1} of type {self.text!r} is not closed."
                )
            word, self.at = self.text[self.at + 1 : end], end + 1
            return word
        start = self.at
        while self.at < len(self.text) and (
            self.text[self.at].isalnum() or self.text[self.at] == "_"
        ):
            self.at += 1
        if start == self.at:
            raise errors.SyntaxError(
                f"Expected a type name at character {start + 1} of {self.text!r}."
            )
        return self.text[start : self.at]

    def integer(self) -> int:
        """Parse an unsigned integer; raise SyntaxError for another word."""
        word = self.word()
        if not word.isdigit():
            raise errors.SyntaxError(f"Expected a number, found {word!r} in type {self.text!r}.")
        return int(word)

    def _string(self) -> str:
        """Parse a quoted string and return its text; raise SyntaxError for another literal."""
        literal = self._literal()
        if not literal.startswith("'"):
            raise errors.SyntaxError(
                f"Expected a quoted string, found {literal} in type {self.text!r}."
            )
        return literal[1:-1]

    def _literal(self) -> str:
        """Return the next literal as written, quotes and brackets included, and skip it."""
        self._skip()
        start = self.at
        if self.take("["):
            elements: list[str] = []
            while self.peek() not in ("]", ""):
                elements.append(self._literal())
                self.take(",")
            self._expect("]")
            return f"[{', '.join(elements)}]"
        if self.take("'"):
            self.at = self.text.index("'", self.at) + 1
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",()] ":
                self.at += 1
        return self.text[start : self.at]

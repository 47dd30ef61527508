"""A reader of functional expressions (`plus(a, 1)`), evaluated by olapdb's functions alone.

It stands in for the SQL front, so that functions are compared with the oracle without it; the
same text is valid ClickHouse SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from olapdb import functions
from olapdb.functions import Argument, Column, Environment
from olapdb.functions.kernels import columns
from olapdb.types import DataType

_TOKEN = re.compile(r"\s*(?:(\d+\.\d+|\d+)|'((?:[^'\\]|\\.)*)'|([A-Za-z_]\w*)|([(),\[\]-]))")
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0"}


@dataclass(frozen=True)
class Value:
    """A column with its type; a pa.Scalar is a constant."""

    type: DataType
    column: Column

    @property
    def argument(self) -> Argument:
        """Return the value as an argument of a function, with its constant if it is one."""
        is_constant = isinstance(self.column, pa.Scalar)
        return Argument(self.type, self.column if is_constant else None)


class Reader:
    """A parser that evaluates the expression while it reads."""

    def __init__(
        self, table: Mapping[str, Value], rows: int, environment: Environment | None = None
    ) -> None:
        self.table, self.rows = table, rows
        self.environment = environment or Environment()

    def evaluate(self, text: str) -> Value:
        """Return the value of a whole expression; AssertionError if text is left over."""
        self.tokens = [m.groups() for m in _TOKEN.finditer(text)]
        self.at = 0
        value = self._expression()
        assert self.at == len(self.tokens), f"not read to its end: {text}"
        return value

    def _take(self, symbol: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at][3] == symbol:
            self.at += 1
            return True
        return False

    def _expression(self) -> Value:
        negative = self._take("-")
        if self._take("["):
            return self.call("array", self._list("]"))
        number, string, word, _ = self.tokens[self.at]
        self.at += 1
        if number is not None:
            value: int | float = float(number) if "." in number else int(number)
            return self._literal(-value if negative else value)
        if string is not None:
            return self._literal(
                re.sub(r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group(1)), string)
            )
        assert word is not None
        if self._take("("):
            return self.call(word, self._list(")"))
        constants = {
            "NULL": None,
            "true": True,
            "false": False,
            "nan": float("nan"),
            "inf": float("inf"),
        }
        return self._literal(constants[word]) if word in constants else self.table[word]

    def _list(self, closing: str) -> list[Value]:
        found: list[Value] = []
        while not self._take(closing):
            found.append(self._expression())
            self._take(",")
        return found

    def _literal(self, value: bool | int | float | str | None) -> Value:
        data_type = functions.literal_type(value, "")
        return Value(data_type, functions.constant(value, data_type))

    def call(self, name: str, values: list[Value]) -> Value:
        """Return the scalar function's result, computed by its kernel."""
        call = functions.resolve_scalar(name, [v.argument for v in values])
        made = call.kernel([v.column for v in values], self.rows, self.environment)
        return Value(call.type, made)

    def shown(self, text: str) -> tuple[str, list[str | None]]:
        """Evaluate `text`; return its type name and the printed values, a constant repeated for
        every row."""
        value = self.evaluate(text)
        array = value.column
        if isinstance(array, pa.Scalar):
            printed = functions.display(columns.single(array), value.type)
            return value.type.name, printed * self.rows
        assert array.type == value.type.arrow, f"{text}: {array.type} is not {value.type}"
        assert len(array) == self.rows, f"{text}: {len(array)} rows"
        array.validate()
        return value.type.name, functions.display(array, value.type)

"""Core's operators, aggregates and hints that ClickHouse writes as functions or clauses of its own."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exc
from sqlalchemy import types as sqltypes
from sqlalchemy.sql import operators
from sqlalchemy.sql.compiler import OPERATORS, SQLCompiler
from sqlalchemy.sql.elements import CollectionAggregate

_REGEXP_FLAGS = frozenset("ims")
"""The flags of a regular expression: without case, `^` and `$` at each line, `.` for line ends too."""
_MOMENTS = (sqltypes.Date, sqltypes.DateTime)
_SHIFTED = {sqltypes.Interval: "toIntervalMicrosecond({})", sqltypes.Date: "toDateTime64({}, 6)"}
"""How the sides of a sum of a moment and an Interval are written."""


class OperatorCompiler(SQLCompiler):
    """A compiler of Core's operators where ClickHouse has no operator for them."""

    # --- bits

    def visit_bitwise_and_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._called("bitAnd", binary, **kw)

    def visit_bitwise_or_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._called("bitOr", binary, **kw)

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._called("bitXor", binary, **kw)

    def visit_bitwise_lshift_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._called("bitShiftLeft", binary, **kw)

    def visit_bitwise_rshift_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._called("bitShiftRight", binary, **kw)

    def visit_bitwise_not_op_unary_operator(self, unary: Any, operator: Any, **kw: Any) -> str:
        return f"bitNot({self.process(unary.element, **kw)})"

    def _called(self, function: str, binary: Any, **kw: Any) -> str:
        """Return a call of the function with both operands as arguments."""
        return f"{function}({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"

    # --- texts

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Compile a regular expression match as `match(text, pattern)`."""
        pattern = self._pattern(binary.right, binary.modifiers["flags"], **kw)
        return f"match({self.process(binary.left, **kw)}, {pattern})"

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **kw)}"

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Compile a replacement of every match, as in MySQL and Oracle."""
        pattern, replacement = binary.right.clauses
        text = self.process(binary.left, **kw)
        with_flags = self._pattern(pattern, binary.modifiers["flags"], **kw)
        return f"replaceRegexpAll({text}, {with_flags}, {self.process(replacement, **kw)})"

    def _pattern(self, pattern: Any, flags: str | None, **kw: Any) -> str:
        """Return the pattern with its flags before it. Raise CompileError for unknown flags."""
        text: str = self.process(pattern, **kw)
        if not flags:
            return text
        if not _REGEXP_FLAGS.issuperset(flags):
            raise exc.CompileError(
                f"The flags of a regular expression are i, m and s, not {flags!r}."
            )
        return f"concat('(?{flags})', {text})"

    def visit_collation(self, element: Any, **kw: Any) -> str:
        """Return the name of a collation as a string literal."""
        return self.render_literal_value(element.collation, sqltypes.STRINGTYPE)

    # --- comparisons

    def visit_between_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        if not binary.modifiers.get("symmetric", False):
            return str(super().visit_between_op_binary(binary, operator, **kw))  # type: ignore[no-untyped-call]
        return self._between_either("BETWEEN", binary, **kw)

    def visit_not_between_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        if not binary.modifiers.get("symmetric", False):
            return str(super().visit_not_between_op_binary(binary, operator, **kw))  # type: ignore[no-untyped-call]
        return self._between_either("NOT BETWEEN", binary, **kw)

    def _between_either(self, word: str, binary: Any, **kw: Any) -> str:
        """Compile BETWEEN SYMMETRIC, whose bounds come in either order; `word` is BETWEEN or NOT
        BETWEEN."""
        left = self.process(binary.left, **kw)
        first, last = (self.process(clause, **kw) for clause in binary.right.clauses)
        return f"{left} {word} least({first}, {last}) AND greatest({first}, {last})"

    def visit_binary(self, binary: Any, *arguments: Any, **kw: Any) -> str:
        """Compile a comparison with `any_(array)` or `all_(array)` as arrayExists or arrayAll; any
        other binary expression as usual."""
        right = binary.right
        of_array = isinstance(right, CollectionAggregate) and isinstance(
            right.element.type, sqltypes.ARRAY
        )
        if not of_array:
            return str(super().visit_binary(binary, *arguments, **kw))  # type: ignore[no-untyped-call]
        function = "arrayExists" if right.operator is operators.any_op else "arrayAll"
        left, array = self.process(binary.left), self.process(right.element)
        return f"{function}(_element -> {left}{OPERATORS[binary.operator]}_element, {array})"

    # --- elements of arrays and JSON

    def visit_getitem_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Compile an element of an array, or a slice of it. Both count from 1; a slice includes its
        last position."""
        array = self.process(binary.left, **kw)
        if isinstance(binary.right.type, sqltypes.NullType) and hasattr(binary.right, "start"):
            start, stop = (
                self.process(side, **kw) for side in (binary.right.start, binary.right.stop)
            )
            return f"arraySlice({array}, {start}, {stop} - {start} + 1)"
        return f"{array}[{self.process(binary.right, **kw)}]"

    def visit_json_getitem_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Compile a member or an element of a JSON text; NULL where there is none."""
        document = self.process(binary.left, **kw)
        place = self.process(binary.right, **(kw | {"literal_execute": True}))
        if binary.type._type_affinity is sqltypes.JSON:
            return f"nullIf(JSONExtractRaw({document}, {place}), '')"
        whole = binary.type._type_affinity is sqltypes.Integer
        name = "Int64" if whole else self.dialect.type_compiler_instance.process(binary.type)
        as_text = self.render_literal_value(f"Nullable({name})", sqltypes.STRINGTYPE)
        return f"JSONExtract({document}, {place}, {as_text})"

    visit_json_path_getitem_op_binary = visit_json_getitem_op_binary

    # --- moments and intervals

    def visit_add_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._shifted(binary, operator, **kw)

    def visit_sub_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Compile a difference; that of two moments is microseconds, as an Interval is stored."""
        left, right = binary.left.type._type_affinity, binary.right.type._type_affinity
        if left in _MOMENTS and right in _MOMENTS and sqltypes.DateTime in (left, right):
            sides = (self.process(side, **kw) for side in (binary.left, binary.right))
            ticks = (f"toUnixTimestamp64Micro(toDateTime64({side}, 6))" for side in sides)
            return f"({' - '.join(ticks)})"
        return self._shifted(binary, operator, **kw)

    def _shifted(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Compile a sum or difference. Beside a date or time an Interval becomes an interval of
        ClickHouse."""
        affinities = [side.type._type_affinity for side in (binary.left, binary.right)]
        moves = sqltypes.Interval in affinities and any(a in _MOMENTS for a in affinities)
        if not moves:
            return str(self._generate_generic_binary(binary, OPERATORS[operator], **kw))
        sides = [
            _SHIFTED.get(affinity, "{}").format(self.process(side, **kw))
            for side, affinity in zip((binary.left, binary.right), affinities, strict=True)
        ]
        return f"({OPERATORS[operator].join(sides)})"

    # --- casts and aggregates

    def visit_try_cast(self, cast: Any, **kw: Any) -> str:
        """Compile a cast that gives NULL where a value does not fit."""
        name = self.dialect.type_compiler_instance.process(cast.type)
        as_text = self.render_literal_value(name, sqltypes.STRINGTYPE)
        return f"accurateCastOrNull({self.process(cast.clause, **kw)}, {as_text})"

    def visit_aggregate_strings_func(self, fn: Any, **kw: Any) -> str:
        """Compile the texts of a group, joined by a separator; NULLs are left out."""
        kw.pop("use_function_name", None)
        text, separator = (self.process(clause, **kw) for clause in fn.clauses)
        return f"arrayStringConcat(groupArray({text}), {separator})"

    def visit_aggregateorderby(self, aggregateorderby: Any, **kw: Any) -> str:
        """Raise CompileError: ClickHouse's aggregates have no ORDER BY."""
        raise exc.CompileError(
            "ClickHouse has no ORDER BY inside of an aggregate: sort its array, as in "
            "func.arraySort(func.groupArray(x))."
        )

    def visit_withingroup(self, withingroup: Any, **kw: Any) -> str:
        """Compile percentile_cont, percentile_disc and mode of a group.

        Raises CompileError for other functions and for several keys."""
        name = withingroup.element.name.lower()
        keys = list(withingroup.order_by)
        if name not in ("percentile_cont", "percentile_disc", "mode") or len(keys) != 1:
            raise exc.CompileError(
                "WITHIN GROUP (ORDER BY x) is there for percentile_cont, percentile_disc and mode, with one key."
            )
        key = keys[0]
        descends = getattr(key, "modifier", None) is operators.desc_op
        value = self.process(key.element if hasattr(key, "modifier") else key, **kw)
        if name == "mode":
            return f"topK(1)({value})[1]"
        level = self.process(*withingroup.element.clauses, **(kw | {"literal_execute": True}))
        if name == "percentile_cont":
            return f"quantileExactInclusive({f'1 - {level}' if descends else level})({value})"
        in_order = f"{'arrayReverseSort' if descends else 'arraySort'}(groupArray({value}))"
        return f"{in_order}[greatest(1, toUInt64(ceil({level} * count({value}))))]"

    def visit_random_func(self, fn: Any, **kw: Any) -> str:
        """Compile random() as rand(), a UInt32."""
        return "rand()"

    # --- clauses

    def get_select_precolumns(self, select: Any, **kw: Any) -> str:
        """Return DISTINCT, or DISTINCT ON with its columns."""
        if not select._distinct_on:
            return "DISTINCT " if select._distinct else ""
        columns = ", ".join(self.process(column, **kw) for column in select._distinct_on)
        return f"DISTINCT ON ({columns}) "

    def get_from_hint_text(self, table: Any, text: str | None) -> str | None:
        """Return the text of `with_hint(table, text)`, such as FINAL or SAMPLE 0.1, which follows
        the table in FROM."""
        return text

    def fetch_clause(self, select: Any, *arguments: Any, **kw: Any) -> str:
        """Compile FETCH FIRST n ROWS; raise CompileError for FETCH … PERCENT."""
        if select._fetch_clause_options and select._fetch_clause_options["percent"]:
            raise exc.CompileError(
                "FETCH … PERCENT does not exist: count the rows, then LIMIT them."
            )
        text = super().fetch_clause(select, *arguments, **kw)  # type: ignore[no-untyped-call]
        return str(text)

    def visit_tablesample(self, tablesample: Any, asfrom: bool = False, **kw: Any) -> str:
        """Raise CompileError: a table is sampled by its sampling key."""
        raise exc.CompileError(
            "TABLESAMPLE does not exist: select(…).with_hint(table, 'SAMPLE 0.1') reads a tenth of the "
            "rows of a table with SAMPLE BY."
        )

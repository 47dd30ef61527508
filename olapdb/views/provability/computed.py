"""Computations of the target: DEFAULT and MATERIALIZED columns, PARTITION BY, TTL, CHECK.

The target computes them from the rows of one block, before merges join these with other rows. So in
a merging target they may depend only on what all rows of one ORDER BY have in common: its columns.
For example, `n > 5` of two rows of 3 is not `n > 5` of their sum.

    basis    the columns that an expression is computed from, through other defaults, down to those
             that the query gives
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain

from olapdb.engine.combine import summed_columns
from olapdb.engine.expiry import rule_expressions, ttl_rules
from olapdb.engine.layout import TableLayout
from olapdb.model.schema import Column
from olapdb.plan.expressions import Constant, Expression, columns_of, walk
from olapdb.records import dataclass
from olapdb.sql.format import to_sql
from olapdb.types import AggregateFunction, SimpleAggregateFunction, has_floats
from olapdb.views.provability.expressions import bound_default, calls_text, volatile_names
from olapdb.views.provability.judgement import (
    JudgedItem,
    allowed,
    provable_item,
    refused,
    unproven_item,
)
from olapdb.views.provability.parts import BoundDefinition
from olapdb.views.provability.rounding import rounded_outputs, rounding_problem

_IDEMPOTENT = frozenset(
    (
        "any",
        "anyLast",
        "min",
        "max",
        "groupBitAnd",
        "groupBitOr",
        "groupUniqArrayArray",
        "minMap",
        "maxMap",
    )
)
"""Functions that make of equal values that value."""


def computed_items(parts: BoundDefinition) -> Iterator[JudgedItem]:
    """Yield items about what the target computes; none if it computes nothing."""
    computed = _Computed(parts)
    yield from computed.columns()
    yield from computed.constraints()
    yield from computed.values_that_expire()
    yield from computed.rounded_values()
    if parts.target.engine.merges_states:
        items = chain(computed.partitions(), computed.retention())
        yield from map(allowed, items) if parts.target.engine.keeps_last_values else items


def keeps_equal_values(layout: TableLayout, column: Column, *, grouped: bool) -> bool:
    """Return whether merging equal values of the column gives that value. `grouped`: the view has a
    GROUP BY, so that all rows of one ORDER BY have the same value."""
    if isinstance(column.type, AggregateFunction):
        return False
    if isinstance(column.type, SimpleAggregateFunction):
        return grouped and column.type.function in _IDEMPOTENT
    return column.name not in {summed.name for summed in summed_columns(layout)}


@dataclass(frozen=True)
class _Computed:
    """The rules about one definition's target."""

    parts: BoundDefinition

    @cached_property
    def query_columns(self) -> set[str]:
        """Return the columns that the query gives."""
        return set(self.parts.plan.names)

    @cached_property
    def grouped(self) -> bool:
        """Return whether a branch of the query has a GROUP BY."""
        return any(shape.aggregate is not None for _, shape in self.parts.branches)

    @cached_property
    def defaults(self) -> dict[str, Expression]:
        """Return the bound defaults, by column, of the columns that the query does not give."""
        target = self.parts.target
        return {
            column.name: self._bound(column.default)
            for column in target.columns
            if column.default and column.name not in self.query_columns
        }

    def _bound(self, text: str) -> Expression:
        """Return the bound expression of a default's text."""
        return bound_default(self.parts.target, text, self.parts.snapshot, self.parts.environment)

    def _input_columns(self, expression: Expression) -> set[str]:
        """Return the columns that the query gives and that the expression is computed from."""
        basis: set[str] = set()
        waiting, seen = list(columns_of(expression)), set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self.query_columns:
                basis.add(name)
            elif name in self.defaults:
                waiting += columns_of(self.defaults[name])
        return basis

    def _volatile(self, expression: Expression) -> tuple[str, ...]:
        """Return the volatile functions in the expression and in the defaults that it reads."""
        names = list(volatile_names(walk(expression)))
        waiting, seen = list(columns_of(expression)), set[str]()
        while waiting:
            name = waiting.pop()
            if name not in seen and name in self.defaults:
                seen.add(name)
                names += volatile_names(walk(self.defaults[name]))
                waiting += columns_of(self.defaults[name])
        return tuple(dict.fromkeys(names))

    def _outside_key(self, expression: Expression) -> str:
        """Return a column that the query gives, the expression reads, and ORDER BY lacks, or "". A merge
        keeps one of the floats 0 and -0, so one of these in ORDER BY does not decide an expression."""
        target = self.parts.target
        kept = {
            name
            for name in self.parts.layout.sorting_columns
            if (column := target.column(name)) is not None and not has_floats(column.type)
        }
        return min(self._input_columns(expression) - kept, default="")

    # --- columns

    def columns(self) -> Iterator[JudgedItem]:
        """Yield an item for each stored column with a default that the query does not give."""
        for column in self.parts.target.stored_columns:
            if column.name in self.query_columns:
                continue
            expression = self.defaults.get(column.name)
            if expression is None:
                continue  # the default of its type, which merges keep: 0, '', an empty state
            item = self._column(column, expression)
            keeps_last = self.parts.target.engine.keeps_last_values
            yield allowed(item) if keeps_last else item

    def _column(self, column: Column, expression: Expression) -> JudgedItem:
        """Return the item of a column that the target computes by `expression`."""
        name, table = f"column {column.name}", self.parts.target_name
        kind = column.default_kind
        names = self._volatile(expression)
        if names:
            return unproven_item(
                name,
                f"The {kind} of column {column.name} of {table}, {calls_text(names)}, gives another"
                " value when the rows are recomputed.",
                f"Give {column.name} in the query, from a column of the source.",
            )
        outside = self._outside_key(expression)
        if not self.parts.target.engine.merges_states:
            if outside and self.parts.merges:
                item = self._refused_column(column, outside)
                return item if self.grouped else allowed(item)
            return provable_item(name, f"Its {kind} is a function of its row.")
        if keeps_equal_values(self.parts.layout, column, grouped=self.grouped):
            if outside:
                return self._refused_column(column, outside)
            return provable_item(name, f"Its {kind} is the same for all rows of one ORDER BY.")
        if not self.grouped:
            return provable_item(
                name, f"Its {kind} is a function of its row, and merges with those of others."
            )
        if outside:
            return self._refused_column(column, outside)
        if isinstance(expression, Constant) and not expression.value.as_py():
            return provable_item(name, "It adds nothing.")
        return refused(
            name,
            f"each block adds the {kind} of column {column.name} of {table} once more.",
            f"Give {column.name} in the query, or leave out its {kind}.",
        )

    def _refused_column(self, column: Column, outside: str) -> JudgedItem:
        """Return the refusal of a default that reads `outside`, a column that merges change."""
        table, kind = self.parts.target_name, column.default_kind
        return refused(
            f"column {column.name}",
            f"the {kind} of column {column.name} of {table} is computed from {outside} of each"
            " block, before merges join it with that of others.",
            f"Make {column.name} an ALIAS, which is computed when it is read, or compute it from ORDER"
            " BY only.",
        )

    # --- the table

    def constraints(self) -> Iterator[JudgedItem]:
        """Yield an item for each CHECK constraint."""
        for constraint, text in self.parts.target.checks:
            outside, name = self._outside_key(self._bound(text)), f"constraint {constraint}"
            if outside and self.grouped and self.parts.target.engine.merges_states:
                item = refused(
                    name,
                    f"the CHECK {constraint} of {self.parts.target_name} looks at {outside} of one"
                    " block, before merges join it with that of others.",
                    f"Put the condition into the query that reads {self.parts.target_name}, or on"
                    f" {self.parts.source_name}.",
                )
                keeps_last = self.parts.target.engine.keeps_last_values
                yield allowed(item) if keeps_last else item
            else:
                yield provable_item(name, "It is asked of rows that come in, and changes none.")

    def partitions(self) -> Iterator[JudgedItem]:
        """Yield the judgement of each expression of PARTITION BY.

        An expression is refused if it reads a column outside of ORDER BY: rows that should merge
        would lie in several partitions."""
        for expression in self.parts.layout.partition_expressions:
            outside = self._outside_key(expression)
            if outside:
                yield refused(
                    "PARTITION BY",
                    f"PARTITION BY of {self.parts.target_name} looks at {outside}, which is not in its"
                    " ORDER BY: rows that should merge would lie in several partitions, and never do.",
                    f"Add {outside} to GROUP BY and ORDER BY, or partition by ORDER BY only.",
                )
            else:
                yield provable_item("PARTITION BY", "Rows of one ORDER BY lie in one partition.")

    def values_that_expire(self) -> Iterator[JudgedItem]:
        """Refuse a TTL that changes rows and leaves them: of a column, or with GROUP BY."""
        for column in self.parts.target.columns:
            if column.ttl:
                yield refused(
                    f"column {column.name}",
                    f"the TTL of column {column.name} of {self.parts.target_name} would change values"
                    " that the view has made.",
                    "Give the table a TTL over columns of ORDER BY, which removes whole rows.",
                )
        if any(rule.action == "GROUP BY" for rule in ttl_rules(self.parts.target)):
            yield refused(
                "TTL",
                f"the TTL of {self.parts.target_name} would group rows that the view has made.",
                "Give the table a TTL over columns of ORDER BY, which removes whole rows.",
            )

    def rounded_values(self) -> Iterator[JudgedItem]:
        """Yield an item for each computation that reads a sum of floats of the query: its last bits would decide
        a value, a partition, or when a row expires."""
        table, name = self.parts.target, self.parts.target_name
        computations = [
            (f"{column.default_kind} of {column.name} of {name}", self.defaults[column.name])
            for column in table.stored_columns
            if column.name in self.defaults
        ]
        computations += [
            (f"PARTITION BY of {name}", item) for item in self.parts.layout.partition_expressions
        ]
        computations += [
            (f"TTL of {name}", self._bound(to_sql(item)))
            for rule in ttl_rules(table)
            if rule.action == "DELETE"
            for item in rule_expressions(rule)
        ]
        rounded = rounded_outputs(self.parts.plan)
        for what, expression in computations:
            if self._input_columns(expression) & rounded:
                yield rounding_problem(what)

    def retention(self) -> Iterator[JudgedItem]:
        """Yield an item for each expression of a TTL that removes rows."""
        for rule in ttl_rules(self.parts.target):
            if rule.action != "DELETE":
                continue  # RECOMPRESS leaves the rows as they are
            for expression in rule_expressions(rule):
                outside = self._outside_key(self._bound(to_sql(expression)))
                if outside:
                    yield refused(
                        "TTL",
                        f"TTL of {self.parts.target_name} looks at {outside} of each part, which"
                        " merges join with that of others: what is left would depend on when.",
                        "Use columns of ORDER BY in TTL.",
                    )
                else:
                    yield provable_item("TTL", "Rows of one ORDER BY expire together.")

"""Expressions; a query in parentheses is one too."""

from __future__ import annotations

from dataclasses import field
from typing import Literal as Lit

from olapdb.records import dataclass
from olapdb.sql.nodes.base import Expression, Node, Query
from olapdb.types import DataType


@dataclass(frozen=True, slots=True)
class Identifier(Expression):
    """A column or alias, with its qualifiers: `a`, `t.a`, `db.t.a`."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A constant; `value` is None for NULL.

    `text` is that of a number, so that a Decimal context can read it exactly; "" otherwise.
    """

    value: bool | int | float | str | None
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Parameter(Expression):
    """A parameter: `?` and `$1` have an `index` from 0, `:name`, `%(name)s` and `$name` a `name`.

    `{name:Type}` has a `name` and a `type`.
    """

    name: str | None
    index: int | None
    type: DataType | None = None


@dataclass(frozen=True, slots=True)
class ArrayLiteral(Expression):
    """`[a, b]`"""

    elements: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class TupleLiteral(Expression):
    """`(a, b)` and `tuple(a, b)` as written with parentheses; one element only as `(a,)`."""

    elements: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Star(Expression):
    """`*`, `t.*`, `COLUMNS('regex')` or `COLUMNS(a, b)`, and what changes them.

    `names` are those of COLUMNS(a, b). `excluded` are the names of EXCEPT, `excluded_patterns` its
    regular expressions, `replaced` the items of REPLACE (expr AS name). `strict`: EXCEPT or REPLACE
    STRICT. `applied` are the functions of APPLY in their order; a name is a lambda that calls it.
    """

    qualifier: tuple[str, ...] = ()
    pattern: str | None = None
    excluded: tuple[str, ...] = ()
    replaced: tuple[Alias, ...] = ()
    names: tuple[str, ...] = ()
    excluded_patterns: tuple[str, ...] = ()
    strict: bool = False
    applied: tuple[Lambda, ...] = ()


@dataclass(frozen=True, slots=True)
class Fill(Node):
    """`WITH FILL [FROM start] [TO stop] [STEP step] [STALENESS staleness]`; None where left out."""

    start: Expression | None = None
    stop: Expression | None = None
    step: Expression | None = None
    staleness: Expression | None = None


@dataclass(frozen=True, slots=True)
class OrderItem(Node):
    """`expression [DESC] [NULLS FIRST | LAST] [COLLATE …] [WITH FILL …]`; None where left out."""

    expression: Expression
    descending: bool = False
    nulls_first: bool | None = None
    collate: str | None = None
    fill: Fill | None = None


@dataclass(frozen=True, slots=True)
class WindowSpec(Node):
    """`PARTITION BY … ORDER BY … frame`; `base` names a WINDOW that it extends."""

    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    frame_unit: Lit["ROWS", "RANGE", "GROUPS"] | None = None
    frame_start: FrameBound | None = None
    frame_end: FrameBound | None = None
    base: str | None = None


@dataclass(frozen=True, slots=True)
class FrameBound(Node):
    """`offset` None means UNBOUNDED; `direction` is CURRENT for CURRENT ROW."""

    direction: Lit["PRECEDING", "FOLLOWING", "CURRENT"]
    offset: Expression | None = None


@dataclass(frozen=True, slots=True)
class Function(Expression):
    """A call, an operator, anything that computes: operators have ClickHouse's function names.

    `a + b` is `plus(a, b)`, `a[1]` is `arrayElement(a, 1)`, `t.1` is `tupleElement(t, 1)`,
    `a AND b AND c` is one `and` of three, `x LIKE y` is `like`, `x IS NULL` is `isNull`,
    `x BETWEEN a AND b` is `and(greaterOrEquals(x, a), lessOrEquals(x, b))`, `-x` is `negate`,
    `CASE` is `multiIf` (or `caseWithExpression`), `CAST(x AS T)` and `x::T` are Cast.
    `count(*)` is `count()` with `star`.  `name` is spelt as written.  Parametric aggregates
    (`quantile(0.9)(x)`) have `parameters`.  `database` is that of a function which a user made
    there: `shop.price(x)`.
    """

    name: str
    arguments: tuple[Expression, ...] = ()
    parameters: tuple[Expression, ...] = ()
    distinct: bool = False
    filter: Expression | None = None
    over: WindowSpec | str | None = None
    nulls: Lit["RESPECT", "IGNORE"] | None = None
    database: str | None = None
    star: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """`CAST(expression AS type)`, `expression::type`.

    `written` is the type as the statement names it, "" for its own name. `literal` is the text of an
    array or a tuple of constants before `::`, which ClickHouse reads as text."""

    expression: Expression
    type: DataType
    written: str = field(default="", compare=False)
    literal: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class IntervalLiteral(Expression):
    """`INTERVAL expression unit`; unit as in types.Interval ("Day")."""

    expression: Expression
    unit: str


@dataclass(frozen=True, slots=True)
class Lambda(Expression):
    """`x -> body`, `(x, y) -> body`."""

    arguments: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class Subquery(Expression):
    """A query as a value: a scalar, or the right side of IN."""

    query: Query


@dataclass(frozen=True, slots=True)
class In(Expression):
    """`left [GLOBAL] [NOT] IN right`; GLOBAL means something on several servers only, and stays in
    the name of a column.

    `right` is a Subquery, a TupleLiteral, an ArrayLiteral, an Identifier naming a table, or another
    expression.
    """

    left: Expression
    right: Expression
    negated: bool = False
    is_global: bool = False

    @property
    def function(self) -> str:
        """Return the name of the function that the operator means, such as `notIn` or `globalIn`."""
        name = "notIn" if self.negated else "in"
        return f"global{name[0].upper()}{name[1:]}" if self.is_global else name


@dataclass(frozen=True, slots=True)
class Exists(Expression):
    """`EXISTS (query)`."""

    query: Query


@dataclass(frozen=True, slots=True)
class Alias(Expression):
    """`expression AS name`; allowed anywhere inside an expression, as in ClickHouse."""

    expression: Expression
    name: str

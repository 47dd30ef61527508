"""Typed expressions: the binder makes them from the syntax tree, the executor evaluates them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from olapdb.functions.arrays.lambdas import LambdaCall
from olapdb.functions.base import Aggregate, ScalarCall
from olapdb.functions.window_definitions import WindowFunction
from olapdb.records import dataclass
from olapdb.types import Array, DataType, Map, Tuple, plain

if TYPE_CHECKING:
    from olapdb.plan.nodes import Node


@dataclass(frozen=True, slots=True)
class Expression:
    """The base of all expressions; evaluation gives values of `type.arrow`."""

    type: DataType

    def children(self) -> tuple[Expression, ...]:
        """Return the direct subexpressions."""
        return ()


@dataclass(frozen=True, slots=True)
class ColumnRef(Expression):
    """A column of the child node's schema, by its unique name there."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """A value. For equality -0.0 differs from 0.0, since division distinguishes them, and NaN
    equals itself."""

    value: pa.Scalar

    def __eq__(self, other: object) -> bool:
        """Return whether type and value are equal; NaN equals NaN, -0.0 does not equal 0.0."""
        if not isinstance(other, Constant) or type(other) is not type(self):
            return NotImplemented
        if self.type != other.type:
            return False
        if not _holds_floats(self.value.type):
            return bool(self.value == other.value)
        return str(self.value) == str(other.value)


def _holds_floats(arrow: pa.DataType) -> bool:
    """Return whether a type is a float or contains one at any depth."""
    inner = [arrow.field(at).type for at in range(arrow.num_fields)]
    return pa.types.is_floating(arrow) or any(map(_holds_floats, inner))


@dataclass(frozen=True, slots=True)
class NameConstant(Constant):
    """The value of the virtual column `_table` or `_database`, named by `column`.

    A RENAME changes it, so a view that reads it is not provable."""

    column: str


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A scalar function; equality is by name, arguments and type."""

    name: str
    arguments: tuple[Expression, ...]
    function: ScalarCall = field(compare=False, repr=False)

    def children(self) -> tuple[Expression, ...]:
        """Return the arguments."""
        return self.arguments


@dataclass(frozen=True, slots=True)
class LambdaParameter(Expression):
    """A parameter in a lambda's body: a column of the rows that the body is evaluated on.

    The name contains the lambda's depth, so equal lambdas are equal expressions."""

    name: str


@dataclass(frozen=True, slots=True)
class LambdaFunction(Expression):
    """A function of `arguments` that evaluates `body` for their elements; see
    functions/arrays/lambdas.py.

    The body may read columns of the child: then it sees the values of the element's row."""

    name: str
    parameters: tuple[LambdaParameter, ...]
    body: Expression
    arguments: tuple[Expression, ...]
    function: LambdaCall = field(compare=False, repr=False)

    def children(self) -> tuple[Expression, ...]:
        """Return the lambda's body, then the arguments of the call."""
        return (self.body, *self.arguments)


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """The argument converted to `type`."""

    argument: Expression

    def children(self) -> tuple[Expression, ...]:
        """Return the argument."""
        return (self.argument,)


_new_number = itertools.count(1).__next__


@dataclass(frozen=True, slots=True)
class ScalarSubquery(Expression):
    """The value of a subquery, computed once before the enclosing plan runs; no row gives NULL."""

    plan: Node
    number: int = field(default_factory=_new_number, compare=False, repr=False)
    """Names the answer while a query runs. `replace` keeps it: a rewritten plan has one answer."""


@dataclass(frozen=True, slots=True)
class InValues(Expression):
    """`argument IN (constants)`: UInt8, or Nullable(UInt8) where the argument is nullable.

    A NULL argument gives NULL. `values` has the argument's Arrow type (a struct for a tuple), without
    nulls and duplicates."""

    argument: Expression
    values: pa.Array = field(compare=False)
    key: tuple[object, ...]
    """The values again, hashable, for equality."""
    negated: bool

    def children(self) -> tuple[Expression, ...]:
        """Return the left side of IN."""
        return (self.argument,)


@dataclass(frozen=True, slots=True)
class InSubquery(Expression):
    """`arguments IN (plan)`: the plan's columns match the arguments by position and Arrow type.

    The subquery runs once, before the enclosing plan. The type is that of InValues for one argument,
    UInt8 for the elements of a tuple. A tuple with a NULL is in no set; NULL in the set matches
    nothing."""

    arguments: tuple[Expression, ...]
    plan: Node
    negated: bool
    number: int = field(default_factory=_new_number, compare=False, repr=False)
    """As in ScalarSubquery."""

    def children(self) -> tuple[Expression, ...]:
        """Return the left side's expressions; the subquery's plan is no expression."""
        return self.arguments


@dataclass(frozen=True, slots=True)
class DictionaryShape:
    """What the columns of a dictionary's plan are: `keys` key columns, then the two bounds of its
    range if it is `ranged`, then attributes.

    `latest`: of several ranges that hold a value the last one counts, else the first. `parent` is
    the position of the parent's key, -1 without hierarchy; at the parent `root` a hierarchy ends.
    `depends` are (id, revision) of all objects that the plan was bound from. `prefixes`: the key is
    the text of a network, and an address is looked up in the longest that holds it. `polygons`: the key is polygons,
    and a point, two Float64, is looked up in the smallest that contains it."""

    name: str
    keys: int
    ranged: bool
    latest: bool
    parent: int
    root: object
    depends: tuple[tuple[str, int], ...]
    prefixes: bool = False
    polygons: bool = False


@dataclass(frozen=True, slots=True)
class DictionaryCall(Expression):
    """A value that a dictionary has for the key of a row; its rows are read once, before the
    enclosing plan runs.

    `kind` get: the attribute in column `attribute` of the plan; the value of `default` for a key
    that the dictionary lacks. has: whether it has the key. hierarchy, children, descendants: keys
    above or below the key, of `levels` (0: all) steps. root: the last key above. is_in: whether the key
    is below the last argument. keys: the keys whose attribute is the one argument. `arguments` are the key's columns, then the value in the range. A NULL argument gives
    NULL. Of several rows with one key the greatest counts."""

    kind: Literal["get", "has", "hierarchy", "root", "is_in", "children", "descendants", "keys"]
    arguments: tuple[Expression, ...]
    default: Expression | None
    plan: Node
    shape: DictionaryShape
    attribute: int = -1
    levels: int = 0
    number: int = field(default_factory=_new_number, compare=False, repr=False)
    """As in ScalarSubquery; calls of one dictionary in a query share it."""

    def children(self) -> tuple[Expression, ...]:
        """Return the arguments, then the default if there is one."""
        return (*self.arguments, *(() if self.default is None else (self.default,)))


@dataclass(frozen=True, slots=True)
class OuterColumn(Expression):
    """A value of the enclosing query's row in a correlated subquery, by a name of its own.

    No plan that runs contains one: the binder makes joins of correlated subqueries."""

    name: str


@dataclass(frozen=True, slots=True)
class CorrelatedSubquery(Expression):
    """A subquery that reads columns of the enclosing query, until the binder makes a join of it.

    `kind` scalar: its value; exists; in: `arguments IN (plan)`. `outer` are the values, over the
    enclosing query's rows, of the plan's OuterColumns named in `parameters`. No plan contains one."""

    kind: Literal["scalar", "exists", "in"]
    plan: Node
    arguments: tuple[Expression, ...]
    outer: tuple[Expression, ...]
    parameters: tuple[str, ...]
    negated: bool = False

    def children(self) -> tuple[Expression, ...]:
        """Return the left side of IN, then the outer values."""
        return (*self.arguments, *self.outer)


@dataclass(frozen=True, slots=True)
class Unnested(Expression):
    """arrayJoin(argument): an element of an array, until the binder replaces it by an ArrayJoin.

    No plan contains one."""

    argument: Expression

    def children(self) -> tuple[Expression, ...]:
        """Return the array."""
        return (self.argument,)


@dataclass(frozen=True, slots=True)
class FrameBound:
    """An end of a window's frame. `offset` None: CURRENT ROW for `kind` CURRENT, else UNBOUNDED.

    The offset is a number of rows, of groups of peers, or a distance in the ORDER BY value."""

    kind: Literal["PRECEDING", "CURRENT", "FOLLOWING"]
    offset: Constant | None = None


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """The frame of a window function: its unit and both ends."""

    unit: Literal["ROWS", "RANGE", "GROUPS"]
    start: FrameBound
    end: FrameBound


@dataclass(frozen=True, slots=True)
class WindowExpression(Expression):
    """`name(arguments) OVER (PARTITION BY … ORDER BY … frame)`, until the binder replaces it by a
    column of a Window node.

    `directions` has (descending, NULLS FIRST) of each expression of `order_by`. No plan contains
    such an expression."""

    name: str
    arguments: tuple[Expression, ...]
    partition_by: tuple[Expression, ...]
    order_by: tuple[Expression, ...]
    directions: tuple[tuple[bool, bool], ...]
    frame: WindowFrame
    function: WindowFunction | Aggregate = field(compare=False, repr=False)

    def children(self) -> tuple[Expression, ...]:
        """Return the arguments, the partition keys and the sort keys, in this order."""
        return (*self.arguments, *self.partition_by, *self.order_by)


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A column of a Window node; its arguments are expressions over the child."""

    name: str
    arguments: tuple[Expression, ...]
    frame: WindowFrame
    function: WindowFunction | Aggregate = field(compare=False, repr=False)

    @property
    def type(self) -> DataType:
        """The type of the result."""
        function = self.function
        return function.type if isinstance(function, WindowFunction) else function.result_type


def element_type(data_type: DataType) -> DataType | None:
    """Return the type of an Array's element, of a Map's (key, value) tuple; None for other types."""
    inner = plain(data_type)
    if isinstance(inner, Array):
        return inner.inner
    if isinstance(inner, Map):
        return Tuple((inner.key, inner.value), ("keys", "values"))
    return None


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate of an Aggregate node; its arguments are expressions over the child."""

    aggregate: Aggregate = field(compare=False, repr=False)
    name: str
    arguments: tuple[Expression, ...]

    @property
    def type(self) -> DataType:
        """The type of the result."""
        return self.aggregate.result_type


def with_children(expression: Expression, children: tuple[Expression, ...]) -> Expression:
    """Return the expression over other children, given in the order of `children()`."""
    match expression:
        case Call():
            return replace(expression, arguments=children)
        case LambdaFunction():
            return replace(expression, body=children[0], arguments=children[1:])
        case Cast() | InValues() | Unnested():
            return replace(expression, argument=children[0])
        case InSubquery():
            return replace(expression, arguments=children)
        case DictionaryCall():
            count = len(expression.arguments)
            default = children[count] if expression.default is not None else None
            return replace(expression, arguments=children[:count], default=default)
        case CorrelatedSubquery():
            count = len(expression.arguments)
            return replace(expression, arguments=children[:count], outer=children[count:])
        case WindowExpression():
            arguments, partition = len(expression.arguments), len(expression.partition_by)
            return replace(
                expression,
                arguments=children[:arguments],
                partition_by=children[arguments : arguments + partition],
                order_by=children[arguments + partition :],
            )
        case _:
            return expression


def transform(
    expression: Expression, change: Callable[[Expression], Expression | None]
) -> Expression:
    """Return the expression with each subexpression replaced by `change(it)`, outermost first.

    Where `change` returns None, the expression stays and its children are transformed."""
    changed = change(expression)
    if changed is not None:
        return changed
    children = expression.children()
    if not children:
        return expression
    changed_children = tuple(transform(child, change) for child in children)
    if all(new is old for new, old in zip(changed_children, children, strict=True)):
        return expression
    return with_children(expression, changed_children)


def substitute(expression: Expression, by_name: Mapping[str, Expression]) -> Expression:
    """Return the expression with columns replaced by the expressions that have their names."""

    def change(e: Expression) -> Expression | None:
        """Return the expression that a column stands for; None for another column and any other expression."""
        return by_name.get(e.name) if isinstance(e, ColumnRef) else None

    return transform(expression, change)


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and its descendants, outermost first, without plans of subqueries."""
    yield expression
    for child in expression.children():
        yield from walk(child)


def impure_calls(expression: Expression) -> Iterator[Call]:
    """Yield the calls in the expression whose value does not follow from their arguments alone: it
    depends on the moment, the session or chance."""
    return (e for e in walk(expression) if isinstance(e, Call) and e.function.volatility != "pure")


def is_pure(expression: Expression) -> bool:
    """Return whether the expression's value follows from the columns that it reads."""
    return next(impure_calls(expression), None) is None


def is_repeatable(expression: Expression) -> bool:
    """Return whether the expression may be evaluated elsewhere, or twice, within a query: now() may,
    rand() may not."""
    return all(call.function.volatility != "row" for call in impure_calls(expression))


def columns_of(expression: Expression) -> frozenset[str]:
    """Return the unique names of the columns that the expression reads."""
    return frozenset(e.name for e in walk(expression) if isinstance(e, ColumnRef))


def free_parameters(expression: Expression) -> frozenset[str]:
    """Return the unique names of parameters of enclosing lambdas that the expression reads."""
    match expression:
        case LambdaParameter(name=name):
            return frozenset((name,))
        case LambdaFunction(parameters=parameters):
            inside = frozenset().union(*map(free_parameters, expression.children()))
            return inside - {parameter.name for parameter in parameters}
        case _:
            return frozenset().union(*map(free_parameters, expression.children()))


def inputs_of(expression: Expression) -> frozenset[str]:
    """Return the names of all batch columns that evaluation reads: columns and lambda parameters."""
    return columns_of(expression) | free_parameters(expression)

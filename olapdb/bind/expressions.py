"""Expressions of one SELECT: names, functions, casts and subqueries, bound to typed expressions.

An identifier means, in this order: an alias of the same SELECT (unless that alias is being bound:
`x + 1 AS x` reads the column), a column of FROM, the leftmost table's first, an element of a tuple,
a constant alias of an enclosing query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from olapdb import errors, functions, types
from olapdb.bind import constants
from olapdb.bind.aggregates import refuse_previews, resolve_aggregate_call, texts_to_join
from olapdb.bind.constant_arguments import is_constant_column, require_constants, require_numbers
from olapdb.bind.contracts import BindContext, QueryBinder
from olapdb.bind.correlations import outer_value
from olapdb.bind.finished_states import takes_states
from olapdb.bind.grouping_sets import bind_grouping
from olapdb.bind.in_lists import bind_in
from olapdb.bind.lambdas import (
    bind_call_of_lambda,
    bind_lambda_function,
    lambda_of,
    named_lambda,
    refuse_parameters,
    with_lambda,
)
from olapdb.bind.names import bare_function, located, suggestion
from olapdb.bind.nested_values import nested_value
from olapdb.bind.parameters import bind_argument, bind_parameter
from olapdb.bind.relation import Relation
from olapdb.bind.scope import LambdaScopes
from olapdb.bind.special_calls import special_call
from olapdb.bind.stars import expand_star, untupled
from olapdb.bind.subcolumns import subcolumn
from olapdb.bind.subqueries import exists, scalar_subquery
from olapdb.bind.variants import MAY_MAKE_VARIANTS, refuse_new_variant, refuse_suspicious_target
from olapdb.bind.windows import bind_window, refuse_windows
from olapdb.functions import settings as function_settings
from olapdb.functions.windows import find_window
from olapdb.lazy import LazyModule
from olapdb.plan import expressions
from olapdb.sql import nodes as sql

if TYPE_CHECKING:
    from olapdb.bind import special_forms
else:
    special_forms = LazyModule("olapdb.bind.special_forms")

_OF_BLOCKS = {
    "neighbor": "lagInFrame(x, n) OVER (ORDER BY …) or leadInFrame",
    "runningAccumulate": "sum(x) OVER (ORDER BY …)",
    "runningDifference": "x - lagInFrame(x, 1, x) OVER (ORDER BY …)",
    "runningDifferenceStartingWithFirstValue": "x - lagInFrame(x, 1, 0) OVER (ORDER BY …)",
}
"""Functions of the rows before in a block, which ClickHouse deprecates, and what to write instead."""
_ROW_NUMBER = sql.Function(
    "toUInt64",
    (
        sql.Function(
            "minus", (sql.Function("row_number", over=sql.WindowSpec()), sql.Literal(1, "1"))
        ),
    ),
)
"""rowNumberInAllBlocks(): the position of each row among all that SELECT returns, from 0."""
_CASTS = frozenset({"cast", "_cast"})


class ExpressionBinder:
    """The binder of one SELECT's expressions over the relation of its FROM clause.

    `aliases` are those of the SELECT."""

    def __init__(
        self,
        queries: QueryBinder,
        relation: Relation,
        context: BindContext,
        aliases: Mapping[str, sql.Expression] | None = None,
    ) -> None:
        self.queries, self.relation, self.context = queries, relation, context
        self.aliases = aliases or {}
        self.environment = queries.scope.environment
        self.may_unnest = False
        """Whether arrayJoin() may be used: then the caller makes an ArrayJoin of each Unnested."""
        self.lambdas = LambdaScopes()
        self.windows: Mapping[str, sql.WindowSpec] = {}
        """The windows of this SELECT's WINDOW clause."""
        self.nullable_keys: Mapping[expressions.Expression, expressions.Expression] = {}
        """The nullable forms of the keys of grouping sets, for expressions over groups."""
        self._keys_within_keys = False
        """True if a key of grouping sets is a part of another one. An expression is then looked up among the keys as a
        whole, before its parts are."""
        self._binding: list[str] = []
        self._bound_aliases: dict[str, expressions.Expression] = {}

    def bind(self, node: sql.Expression) -> expressions.Expression:
        """Bind one expression. The caller refuses AggregateRefs in it where they are not allowed."""
        if self.nullable_keys and self._keys_within_keys:
            keys = self.nullable_keys
            with self._over_rows():
                key = keys.get(self._bind(node))
            if key is not None:
                return key
        return self.over_groups(self._bind(node))

    def over_groups(self, bound: expressions.Expression) -> expressions.Expression:
        """Return the nullable form of a key of grouping sets, see `use_nullable_keys`; others unchanged."""
        return self.nullable_keys.get(bound, bound) if self.nullable_keys else bound

    def use_nullable_keys(
        self, keys: Mapping[expressions.Expression, expressions.Expression]
    ) -> None:
        """Replace each group key by its nullable form in all later calls of `bind`.

        `keys` maps keys to these forms."""
        self.nullable_keys = keys
        self._keys_within_keys = any(
            part in keys for key in keys for part in expressions.walk(key) if part is not key
        )
        self._bound_aliases.clear()

    @contextmanager
    def _over_rows(self) -> Iterator[None]:
        """Give keys of grouping sets their form over the rows within the block."""
        groups = self.nullable_keys, self._bound_aliases
        self.nullable_keys, self._bound_aliases = {}, {}
        try:
            yield
        finally:
            self.nullable_keys, self._bound_aliases = groups

    def _bind(self, node: sql.Expression) -> expressions.Expression:
        """Bind a node by its type. Raises BadArguments for a star or lambda out of place."""
        match node:
            case sql.Identifier():
                return self._identifier(node)
            case sql.Literal():
                return constants.literal(node)
            case sql.Function():
                with located(node.position):
                    return self._function(node)
            case sql.Alias():
                return self._alias(node.name, node.expression)
            case sql.Cast():
                with located(node.position):
                    return special_forms.bind_cast(
                        self, node.expression, node.type, written=bool(node.written)
                    )
            case sql.Parameter():
                with located(node.position):
                    return self._parameter(node)
            case sql.ArrayLiteral(elements=elements):
                with located(node.position):
                    return special_forms.bind_array(self, elements)
            case sql.TupleLiteral(elements=elements):
                with located(node.position):
                    return special_forms.bind_tuple(self, elements)
            case sql.IntervalLiteral():
                with located(node.position):
                    return self.call(f"toInterval{node.unit}", (self.bind(node.expression),))
            case sql.In():
                with located(node.position):
                    return bind_in(self, node)
            case sql.Subquery():
                with located(node.position):
                    return scalar_subquery(self.queries, node.query, self.subquery_context())
            case sql.Exists():
                with located(node.position):
                    return exists(self.queries, node.query, self.subquery_context())
            case sql.Star():
                raise errors.BadArguments(
                    "A star must be a column of SELECT, or an argument.", position=node.position
                )
            case sql.Lambda():
                raise errors.BadArguments(
                    "A lambda (x -> …) is the first argument of a function such as arrayMap.",
                    position=node.position,
                )
            case _:
                raise errors.InternalError(
                    f"The binder does not know the node {type(node).__name__}."
                )

    def bind_all(self, items: Sequence[sql.Expression]) -> tuple[expressions.Expression, ...]:
        """Bind the expressions in order, a star as the columns that it selects, untuple as the elements.

        The parser has already removed the star of `count(*)`."""
        bound: list[expressions.Expression] = []
        for item in items:
            if isinstance(item, sql.Star):
                bound += [column.expression for column in expand_star(self, item)]
            elif (elements := untupled(self, item)) is not None:
                bound += [self.bind(element) for _, element in elements]
            else:
                bound.append(self.bind(item))
        return tuple(bound)

    def call(
        self, name: str, arguments: tuple[expressions.Expression, ...]
    ) -> expressions.Expression:
        """Return a call of a scalar function, folded where all arguments are constant."""
        if self.context.refuses_columns:
            require_constants(name, arguments)
            require_numbers(name, arguments)
            if name == "isConstant" and len(arguments) == 1 and is_constant_column(arguments[0]):
                return constants.unsigned_byte(1)
        given = [argument.type for argument in arguments]
        called = function_settings.name_with_settings(name, self.context.setting, given)
        bound = constants.call(called, arguments, self.environment)
        if name in MAY_MAKE_VARIANTS and not self.context.flag("use_variant_as_common_type"):
            refuse_new_variant(bound, arguments)
        return bound

    def cast(
        self, expression: expressions.Expression, target: types.DataType
    ) -> expressions.Expression:
        """Return the expression cast to `target`, unchanged if it has that type. A constant is
        converted now; if that fails, the error comes when the plan runs."""
        return constants.cast(expression, target, self.environment)

    @contextmanager
    def without_unnesting(self) -> Iterator[None]:
        """Refuse arrayJoin() while the returned manager is active."""
        before, self.may_unnest = self.may_unnest, False
        try:
            yield
        finally:
            self.may_unnest = before

    def subquery_context(self) -> BindContext:
        """Return the context of a subquery in an expression of this SELECT."""
        return self.context.correlated(self)

    # --- names

    def _parameter(self, node: sql.Parameter) -> expressions.Expression:
        """Return the value of a parameter: of the statement, or of the call of a view."""
        arguments = self.context.arguments
        if arguments is None or node.type is None or node.name is None:
            return bind_parameter(node, self.queries.scope)
        return bind_argument(node, arguments[node.name], self.environment)

    def _identifier(self, node: sql.Identifier) -> expressions.Expression:
        """Bind a name: what `lookup` finds here, else a constant of an outer query, else a function
        such as CURRENT_DATE that takes no parentheses.

        Raises UnknownIdentifier if there is neither."""
        expression = self.lookup(node.parts, node)
        if expression is not None:
            return expression
        with located(node.position):
            if (constant := self._from_outer(node.parts)) is not None:
                return constant
        if len(node.parts) == 1 and (called := bare_function(node.parts[0])) is not None:
            return self.bind(sql.Function(called, position=node.position))
        raise self._unknown(node)

    def lookup(
        self, parts: tuple[str, ...], node: sql.Identifier | None
    ) -> expressions.Expression | None:
        """Return the lambda parameter, alias, column or tuple element of this name, else None.

        An alias comes before a column, unless the setting `prefer_column_name_to_alias` is on."""
        if (parameter := self.lambdas.parameter(parts[0])) is not None:
            return subcolumn(self, parameter, parts[1:])
        steps: list[Callable[[], expressions.Expression | None]] = [
            lambda: self._usable_alias(parts[0]) if len(parts) == 1 else None,
            lambda: self._column(parts, node),
        ]
        if self.context.flag("prefer_column_name_to_alias"):
            steps.reverse()
        for step in steps:
            if (expression := step()) is not None:
                return expression
        part = self._tuple_element(parts, node) if len(parts) > 1 else None
        return part or nested_value(self, parts)

    def _column(
        self, parts: tuple[str, ...], node: sql.Identifier | None
    ) -> expressions.Expression | None:
        """Return the column of this name in FROM, None if there is none.

        Raises AmbiguousIdentifier if several tables have it, unless the setting
        `single_join_prefer_left_table` takes the first."""
        candidates = self.relation.candidates(parts)
        if not candidates:
            return None
        if len(candidates) > 1 and not self.context.flag("single_join_prefer_left_table"):
            tables = ", ".join(c.qualifier or "a subquery" for c in candidates)
            raise errors.AmbiguousIdentifier(
                f"The column {'.'.join(parts)!r} is in several tables: {tables}.",
                hint="Write the table before it.",
                position=node.position if node else None,
            )
        return candidates[0].use()

    def _tuple_element(
        self, parts: tuple[str, ...], node: sql.Identifier | None
    ) -> expressions.Expression | None:
        """Bind `t.a.b` as elements of a tuple, and `a.size0`, `m.keys` or `n.null` as parts of others.

        The longest name of a column or alias wins. None if no proper prefix of `parts` names one
        that has such parts."""
        for length in range(len(parts) - 1, 0, -1):
            base = self._usable_alias(parts[0]) if length == 1 else None
            base = base or self._column(parts[:length], node)
            part = None if base is None else subcolumn(self, base, parts[length:])
            if part is not None:
                return part
        return None

    def _usable_alias(self, name: str) -> expressions.Expression | None:
        """Bind the alias of this name, None if there is no such alias.

        Also None while the alias itself is being bound: then the name means a column."""
        if name not in self.aliases or name in self._binding:
            return None
        return self._alias(name, self.aliases[name])

    def _alias(self, name: str, expression: sql.Expression) -> expressions.Expression:
        """Bind the expression of an alias; cache the result unless inside an alias or lambda.

        There, the same text can mean something else."""
        outermost = not self._binding and not self.lambdas.depth
        if outermost and name in self._bound_aliases and self.aliases.get(name) is expression:
            return self._bound_aliases[name]
        self._binding.append(name)
        try:
            bound = self.bind(expression)
        finally:
            self._binding.pop()
        if outermost:
            self._bound_aliases[name] = bound
        return bound

    def _from_outer(self, parts: tuple[str, ...]) -> expressions.Expression | None:
        """Return the constant, or the value, of an enclosing query that the name means, else None.

        Raises NotSupportedError for a value that the subquery cannot get by a join."""
        outer = self.context.outer
        while outer is not None:
            expression = outer.lookup(parts, None)
            if expression is not None:
                return outer_value(self, outer, expression, ".".join(parts))
            outer = outer.context.outer
        return None

    def _unknown(self, node: sql.Identifier) -> errors.Error:
        """Return the error for an unknown name, with similar names as a hint."""
        name = ".".join(node.parts)
        if node.parts[0] in self._binding and len(node.parts) == 1:
            return errors.UnknownIdentifier(
                f"The alias {name!r} is defined by itself, and there is no column of that name.",
                position=node.position,
            )
        available = [c.name for c in self.relation.columns] + list(self.aliases)
        hint = suggestion(node.parts[-1], available)
        if len(node.parts) > 1 and not hint:
            hint = suggestion(name, [f"{c.qualifier}.{c.name}" for c in self.relation.columns])
        virtual = {c.name for c in self.relation.columns if not c.starred and c.name[:1] == "_"}
        own = [known for known in available if known not in virtual]
        if not hint and 0 < len(own) <= 12:
            hint = f"There are: {', '.join(own)}."
        if len(node.parts) == 1 and functions.is_listed(name):
            hint = f"The function is written {name}(). {hint}".rstrip()
        return errors.UnknownIdentifier(
            f"Unknown column or alias {name!r}"
            + (f" in {self.relation.label}." if self.relation.label else "."),
            hint=hint,
            position=node.position,
        )

    # --- calls

    def _function(self, node: sql.Function) -> expressions.Expression:
        """Bind a call by its kind: window, lambda, aggregate, special form, scalar.

        Raises NotSupportedError, DeprecatedFunction, UnknownFunction and BadArguments."""
        if node.over is not None:
            return self._window(node)
        self._refuse_function(node)
        if (bound_call := special_call(self, node)) is not None:
            return bound_call
        if node.name == "rowNumberInAllBlocks" and not node.arguments:
            return self.bind(_ROW_NUMBER)
        if (named := named_lambda(self, node.name)) is not None:
            return bind_call_of_lambda(self, node, named)
        python = self.queries.scope.python_function(node.database or "", node.name)
        if python is not None:
            arguments = self.bind_all(node.arguments)
            return constants.call_definition(python, arguments, self.environment)
        if node.database is not None:
            raise errors.UnknownFunction(
                f"Function {node.database}.{node.name} does not exist.",
                hint="system.functions lists the functions that users made.",
            )
        node = with_lambda(self, node)
        if node.arguments and (argument := lambda_of(self, node.arguments[0])) is not None:
            return bind_lambda_function(self, node, argument)
        if functions.is_scalar(node.name):
            return self._scalar(node)
        if find_window(node.name) is not None:
            raise errors.BadArguments(
                f"The function {node.name} can only be used as a window function.",
                hint=f"Write {node.name}(…) OVER (…).",
            )
        if functions.is_aggregate(node.name):
            return self._aggregate(node)
        return self._scalar(node)

    def _refuse_function(self, node: sql.Function) -> None:
        """Raise NotSupportedError for a function that olapdb refuses, and DeprecatedFunction for one
        of blocks without the setting that allows it."""
        if node.name.lower() == "untuple":
            raise errors.NotSupportedError("untuple is a column of SELECT, or arguments of a call.")
        allowed = "allow_deprecated_error_prone_window_functions"
        if node.name in _OF_BLOCKS and not self.context.flag(allowed):
            raise errors.DeprecatedFunction(
                f"The result of {node.name} depends on how rows are cut into blocks.",
                hint=f"Write {_OF_BLOCKS[node.name]}; or SET {allowed} = 1.",
                position=node.position,
            )

    def _scalar(self, node: sql.Function) -> expressions.Expression:
        """Bind a call of a scalar function, a special form among them. Raise what `_no_aggregate` says
        for what only aggregates take, UnknownFunction for an unknown name."""
        special = node.distinct or node.filter is not None or node.parameters or node.nulls
        if special and functions.is_scalar(node.name):
            raise _no_aggregate(node)
        folded = node.name.lower()
        if folded in _CASTS and len(node.arguments) == 2:
            return special_forms.bind_cast_function(self, node)
        if folded.startswith("accuratecast"):
            refuse_suspicious_target(node, self.context)
        if folded == "grouping":
            return bind_grouping(self.bind_all(node.arguments))
        if folded in ("arrayjoin", "unnest"):
            return special_forms.bind_array_join(self, node)
        if folded == "tuple":
            return special_forms.bind_tuple(self, node.arguments)
        if folded == "locate" and not self.context.flag(
            "function_locate_has_mysql_compatible_argument_order"
        ):
            return self.call("position", self.bind_all(node.arguments))
        if folded == "casewithexpression":
            return special_forms.bind_case(self, node)
        if folded in ("least", "greatest") and self.context.flag(
            "least_greatest_legacy_null_behavior"
        ):
            return special_forms.null_if_any(self, node)
        return self.call(node.name, self.bind_all(node.arguments))

    def _window(self, node: sql.Function) -> expressions.Expression:
        """Bind a call with OVER."""
        name, parameters, arguments = self._with_combinators(node)
        return bind_window(self, node, name, self.bind_all(arguments), self.bind_all(parameters))

    def _aggregate(self, node: sql.Function) -> expressions.Expression:
        """Bind an aggregate over the rows. Return an AggregateRef.

        Raises NotSupportedError for RESPECT NULLS where NULL has no place, IllegalAggregation for
        a window function in an argument."""
        name, parameter_nodes, arguments = self._with_combinators(node)
        if node.nulls == "RESPECT":
            name = functions.respecting_nulls(name) or ""
            if not name:
                raise errors.NotSupportedError(f"{node.name} does not support RESPECT NULLS.")
        elif node.nulls == "IGNORE":
            name = functions.ignoring_nulls(name)
        parameters = self.bind_all(parameter_nodes)
        with self._over_rows():  # an aggregate reads rows, not groups
            bound = self.bind_all(arguments)
        if takes_states(name) and bound:
            bound = (self._states_behind(arguments[0], bound[0]), *bound[1:])
        refuse_previews(name, self.context, node.position)
        reference = resolve_aggregate_call(
            name,
            parameters,
            bound,
            null_for_empty=self.context.flag("aggregate_functions_null_for_empty"),
        )
        refuse_parameters(reference.call)
        for argument in reference.call.arguments:
            refuse_windows(argument, f"the aggregate function {name}", node.position)
        return reference

    def _states_behind(
        self, node: sql.Expression, bound: expressions.Expression
    ) -> expressions.Expression:
        """Return the states of which an argument names the finished values; else the argument."""
        if not isinstance(node, sql.Identifier) or isinstance(bound.type, types.AggregateFunction):
            return bound
        column = self.relation.find(node.parts)
        if column is None or column.state is None or column.use() != bound:
            return bound
        return column.state() or bound

    def _with_combinators(
        self, node: sql.Function
    ) -> tuple[str, tuple[sql.Expression, ...], tuple[sql.Expression, ...]]:
        """Return the aggregate's name with DISTINCT and FILTER as combinators, its parameters and
        its arguments."""
        name, parameters, arguments = node.name, node.parameters, node.arguments
        distinct = node.distinct
        if name.lower() in ("countdistinct", "countdistinctif"):
            name, distinct = "count" + name[len("countDistinct") :], True
        if distinct and name.lower() in ("count", "countif"):
            counter = self.context.text("count_distinct_implementation")
            name = counter + name[len("count") :]
        elif distinct:
            name += "Distinct"
        if node.filter is not None:
            name, arguments = f"{name}If", (*arguments, node.filter)
        if functions.joins_texts(name):
            parameters, arguments = texts_to_join(name, parameters, arguments)
        return name, parameters, arguments


def bind_condition(
    binder: ExpressionBinder, node: sql.Expression, clause: str
) -> expressions.Expression:
    """Bind a predicate. Raises IllegalTypeOfColumnForFilter for a type that is no condition.

    An integer, a float, Bool and NULL are conditions. `clause` names the place in the message."""
    bound = binder.bind(node)
    kind = types.plain(bound.type)
    if not isinstance(kind, types.Nothing) and (
        not types.is_number(kind) or isinstance(kind, types.Decimal)
    ):
        raise errors.IllegalTypeOfColumnForFilter(
            f"The condition of {clause} has type {bound.type}; it must be an integer, a float or Bool.",
            position=node.position,
        )
    return bound


def _no_aggregate(node: sql.Function) -> errors.Error:
    """Return the error for a scalar function that is called as only aggregates are, by what the call
    has: FunctionCannotHaveParameters, SyntaxError for RESPECT NULLS, else UnknownFunction."""
    kind: type[errors.Error] = errors.UnknownFunction
    if node.nulls:
        kind = errors.SyntaxError
    elif node.parameters:
        kind = errors.FunctionCannotHaveParameters
    return kind(
        f"{node.name} is not an aggregate function: DISTINCT, FILTER, parameters and "
        "RESPECT NULLS have no meaning for it."
    )

"""`*`, `t.*` and `COLUMNS(…)`, with EXCEPT, REPLACE and APPLY, expanded into columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from olapdb.bind import constants
from olapdb.bind.contracts import Binder
from olapdb.bind.names import suggestion
from olapdb.bind.nested_values import joined_elements, nested_arrays
from olapdb.bind.relation import RelationColumn
from olapdb.bind.result_names import result_name, starred_name
from olapdb.bind.syntax import rewrite, walk
from olapdb.errors import (
    BadArguments,
    CannotCompileRegexp,
    NoSuchColumn,
    NoTuple,
    ProgrammingError,
    UnknownIdentifier,
)
from olapdb.plan.expressions import Expression
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.types import Array, Tuple, plain


@dataclass(frozen=True)
class StarColumn:
    """One column of a star: its result name, its expression, and the syntax that names it alone."""

    name: str
    expression: Expression
    syntax: sql.Expression


class _TupleElement(RelationColumn):
    """An element of the tuple `t` that `t.*` names; its qualifier is the tuple's name."""


def expand_star(binder: Binder, star: sql.Star) -> Iterator[StarColumn]:
    """Yield the columns of a star, bound, in the order of FROM.

    Raises UnknownIdentifier for an unknown table, NoSuchColumn for an unknown column of EXCEPT,
    REPLACE or COLUMNS."""
    replaced = {alias.name for alias in star.replaced}
    for column in starred_columns(binder, star):
        syntax = star_syntax(binder, star, column)
        if star.applied:
            yield StarColumn(result_name(binder, syntax), binder.bind(syntax), syntax)
        elif isinstance(syntax, sql.Identifier) and column.name not in replaced:
            yield StarColumn(
                star_column_name(binder, column), binder.over_groups(column.use()), syntax
            )
        else:
            yield StarColumn(star_column_name(binder, column), binder.bind(syntax), syntax)


def star_column_name(binder: Binder, column: RelationColumn) -> str:
    """Return the result name of a star's column: an element of a tuple has the tuple's name before its own."""
    if isinstance(column, _TupleElement):
        return f"{column.qualifier}.{column.name}"
    return starred_name(binder, column)


def star_syntax(binder: Binder, star: sql.Star, column: RelationColumn) -> sql.Expression:
    """Return the expression of one of a star's columns: its REPLACE, if any, inside the functions of
    APPLY."""
    replaced = (alias for alias in star.replaced if alias.name == column.name)
    alias = next(replaced, None)  # the first REPLACE of a column counts, as in ClickHouse
    syntax = identifier_of(binder, column, star) if alias is None else alias.expression
    for function in star.applied:
        syntax = _applied(function, syntax)
    return syntax


def _applied(function: sql.Lambda, argument: sql.Expression) -> sql.Expression:
    """Return the lambda's body with its argument replaced.

    An inner lambda whose parameters have names that the argument reads gets others."""
    name = function.arguments[0]
    taken = {part.parts[0] for part in walk(argument) if isinstance(part, sql.Identifier)}

    def change(node: sql.Node) -> sql.Node | None:
        """Return the argument for its name; an inner lambda of that name hides it."""
        if isinstance(node, sql.Identifier) and node.parts == (name,):
            return argument
        if not isinstance(node, sql.Lambda):
            return None
        if name in node.arguments:
            return node
        if taken.isdisjoint(node.arguments):
            return None
        fresh = _with_fresh_parameters(node, taken)
        return replace(fresh, body=rewrite(fresh.body, change))

    return rewrite(function.body, change)


def _with_fresh_parameters(function: sql.Lambda, taken: Collection[str]) -> sql.Lambda:
    """Return the same lambda with parameters of which none is `taken`."""
    names = {argument: f"{argument}'" for argument in function.arguments}
    while not names.keys().isdisjoint(names.values()) or set(taken) & set(names.values()):
        names = {argument: f"{fresh}'" for argument, fresh in names.items()}

    def rename(node: sql.Node) -> sql.Node | None:
        """Return an identifier of a parameter under its new name; an inner lambda may hide it."""
        if isinstance(node, sql.Identifier) and node.parts[0] in names:
            return replace(node, parts=(names[node.parts[0]], *node.parts[1:]))
        hides = isinstance(node, sql.Lambda) and not names.keys().isdisjoint(node.arguments)
        return node if hides else None

    return replace(function, arguments=tuple(names.values()), body=rewrite(function.body, rename))


def expand_arguments(binder: Binder, node: sql.Expression) -> sql.Expression:
    """Return the expression with each star and each untuple inside it written out, as several arguments of its
    call: `greatest(*)` is `greatest(a, b)`. A star or untuple that is the whole expression stays, as does an untuple
    in a lambda, whose parameters have no types yet."""

    def change(inner: sql.Node, *, in_lambda: bool = False) -> sql.Node | None:
        """Return a call, a tuple or an array with its arguments written out, a query unchanged; None for other nodes."""
        if isinstance(inner, sql.Query):
            return inner
        below = partial(change, in_lambda=True) if in_lambda else change
        match inner:
            case sql.Lambda():
                return replace(inner, body=rewrite(inner.body, partial(change, in_lambda=True)))
            case sql.Function(arguments=items) if _has_several(items, in_lambda):
                arguments = _written_out(binder, items, below, in_lambda)
                is_count = inner.name.lower() == "count" and not inner.distinct
                starred = is_count and any(isinstance(item, sql.Star) for item in items)
                return replace(inner, arguments=() if starred else arguments)
            case sql.TupleLiteral(elements=items) | sql.ArrayLiteral(elements=items) if (
                _has_several(items, in_lambda)
            ):
                return replace(inner, elements=_written_out(binder, items, below, in_lambda))
            case _:
                return None

    return rewrite(node, change)


def untupled(binder: Binder, node: sql.Expression) -> list[tuple[str, sql.Expression]] | None:
    """Return the elements of `untuple(t)` as (result name, syntax); None for any other expression.

    An alias names them `alias.1`, …. Raises NoTuple unless it is one tuple."""
    call = node.expression if isinstance(node, sql.Alias) else node
    if not isinstance(call, sql.Function) or call.name.lower() != "untuple":
        return None
    if len(call.arguments) != 1:
        raise NoTuple(f"untuple takes one tuple, {len(call.arguments)} given.")
    data_type = plain(binder.bind(call.arguments[0]).type)
    if not isinstance(data_type, Tuple):
        raise NoTuple(f"untuple takes a tuple, not {data_type}.")
    elements: list[tuple[str, sql.Expression]] = []
    for field in data_type.field_names:
        syntax = sql.Function("tupleElement", (call.arguments[0], sql.Literal(field)))
        alias = f"{node.name}.{field}" if isinstance(node, sql.Alias) else None
        elements.append((alias or result_name(binder, syntax), syntax))
    return elements


def _has_several(items: Sequence[sql.Expression], in_lambda: bool) -> bool:
    """Return whether a star is among the expressions or, outside a lambda, a call of untuple."""
    return any(
        isinstance(item, sql.Star)
        or (not in_lambda and isinstance(item, sql.Function) and item.name.lower() == "untuple")
        for item in items
    )


def _written_out(
    binder: Binder,
    items: Sequence[sql.Expression],
    change: Callable[[sql.Node], sql.Node | None],
    in_lambda: bool,
) -> tuple[sql.Expression, ...]:
    """Return the expressions changed, a star as one expression for each of its columns, untuple as the elements."""
    written: list[sql.Expression] = []
    for item in items:
        if isinstance(item, sql.Star):
            columns = starred_columns(binder, item)
            written += [star_syntax(binder, item, column) for column in columns]
        elif not in_lambda and (elements := untupled(binder, item)) is not None:
            written += [element for _, element in elements]
        else:
            written.append(rewrite(item, change))
    return tuple(written)


def starred_columns(binder: Binder, star: sql.Star) -> list[RelationColumn]:
    """Return the columns of a star without those of EXCEPT; the scan does not read them yet.

    Raises UnknownIdentifier for an unknown table, NoSuchColumn for an unknown name in EXCEPT,
    REPLACE or COLUMNS or a pattern without a match, BadArguments if there are no columns or a name
    of EXCEPT STRICT or REPLACE STRICT is unknown."""
    relation = binder.relation
    is_table = not star.qualifier or relation.has_qualifier(star.qualifier)
    parts = [] if is_table else _parts_of_value(binder, star)
    if not is_table and not parts:
        raise UnknownIdentifier(
            f"{'.'.join(star.qualifier)}.* : there is no such table in FROM.",
            hint=suggestion(star.qualifier[-1], {c.qualifier for c in relation.columns}),
            position=star.position,
        )
    columns = parts or list(relation.starred(star.qualifier))
    if not columns and star.pattern is None:
        raise BadArguments("There is nothing that * could stand for.", position=star.position)
    names = {c.name for c in columns}
    for name in (*star.names, *star.excluded, *(alias.name for alias in star.replaced)):
        if name not in names:
            raise _unknown(name, names, star)
    if star.names and parts:
        columns = [
            c for c in columns if c.name in star.names
        ]  # in their own order, as in ClickHouse
    elif star.names:
        columns = [c for name in star.names for c in columns if c.name == name]
    if star.pattern is not None:
        pattern = _compiled(star.pattern, star)
        columns = [c for c in columns if pattern.search(c.name)]
    hidden = [_compiled(text, star) for text in star.excluded_patterns]
    return [
        c
        for c in columns
        if c.name not in star.excluded and not any(p.search(c.name) for p in hidden)
    ]


def _parts_of_value(binder: Binder, star: sql.Star) -> list[RelationColumn]:
    """Return what `n.*` stands for where n is no table: the arrays of the nested structure n, or what ARRAY JOIN made
    of these, or the elements of the tuple n, a column, an alias or an element of another one; [] for anything else."""
    for columns_of in (joined_elements, nested_arrays):
        if columns := columns_of(binder.relation, star.qualifier):
            return columns
    whole = binder.lookup(star.qualifier, sql.Identifier(star.qualifier, position=star.position))
    data_type = None if whole is None else plain(whole.type)
    if isinstance(data_type, Array):
        data_type = plain(data_type.inner)
    if whole is None or not isinstance(data_type, Tuple):
        return []
    elements: list[RelationColumn] = []
    for name in data_type.field_names:
        element = binder.call("tupleElement", (whole, constants.string(name)))
        elements.append(
            _TupleElement(name, element.type, partial(_same, element), (star.qualifier,))
        )
    return elements


def _same(expression: Expression) -> Expression:
    """Return the expression: the element of a tuple is bound already."""
    return expression


def _unknown(name: str, names: Collection[str], star: sql.Star) -> ProgrammingError:
    """Return the error for a name in EXCEPT, REPLACE or COLUMNS that is no column of the star: as for any unknown name
    if COLUMNS lists it."""
    if name in star.names:
        return UnknownIdentifier(
            f"Unknown column {name!r} in COLUMNS.",
            hint=suggestion(name, names),
            position=star.position,
        )
    kind = BadArguments if star.strict else NoSuchColumn
    return kind(
        f"There is no column {name!r} in the star that EXCEPT, REPLACE or COLUMNS is about.",
        hint=suggestion(name, names),
        position=star.position,
    )


def identifier_of(binder: Binder, column: RelationColumn, star: sql.Star) -> sql.Identifier:
    """Return an identifier for the column: its name, with its table if the name is not enough."""
    parts: tuple[str, ...] = (column.name,)
    hidden = column.name in binder.aliases or binder.relation.find(parts) is not column
    if hidden and column.qualifiers:
        parts = (*column.qualifiers[0], column.name)
    return sql.Identifier(parts, position=star.position)


def _compiled(pattern: str, star: sql.Star) -> re.Pattern[str]:
    """Return a regular expression of COLUMNS or EXCEPT. Raises CannotCompileRegexp if it is none."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise CannotCompileRegexp(
            f"'{pattern}' is not a regular expression: {error}.", position=star.position
        ) from error

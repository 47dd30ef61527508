"""`*`, `t.*`, `COLUMNS('re')` with EXCEPT and REPLACE: the columns that they stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from olapdb.bind.names import suggestion
from olapdb.bind.relation import RelationColumn
from olapdb.errors import BadArguments, CannotCompileRegexp, NoSuchColumn, UnknownIdentifier
from olapdb.plan.expressions import Expression
from olapdb.sql import nodes as sql

if TYPE_CHECKING:
    from olapdb.bind.expressions import ExpressionBinder


@dataclass(frozen=True)
class StarColumn:
    """One column of a star: its result name, and the syntax that means just it."""

    name: str
    expression: Expression
    syntax: sql.Expression


def expand_star(binder: ExpressionBinder, star: sql.Star) -> Iterator[StarColumn]:
    """In the order of FROM. UnknownIdentifier for a table, NoSuchColumn for an EXCEPT or REPLACE
    that names nothing."""
    replaced = {alias.name: alias.expression for alias in star.replaced}
    for column in starred_columns(binder, star):
        name = binder.relation.display(column)
        syntax = replaced.get(column.name)
        if syntax is not None:
            yield StarColumn(name, binder.bind(syntax), syntax)
        else:
            yield StarColumn(name, column.use(), identifier_of(binder, column, star))


def starred_columns(binder: ExpressionBinder, star: sql.Star) -> list[RelationColumn]:
    """The columns of the star without those of EXCEPT; none of them is used yet."""
    relation = binder.relation
    if star.qualifier and not relation.has_qualifier(star.qualifier):
        raise UnknownIdentifier(
            f"{'.'.join(star.qualifier)}.* : there is no such table in FROM.",
            hint=suggestion(star.qualifier[-1], {c.qualifier for c in relation.columns}),
            position=star.position,
        )
    columns = list(relation.starred(star.qualifier))
    if not columns and star.pattern is None:
        raise BadArguments("There is nothing that * could stand for.", position=star.position)
    names = {c.name for c in columns}
    for wanted in (*star.excluded, *(alias.name for alias in star.replaced)):
        if wanted not in names:
            raise NoSuchColumn(
                f"There is no column {wanted!r} in the star that EXCEPT or REPLACE is about.",
                hint=suggestion(wanted, names),
                position=star.position,
            )
    if star.pattern is not None:
        pattern = _compiled(star)
        columns = [c for c in columns if pattern.search(c.name)]
        if not columns:
            raise NoSuchColumn(
                f"No column matches COLUMNS('{star.pattern}').", position=star.position
            )
    return [c for c in columns if c.name not in star.excluded]


def identifier_of(
    binder: ExpressionBinder, column: RelationColumn, star: sql.Star
) -> sql.Identifier:
    """The shortest identifier that means the column."""
    parts: tuple[str, ...] = (column.name,)
    if binder.relation.find(parts) is not column and column.qualifiers:
        parts = (*column.qualifiers[0], column.name)
    return sql.Identifier(parts, position=star.position)


def _compiled(star: sql.Star) -> re.Pattern[str]:
    try:
        return re.compile(star.pattern or "")
    except re.error as error:
        raise CannotCompileRegexp(
            f"COLUMNS('{star.pattern}') is not a regular expression: {error}.",
            position=star.position,
        ) from error

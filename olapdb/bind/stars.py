"""`*`, `t.*` and `COLUMNS('re')`, with EXCEPT and REPLACE, expanded into columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from olapdb.bind.contracts import Binder
from olapdb.bind.names import suggestion
from olapdb.bind.relation import RelationColumn
from olapdb.errors import BadArguments, CannotCompileRegexp, NoSuchColumn, UnknownIdentifier
from olapdb.plan.expressions import Expression
from olapdb.sql import nodes as sql


@dataclass(frozen=True)
class StarColumn:
    """One column of a star: its result name, its expression, and the syntax that names it alone."""

    name: str
    expression: Expression
    syntax: sql.Expression


def expand_star(binder: Binder, star: sql.Star) -> Iterator[StarColumn]:
    """Yield the columns of a star, bound, in the order of FROM.

    Raises UnknownIdentifier for an unknown table, NoSuchColumn for an unknown column of EXCEPT or
    REPLACE."""
    replaced = {alias.name: alias.expression for alias in star.replaced}
    for column in starred_columns(binder, star):
        name = binder.relation.display(column)
        syntax = replaced.get(column.name)
        if syntax is not None:
            yield StarColumn(name, binder.bind(syntax), syntax)
        else:
            yield StarColumn(name, column.use(), identifier_of(binder, column, star))


def starred_columns(binder: Binder, star: sql.Star) -> list[RelationColumn]:
    """Return the columns of a star without those of EXCEPT; the scan does not read them yet.

    Raises UnknownIdentifier for an unknown table, NoSuchColumn for an unknown name in EXCEPT or
    REPLACE or a pattern without a match, BadArguments if there are no columns."""
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
    for name in (*star.excluded, *(alias.name for alias in star.replaced)):
        if name not in names:
            raise NoSuchColumn(
                f"There is no column {name!r} in the star that EXCEPT or REPLACE is about.",
                hint=suggestion(name, names),
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


def identifier_of(binder: Binder, column: RelationColumn, star: sql.Star) -> sql.Identifier:
    """Return an identifier for the column: its name, with its table if the name is not enough."""
    parts: tuple[str, ...] = (column.name,)
    if binder.relation.find(parts) is not column and column.qualifiers:
        parts = (*column.qualifiers[0], column.name)
    return sql.Identifier(parts, position=star.position)


def _compiled(star: sql.Star) -> re.Pattern[str]:
    """Return the regular expression of COLUMNS('…'). Raises CannotCompileRegexp if it is none."""
    try:
        return re.compile(star.pattern or "")
    except re.error as error:
        raise CannotCompileRegexp(
            f"COLUMNS('{star.pattern}') is not a regular expression: {error}.",
            position=star.position,
        ) from error

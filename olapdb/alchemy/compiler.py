"""Core's statements as ClickHouse's SQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exc
from sqlalchemy import types as sqltypes
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql.compiler import IdentifierPreparer, SQLCompiler
from sqlalchemy.sql.selectable import CompoundSelect

from olapdb.alchemy.operators import OperatorCompiler

_RESERVED = frozenset(
    [
        "select",
        "from",
        "where",
        "group",
        "order",
        "by",
        "having",
        "limit",
        "union",
        "all",
        "distinct",
        "as",
        "on",
        "using",
        "join",
        "left",
        "right",
        "inner",
        "full",
        "cross",
        "and",
        "or",
        "not",
        "in",
        "is",
        "null",
        "case",
        "when",
        "then",
        "else",
        "end",
        "between",
        "like",
        "array",
        "final",
        "prewhere",
        "settings",
        "format",
        "with",
        "interval",
    ]
)


class OlapIdentifierPreparer(IdentifierPreparer):
    """A preparer that quotes identifiers in backquotes, only where needed."""

    reserved_words = set(_RESERVED)

    def __init__(self, dialect: DefaultDialect) -> None:
        super().__init__(dialect, initial_quote="`", final_quote="`", escape_quote="`")


def _sorts_or_limits(compound: CompoundSelect[Any]) -> bool:
    """Return whether a UNION, EXCEPT or INTERSECT has clauses of its own for all of its rows."""
    return bool(
        compound._group_by_clauses
        or compound._order_by_clauses
        or compound._has_row_limiting_clause
    )


class OlapCompiler(OperatorCompiler):
    """A compiler of Core's expressions where ClickHouse's SQL differs from the standard."""

    _has_outer_join = False
    _has_cast = False

    def visit_join(self, join: Any, *arguments: Any, **kw: Any) -> str:
        """Compile a join. An outer join sets join_use_nulls for the whole statement."""
        self._has_outer_join |= join.isouter or join.full
        text = super().visit_join(join, *arguments, **kw)  # type: ignore[no-untyped-call]
        return str(text)

    def visit_cast(self, cast: Any, **kw: Any) -> str:
        """Compile a cast. It sets cast_keep_nullable for the whole statement, since a cast of NULL
        is NULL in SQL."""
        self._has_cast = True
        text = super().visit_cast(cast, **kw)  # type: ignore[no-untyped-call]
        return str(text)

    def visit_select(self, select_stmt: Any, *arguments: Any, **kw: Any) -> str:
        """Compile a SELECT; the outermost one gets the settings of `_with_nulls`."""
        is_whole = not self.stack
        text = super().visit_select(select_stmt, *arguments, **kw)  # type: ignore[no-untyped-call]
        return self._with_nulls(text, select_stmt) if is_whole else text

    compound_keywords = {
        keyword: f"{word} DISTINCT" if word in ("UNION", "EXCEPT", "INTERSECT") else word
        for keyword, word in SQLCompiler.compound_keywords.items()
    }
    """The bare words with SQL's meaning: ClickHouse's UNION needs a word after it, and its EXCEPT
    and INTERSECT keep duplicates."""

    def visit_compound_select(self, cs: Any, *arguments: Any, **kw: Any) -> str:
        """Compile a UNION, EXCEPT or INTERSECT; the outermost one gets the settings of
        `_with_nulls`.

        ORDER BY and LIMIT are of all rows, so the operation becomes a subquery below them: behind the last
        query they would be of its rows alone."""
        is_whole = not self.stack
        text = super().visit_compound_select(cs, *arguments, **kw)  # type: ignore[no-untyped-call]
        if _sorts_or_limits(cs):
            text = f"SELECT * FROM ({text}"
        return self._with_nulls(text, cs) if is_whole else text

    def group_by_clause(self, select: Any, **kw: Any) -> str:
        """Compile GROUP BY. Before it, close the subquery that `visit_compound_select` opens."""
        text = super().group_by_clause(select, **kw)  # type: ignore[no-untyped-call]
        is_subquery = isinstance(select, CompoundSelect) and _sorts_or_limits(select)
        return f"){text}" if is_subquery else str(text)

    def visit_insert(self, insert_stmt: Any, *arguments: Any, **kw: Any) -> str:
        """Compile an INSERT with the settings of `_with_nulls` for its SELECT."""
        is_whole = not self.stack
        text = super().visit_insert(insert_stmt, *arguments, **kw)  # type: ignore[no-untyped-call]
        return self._with_nulls(text, insert_stmt.select) if is_whole else text

    def _with_nulls(self, text: str, query: Any) -> str:
        """Return the statement with join_use_nulls if it has an outer join, and cast_keep_nullable
        if it has a cast, in its SETTINGS: rows without a partner then have NULL, and a cast of NULL
        is NULL."""
        settings = [
            f"{name} = 1"
            for name, needed in (
                ("join_use_nulls", self._has_outer_join),
                ("cast_keep_nullable", self._has_cast),
            )
            if needed
        ]
        if not settings:
            return text
        suffixes = " ".join(str(suffix) for suffix, _ in getattr(query, "_suffixes", ()))
        separator = ", " if "SETTINGS" in suffixes.upper() else "\n SETTINGS "
        return f"{text}{separator}{', '.join(settings)}"

    def visit_empty_set_expr(self, element_types: Any, **kw: Any) -> str:
        """Compile `IN ()` as a subquery without rows."""
        return "SELECT 1 WHERE 0"

    def limit_clause(self, select: Any, **kw: Any) -> str:
        """Compile LIMIT and OFFSET; ClickHouse accepts each without the other."""
        text = ""
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause, **kw)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **kw)
        return text

    def returning_clause(self, *arguments: Any, **kw: Any) -> str:
        """Raise CompileError: statements that change rows return none."""
        raise exc.CompileError("olapdb has no RETURNING: select the rows by their keys.")

    def for_update_clause(self, select: Any, **kw: Any) -> str:
        """Raise CompileError: there are no locks of rows."""
        raise exc.CompileError("There are no locks of rows: a SELECT reads a snapshot.")

    def render_literal_value(self, value: Any, type_: Any) -> str:
        """Return the literal with backslashes doubled, because they escape in ClickHouse's
        strings."""
        text: str = super().render_literal_value(value, type_)
        return text.replace("\\", "\\\\")

    def visit_floordiv_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Compile `//`: exact division towards zero for whole numbers, as in other databases;
        otherwise FLOOR of `/`."""
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        sides = (binary.left.type, binary.right.type)
        if all(side._type_affinity is sqltypes.Integer for side in sides):
            return f"intDiv({left}, {right})"
        return f"floor({left} / {right})"

    # The standard writes these without parentheses; here they are functions.

    def visit_current_timestamp_func(self, func: Any, **kw: Any) -> str:
        return "now()"

    def visit_localtimestamp_func(self, func: Any, **kw: Any) -> str:
        return "now()"

    def visit_current_date_func(self, func: Any, **kw: Any) -> str:
        return "today()"

    def visit_current_user_func(self, func: Any, **kw: Any) -> str:
        return "currentUser()"

    def visit_session_user_func(self, func: Any, **kw: Any) -> str:
        return "currentUser()"

    def visit_user_func(self, func: Any, **kw: Any) -> str:
        return "currentUser()"

"""`*`, `t.*`, `COLUMNS('…')`, and what changes them."""

from __future__ import annotations

from olapdb.sql.nodes import Alias, Expression, Star
from olapdb.sql.parser.expressions import ExpressionParser


class StarParser(ExpressionParser):
    """Several columns at once."""

    def columns_pattern(self, qualifier: tuple[str, ...] = ()) -> Expression:
        """`COLUMNS('regex')`, standing at the word COLUMNS."""
        position = self.position(self.advance())
        self.expect("(")
        if self.token.kind != "string":
            raise self.refused(
                "COLUMNS with a list of names", "Name the columns, or give a pattern."
            )
        pattern = self.string()
        self.expect(")")
        return self.star_modifiers(Star(qualifier, pattern, position=position))

    def star_modifiers(self, star: Star) -> Expression:
        """`EXCEPT (a, b)`, `REPLACE (x AS a)` behind a star."""
        excluded: tuple[str, ...] = ()
        replaced: list[Alias] = []
        while True:
            if self.sees("EXCEPT") and self._names_follow():
                self.advance()
                if self.take("("):
                    excluded += self.identifiers("a column")
                    self.expect(")")
                else:
                    excluded += (self.dotted_name("a column"),)
            elif self.take("REPLACE"):
                replaced.extend(self._replacements())
            elif self.sees("APPLY") and self.key_after(1) in ("(",):
                raise self.refused(
                    "APPLY behind *", "Name the columns and call the function on each."
                )
            else:
                break
        if not excluded and not replaced:
            return star
        return Star(star.qualifier, star.pattern, excluded, tuple(replaced), position=star.position)

    def _names_follow(self) -> bool:
        """`* EXCEPT a` rather than the set operation `SELECT * EXCEPT SELECT …`."""
        if self.key_after(1) == "(":
            if self.kind_after(2) == "string":
                raise self.refused("EXCEPT with a pattern", "Name the columns.")
            return not self.query_follows(1)
        if self.key_after(1) == "STRICT":
            raise self.refused("EXCEPT STRICT", "Leave STRICT out.")
        if self.kind_after(1) == "string":
            raise self.refused("EXCEPT with a pattern", "Name the columns.")
        return self.kind_after(1) in ("word", "name") and self.key_after(1) not in (
            "SELECT",
            "WITH",
            "ALL",
            "DISTINCT",
            "FROM",
        )

    def _replacements(self) -> list[Alias]:
        found: list[Alias] = []
        grouped = self.take("(")
        while True:
            item = self.aliased()
            if not isinstance(item, Alias):
                raise self.expected("AS and the name of the column to replace")
            found.append(item)
            if not grouped or not self.take(","):
                break
        if grouped:
            self.expect(")")
        return found

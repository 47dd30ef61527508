"""FROM: tables, subqueries, table functions, joins and ARRAY JOIN."""

from __future__ import annotations

from typing import Literal

from olapdb.errors import IllegalFinal, SyntaxError
from olapdb.sql import nodes
from olapdb.sql.parser.calls import CallParser
from olapdb.sql.parser.precedence import ADD

Kind = Literal["INNER", "LEFT", "RIGHT", "FULL", "CROSS", "PASTE"]
Strictness = Literal["", "ALL", "ANY", "SEMI", "ANTI", "ASOF"]

_KINDS: dict[str, Kind] = {
    "INNER": "INNER",
    "LEFT": "LEFT",
    "RIGHT": "RIGHT",
    "FULL": "FULL",
    "CROSS": "CROSS",
    "PASTE": "PASTE",
}
_STRICTNESSES: dict[str, Strictness] = {
    "ALL": "ALL",
    "ANY": "ANY",
    "SEMI": "SEMI",
    "ANTI": "ANTI",
    "ASOF": "ASOF",
    "ONLY": "SEMI",
}


class RelationParser(CallParser):
    """What stands after FROM."""

    def relation(self) -> nodes.Relation:
        """Joins are left-associative, commas among them."""
        left = self._table_expression()
        while True:
            position = self.position()
            if self.take(","):
                right = self._table_expression()
                left = nodes.Join(left, right, "CROSS", position=position)
                continue
            array_join = self._array_join(left)
            if array_join is not None:
                left = array_join
                continue
            join = self._join(left)
            if join is None:
                return left
            left = join

    # --- joins

    def _array_join(self, left: nodes.Relation) -> nodes.Relation | None:
        position = self.position()
        outer = self.sees("LEFT", "ARRAY", "JOIN")
        if not outer and not self.sees("ARRAY", "JOIN") and not self.sees("INNER", "ARRAY", "JOIN"):
            return None
        self.take_one_of("LEFT", "INNER")
        self.at += 2
        arrays = [self.aliased(implicit=True)]
        while self.take(","):
            arrays.append(self.aliased(implicit=True))
        return nodes.ArrayJoin(left, tuple(arrays), outer, position=position)

    def _join(self, left: nodes.Relation) -> nodes.Relation | None:
        start = self.at
        position = self.position()
        if self.sees("NATURAL"):
            raise self.refused("NATURAL JOIN", "Name the columns with USING.")
        self.take_one_of("GLOBAL", "LOCAL")  # they mean something on several servers only
        before = self.take_one_of(*_STRICTNESSES)
        side = self.take_one_of(*_KINDS)
        after = self.take_one_of(*_STRICTNESSES)
        if side in ("LEFT", "RIGHT", "FULL"):
            self.take("OUTER")
        if not self.take("JOIN"):
            if self.at != start:
                raise self.expected("JOIN")
            return None
        if before and after:
            raise SyntaxError(f"A join is {before} or {after}, not both.", position=position)
        strictness = _STRICTNESSES.get(before or after, "")
        kind = _KINDS.get(side, "INNER")
        self._check_kind(kind, strictness, start)
        right = self._table_expression()
        if kind in ("CROSS", "PASTE"):
            return nodes.Join(left, right, kind, strictness, position=position)
        if self.take("ON"):
            condition = self.expression()
            return nodes.Join(left, right, kind, strictness, condition, position=position)
        if self.take("USING"):
            return nodes.Join(left, right, kind, strictness, None, self._using(), position=position)
        raise self.expected("ON or USING")

    def _check_kind(self, kind: Kind, strictness: Strictness, start: int) -> None:
        if strictness in ("SEMI", "ANTI") and kind not in ("LEFT", "RIGHT"):
            raise SyntaxError(
                f"{strictness} JOIN must be LEFT or RIGHT.",
                position=self.position(self.tokens[start]),
            )
        if strictness and kind in ("CROSS", "PASTE"):
            raise SyntaxError(
                f"{kind} JOIN cannot be {strictness}.", position=self.position(self.tokens[start])
            )

    def _using(self) -> tuple[str, ...]:
        if self.take("("):
            names = self.identifiers("a column")
            self.expect(")")
            return names
        return self.identifiers("a column")

    # --- one table

    def _table_expression(self) -> nodes.Relation:
        position = self.position()
        if self.sees("("):
            if self.query_follows():
                self.advance()
                query = self.query()
                self.expect(")")
                alias = self._table_alias()
                columns: tuple[str, ...] = ()
                if alias is not None and self.take("("):
                    columns = self.identifiers("a column")
                    self.expect(")")
                self._refuse_final()
                return nodes.SubqueryRelation(query, alias, columns, position=position)
            self.advance()
            inner = self.relation()
            self.expect(")")
            return inner
        if self._is_call():
            name = self.dotted_name("a table")
            self.expect("(")
            arguments = self._table_arguments()
            function = nodes.TableFunction(name, arguments, self._table_alias(), position=position)
            self._refuse_final()
            return function
        if self.token.kind == "string":
            raise self.expected("a table name (in backquotes or double quotes, not single ones)")
        table = self.table_name()
        alias = self._table_alias()
        final = self.take("FINAL")
        sample = offset = None
        if self.take("SAMPLE"):
            sample = self.expression(ADD)
            if self.take("OFFSET"):
                offset = self.expression(ADD)
        return nodes.TableReference(table, alias, final, sample, offset, position=position)

    def _is_call(self) -> bool:
        if self.token.kind not in ("word", "name"):
            return False
        step = 1
        while self.key_after(step) == "." and self.kind_after(step + 1) in ("word", "name"):
            step += 2
        return self.key_after(step) == "("

    def _table_arguments(self) -> tuple[nodes.Expression, ...]:
        """As of a function: `values('a UInt8', 1)`, `view(SELECT 1)`, `a_view(p = 1)`."""
        self.at -= 1
        distinct, arguments, nulls = self._arguments()
        if distinct or nulls:
            raise self.expected("the arguments of a table function")
        return arguments

    def _table_alias(self) -> str | None:
        if self.take("AS"):
            return self.identifier("an alias")
        return self.identifier() if self.alias_follows() else None

    def _refuse_final(self) -> None:
        token = self.token
        if token.key == "FINAL":
            raise IllegalFinal("FINAL is for tables only.", position=self.position(token))
        if token.key == "SAMPLE":
            raise SyntaxError("SAMPLE is for tables only.", position=self.position(token))

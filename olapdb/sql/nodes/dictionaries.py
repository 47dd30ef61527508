"""CREATE DICTIONARY."""

from __future__ import annotations

from olapdb.records import dataclass
from olapdb.sql.nodes.base import Expression, Node, Setting, Statement, TableName
from olapdb.types import DataType


@dataclass(frozen=True, slots=True)
class DictionaryAttribute(Node):
    """A key column, a bound of the range, or an attribute.

    `default` is the value of a key that the dictionary lacks. `expression` computes the column from
    the source's. `flags` are IS_OBJECT_ID, HIERARCHICAL, BIDIRECTIONAL and INJECTIVE, as written."""

    name: str
    type: DataType
    default: Expression | None = None
    expression: Expression | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DictionaryClause(Node):
    """`KIND(NAME value NAME value …)` of SOURCE and LAYOUT; names and kind are in capitals."""

    kind: str
    parameters: tuple[tuple[str, Expression], ...] = ()

    def parameter(self, name: str) -> Expression | None:
        """Return the value of a parameter, None if it was not written."""
        return dict(self.parameters).get(name)


@dataclass(frozen=True, slots=True)
class CreateDictionary(Statement):
    """CREATE DICTIONARY; a clause is None where it was not written.

    `lifetime` is (MIN, MAX) in seconds, `range` the columns of RANGE(MIN … MAX …). REPLACE DICTIONARY is OR REPLACE of
    a dictionary that `must_exist`."""

    name: TableName
    attributes: tuple[DictionaryAttribute, ...]
    primary_key: tuple[str, ...] = ()
    source: DictionaryClause | None = None
    layout: DictionaryClause | None = None
    lifetime: tuple[int, int] | None = None
    range: tuple[str, str] | None = None
    settings: tuple[Setting, ...] = ()
    comment: str = ""
    if_not_exists: bool = False
    or_replace: bool = False
    must_exist: bool = False

"""The REFRESH clause of a materialized view."""

from __future__ import annotations

from typing import Literal as Lit
from typing import TypeAlias

from olapdb.records import dataclass
from olapdb.sql.nodes.base import Node, Setting, TableName

Periods: TypeAlias = tuple[tuple[int, str], ...]
"""A length of time as (count, unit) in the order of the text: `1 DAY 2 HOUR`. Units are in
capitals and singular."""


@dataclass(frozen=True, slots=True)
class RefreshClause(Node):
    """`REFRESH EVERY|AFTER period [OFFSET …] [RANDOMIZE FOR …] [DEPENDS ON …] [SETTINGS …]
    [APPEND]`."""

    kind: Lit["EVERY", "AFTER"]
    period: Periods
    offset: Periods = ()
    randomize: Periods = ()
    depends_on: tuple[TableName, ...] = ()
    settings: tuple[Setting, ...] = ()
    append: bool = False

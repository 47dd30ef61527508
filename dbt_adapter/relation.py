"""Relations: names of two levels, quoted by backquotes."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from dbt.adapters.base.relation import BaseRelation, EventTimeFilter, Policy
from dbt.adapters.contracts.relation import RelationType

SAMPLE_MARK = "dbt_sample"
"""The text of a constant condition in the WHERE of a sampled ref; `incremental_mv` recognises
sampled refs by it."""


@dataclass
class OlapdbIncludePolicy(Policy):
    """The parts of a name that are rendered: schema and identifier."""

    database: bool = False
    schema: bool = True
    identifier: bool = True


@dataclass
class OlapdbQuotePolicy(Policy):
    """The parts of a name that are quoted: schema and identifier."""

    database: bool = False
    schema: bool = True
    identifier: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class OlapdbRelation(BaseRelation):
    """A relation, rendered as `schema`.`identifier`; dbt's database is a constant and never rendered."""

    quote_character: str = "`"
    include_policy: Policy = field(default_factory=OlapdbIncludePolicy)
    quote_policy: Policy = field(default_factory=OlapdbQuotePolicy)
    require_alias: bool = False
    renameable_relations: frozenset[RelationType] = frozenset(
        {RelationType.Table, RelationType.View, RelationType.MaterializedView}
    )
    replaceable_relations: frozenset[RelationType] = frozenset({RelationType.View})

    def quoted(self, identifier: str) -> str:
        """Return the identifier in backquotes, escaped."""
        return quote(identifier)

    def _render_event_time_filtered(self, event_time_filter: EventTimeFilter) -> str:
        """Return the filter of `--sample` with a mark that the model's SQL shows.

        Returns "" if there is no filter."""
        bounds = ((">=", event_time_filter.start), ("<", event_time_filter.end))
        conditions = [
            f"{event_time_filter.field_name} {operator} {moment_literal(moment)}"
            for operator, moment in bounds
            if moment is not None
        ]
        return " and ".join([*conditions, f"'{SAMPLE_MARK}' != ''"]) if conditions else ""


def quote(identifier: str) -> str:
    """Return the identifier in backquotes, escaped."""
    escaped = identifier.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def moment_literal(moment: datetime.datetime) -> str:
    """Return a moment as SQL that compares with a date as well as with a time. Without a zone it is
    in UTC, as all of dbt's event times."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC)
    return f"toDateTime64('{moment:%Y-%m-%d %H:%M:%S.%f}', 6, 'UTC')"


def string_literal(value: str) -> str:
    """Return the text as a SQL string literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"

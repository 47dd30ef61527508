"""What is live of a model, compared with its definition in the repository.

The stored query of the trigger names its tables as they are called now. So it differs from the
model's also where a table was renamed, or another one got its name by RENAME or EXCHANGE.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dbt_common.exceptions import DbtDatabaseError

from olapdb.bind.analysis import referenced_tables, rename_tables
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_one, parse_query

from .model_definition import ModelDefinition
from .names import TARGET_SUFFIX, ModelNames
from .target_options import only_settings_changed, recorded_difference, restoring_actions
from .warehouse import ModelState, TableInfo, ViewInfo, Warehouse

_PREVIOUS_TARGET = re.compile(rf"^(?P<target>.+{TARGET_SUFFIX})__v\d+(_\d+)?$")
"""The name of a target that SYSTEM REBUILD VIEW has replaced, or is building."""


@dataclass(frozen=True)
class Differences:
    """The differences of a model's live parts from its definition.

    `query` and `target` are sentences about the trigger's query and the target, "" for none. `moved`
    says that the trigger reads other tables than the model names. `follows` says that the model
    differs only by what it is chained on: that was rebuilt with other types, or the trigger still
    reads its previous version. `read_view`
    says that the read view's query differs, `recorded` that the comment does; `model_changed` says
    that the repository does, since the last run. If nothing but settings of the target differs,
    `settings` are the actions of the ALTER TABLE that changes them."""

    query: str = ""
    target: str = ""
    moved: bool = False
    follows: bool = False
    read_view: bool = False
    recorded: bool = False
    model_changed: bool = False
    settings: str = ""
    by_hand: str = ""

    @property
    def stored(self) -> bool:
        """Return whether stored rows would not mean what the model says."""
        return bool(self.query or self.target)

    def sentences(self) -> str:
        """Return the sentences about query and target as one text."""
        return " ".join(s for s in (self.query, self.target) if s)


def compare(
    warehouse: Warehouse, names: ModelNames, definition: ModelDefinition, state: ModelState
) -> Differences:
    """Return how trigger, target and read view differ from the definition."""
    view, target = state.view, state.target
    assert view is not None
    expected = _normal(warehouse.stored_query(definition.trigger))
    live = _normal(view.as_select)
    query, moved = _query_difference(live, expected, view, definition)
    of_target, types_only = target_difference(names, definition, target)
    options = recorded_difference(view, definition)
    actions = ""
    if target is not None and not query and not of_target and not definition.shares:
        actions = restoring_actions(names, definition, target)
    return Differences(
        query=query,
        target=of_target or ("" if query else options),
        moved=moved,
        follows=definition.chained
        and (not of_target or types_only)
        and _following(live) == expected
        and not options,
        read_view=_read_view_differs(warehouse, names, definition, state.read_view),
        recorded=view.digest != definition.digest or view.options != definition.options,
        model_changed=view.digest != definition.digest,
        settings=actions if only_settings_changed(view, definition) else "",
        by_hand="" if options else actions,
    )


def _normal(query: str) -> str:
    """Return the query as this release writes it.

    A plain view keeps the session's `cast_keep_nullable` if its query depends on it; the model's
    text does not say it."""
    parsed = parse_query(query)
    if isinstance(parsed, nodes.Select | nodes.SetOperation):
        kept = tuple(s for s in parsed.settings if s.name != "cast_keep_nullable")
        parsed = replace(parsed, settings=kept)
    return to_sql(parsed)


def _query_difference(
    live: str, expected: str, view: ViewInfo, definition: ModelDefinition
) -> tuple[str, bool]:
    """Return a sentence about the trigger's query, "" if it is the model's; and whether it reads
    other tables."""
    if live == expected:
        return "", False
    live_tables, expected_tables = _tables(live), _tables(expected)
    gone = [name for name in live_tables if name not in expected_tables]
    if gone:
        new = [name for name in expected_tables if name not in live_tables]
        return (
            f"The trigger reads {', '.join(gone)} where the model reads {', '.join(new) or 'none'}: "
            "the model names another table now, or a table was renamed, exchanged or rebuilt "
            "under it.",
            True,
        )
    if view.digest == definition.digest:
        return "The trigger's query was changed by hand (MODIFY QUERY).", False
    return "The trigger's query is not the model's.", False


def _tables(query: str) -> list[str]:
    """Return the names of the tables that the query reads, as `database.name`."""
    return [f"{name.database}.{name.name}" for name in referenced_tables(parse_query(query))]


def _following(live: str) -> str:
    """Return the live query over the current targets where it reads previous ones."""
    query = parse_query(live)
    renamed: dict[tuple[str, str], tuple[str, str]] = {}
    for name in referenced_tables(query):
        match = _PREVIOUS_TARGET.match(name.name)
        if match is not None and name.database is not None:
            renamed[name.database, name.name] = (name.database, match["target"])
    return to_sql(rename_tables(query, renamed))


def target_difference(
    names: ModelNames, definition: ModelDefinition, target: TableInfo | None
) -> tuple[str, bool]:
    """Return a sentence about the columns, engine and keys of the target, "" if they are the
    model's; and whether it is about types of columns alone."""
    if target is None:
        return "", False
    expected = parse_one(definition.create_target(names))
    live = parse_one(target.create_table_query)
    assert isinstance(expected, nodes.CreateTable)
    assert isinstance(live, nodes.CreateTable)
    columns = {column.name: str(column.type) for column in expected.columns}
    live_columns = {
        column.name: str(column.type)
        for column in live.columns
        if column.default_kind in ("", "DEFAULT")  # those of SELECT *
    }
    if list(columns.items()) != list(live_columns.items()):
        text = _columns_text(live_columns, columns)
        types_only = list(columns) == list(live_columns)
        return f"The columns of {names.target} differ: {text}.", types_only
    for clause, attribute in (
        ("ENGINE", "engine"),
        ("PARTITION BY", "partition_by"),
        ("ORDER BY", "order_by"),
    ):
        if getattr(live.storage, attribute) != getattr(expected.storage, attribute):
            return f"{clause} of {names.target} differs: it is {target.engine_full}.", False
    return "", False


def _columns_text(live: Mapping[str, str], expected: Mapping[str, str]) -> str:
    """Return the columns that differ, as text: live type, and the model's."""
    listed = [
        f"{name} is {live.get(name, 'not there')}, {expected.get(name, 'not there')} in the model"
        for name in dict.fromkeys((*expected, *live))
        if live.get(name) != expected.get(name)
    ]
    return "; ".join(listed) or f"their order is {', '.join(live)}"


def _read_view_differs(
    warehouse: Warehouse,
    names: ModelNames,
    definition: ModelDefinition,
    read_view: TableInfo | None,
) -> bool:
    """Return whether the read view is missing or has another query than the model's."""
    if read_view is None or read_view.engine != "View":
        return True
    try:
        expected = warehouse.stored_query(definition.read_query(names))
    except DbtDatabaseError:  # its columns are not in the target
        return True
    return _normal(read_view.as_select) != _normal(expected)


def target_fits(names: ModelNames, definition: ModelDefinition, target: TableInfo) -> bool:
    """Return whether an existing target has the columns, engine and keys of the definition."""
    difference, _ = target_difference(names, definition, target)
    return not difference

"""Definitions of views: a SELECT, frozen and checked against its source and its target.

CREATE, MODIFY QUERY and REBUILD all make their definitions here, so they refuse the same queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from olapdb import errors
from olapdb.bind import BindScope, bind_query
from olapdb.bind.analysis import source_of
from olapdb.bind.qualify import qualify
from olapdb.bind.syntax import walk
from olapdb.config import Settings, SettingValue
from olapdb.functions.base import Environment
from olapdb.ingest.block_stager import CASCADE_DEPTH_MAX
from olapdb.lineage.dimension_change import dimension_views
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.requirements import DimensionViewsAre, Requirement, RevisionIs, SchemaIs, ViewsAre
from olapdb.model.schema import Column, MaterializedView, RefreshableView, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.plan.nodes import Plan, SystemScan
from olapdb.plan.tree import all_nodes, all_scans
from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.sql.dictionary_functions import DICTIONARY_FUNCTIONS, dictionary_name
from olapdb.sql.format import to_sql
from olapdb.views.definition.column_compatibility import check_columns
from olapdb.views.definition.kept_settings import frozen_settings
from olapdb.views.provability import RULES, BoundDefinition, check_definition, circle_of, downstream

ChooseTarget: TypeAlias = Callable[["Plan"], Table]
"""A function from the bound query to the table for its rows. The table need not exist yet."""


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A checked definition. `plan` is bound, not optimized. `unprovable` is "" or the reason.
    `new_target`: the snapshot does not have the target yet."""

    query: str
    plan: Plan
    source: Table
    target: Table
    dimension_ids: tuple[str, ...]
    references: tuple[str, ...]
    settings: tuple[tuple[str, SettingValue], ...]
    zone: str
    unprovable: str
    new_target: bool
    added_keys: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns that the query gives."""
        return columns_of_plan(self.plan)

    def applied_to(self, view: MaterializedView) -> MaterializedView:
        """Return the view with this definition. Its identity, names, version and state stay."""
        return replace(
            view,
            columns=self.columns,
            query=self.query,
            source_id=self.source.id,
            target_id=self.target.id,
            dimension_ids=self.dimension_ids,
            references=self.references,
            settings=self.settings,
            zone=self.zone,
            unprovable=self.unprovable,
            judged_by=RULES,
            added_keys=self.added_keys,
        )

    def requirements(self, snapshot: Snapshot) -> list[Requirement]:
        """Return the requirements that all objects of the check are unchanged."""
        # The text names these: a RENAME or a new definition of a plain view is a conflict.
        needed: dict[Requirement, None] = {
            RevisionIs(*table_revision): None for table_revision in self.plan.tables
        }
        for table_id in (self.source.id, *self.dimension_ids):
            table = snapshot.by_id(table_id)
            if isinstance(table, Table):
                needed[SchemaIs(table_id, table.version)] = None
        if not self.new_target:
            needed[SchemaIs(self.target.id, self.target.version)] = None
            needed[RevisionIs(self.target.id, self.target.revision)] = None
            # The view that this one replaces exists until the commit.
            committed = snapshot.base if isinstance(snapshot, OverlaySnapshot) else snapshot
            for table_id in downstream(snapshot, self.target.id):
                views = (view for view in snapshot.views_on(table_id) if view.attached)
                needed[ViewsAre(table_id, tuple((view.id, view.version) for view in views))] = None
                joins = tuple(
                    (view.id, view.version) for view in dimension_views(committed, {table_id})
                )
                needed[DimensionViewsAre(table_id, joins)] = None
        return list(needed)


@dataclass(frozen=True, slots=True)
class ProposedView:
    """A view as a statement proposes it: view `name` ("database.view") by `query`, which was written
    in `database` under the session's settings and the SETTINGS `clauses`. `target` chooses the table
    for its rows, `declared` are the columns that the statement lists."""

    name: str
    query: nodes.Query
    target: ChooseTarget
    database: str
    zone: str
    session_settings: Mapping[str, object]
    clauses: Iterable[nodes.Setting] = ()
    declared: tuple[nodes.ColumnDefinition, ...] = ()
    position: errors.Position | None = None
    added_keys: tuple[int, ...] = ()
    """Those of an existing view whose query stays, see `MaterializedView.added_keys`."""


def define(snapshot: Snapshot, proposed: ProposedView) -> ViewDefinition:
    """Freeze the proposed view's query and check it.

    Raises what binding the query raises, and UnknownTable. Raises
    QueryNotSupportedInMaterializedView, ViewNotProvable, ThereIsNoColumn, DuplicateColumn,
    TypeMismatch, CannotConvertType or TooDeepRecursion if it cannot be a trigger into that target.
    """
    name, drafted = proposed.name, draft(snapshot, proposed)
    plan, source, target_table = drafted.parts.plan, drafted.parts.source, drafted.parts.target
    check_columns(name, plan, target_table, proposed.declared, snapshot, drafted.parts.environment)
    dimensions = _dimensions(plan, source, name)
    _refuse_circle(snapshot, name, source, dimensions, target_table)
    reason = check_definition(drafted.parts)
    _refuse_depth(snapshot, name, source, target_table)
    return ViewDefinition(
        query=to_sql(drafted.query),
        plan=plan,
        source=source,
        target=target_table,
        dimension_ids=dimensions,
        references=tuple(
            dict.fromkeys((source.id, *(table_id for table_id, _ in plan.tables), *dimensions))
        ),
        settings=tuple(sorted(drafted.settings.items())),
        zone=proposed.zone,
        unprovable=reason,
        new_target=snapshot.by_id(target_table.id) is None,
        added_keys=proposed.added_keys,
    )


@dataclass(frozen=True, slots=True)
class ViewDraft:
    """A definition that is bound but not checked: its qualified query, its frozen settings, and the
    `parts` that are judged."""

    query: nodes.Query
    settings: dict[str, SettingValue]
    parts: BoundDefinition


def draft(snapshot: Snapshot, proposed: ProposedView) -> ViewDraft:
    """Bind the query and freeze its settings. Raises what binding raises, UnknownTable, and
    QueryNotSupportedInMaterializedView for a source that fires no view."""
    name, query, database = proposed.name, proposed.query, proposed.database
    clauses = (*proposed.clauses, *getattr(query, "settings", ()))
    frozen = frozen_settings(proposed.session_settings, clauses)
    scope = BindScope(
        snapshot=snapshot,
        database=database,
        settings=Settings(frozen),
        environment=Environment(zone=proposed.zone, database=database),
    )
    qualified = qualify(_without_settings(query), scope)
    _refuse_computed_names(name, qualified)
    source = _source(snapshot, name, qualified, database, proposed.position)
    _refuse_files(name, qualified)
    plan = bind_query(qualified, scope)
    if plan.correlated:
        raise errors.QueryNotSupportedInMaterializedView(
            "A materialized view cannot have a correlated subquery: which of its rows another row "
            "of the inner table changes would not be known.",
            hint="Write the subquery as a JOIN with a GROUP BY.",
            position=proposed.position,
        )
    _check_names(name, plan)
    _refuse_samples(name, qualified, plan)
    _refuse_calls(name, plan, snapshot)
    target = proposed.target(plan)
    parts = BoundDefinition(
        name, plan, source, target, snapshot, frozen, scope.environment, proposed.added_keys
    )
    return ViewDraft(qualified, frozen, parts)


def inherited_settings(view: MaterializedView, asked: Mapping[str, object]) -> dict[str, object]:
    """Return the settings for a new definition of the view: its own, and over them those that the
    statement or the session changes."""
    changed = asked.changed if isinstance(asked, Settings) else asked
    return {**dict(view.settings), **changed}


def columns_of_plan(plan: Plan) -> tuple[Column, ...]:
    """Return the plan's output as columns, numbered from 1."""
    return tuple(
        Column(number, name, data_type)
        for number, (name, data_type) in enumerate(zip(plan.names, plan.types, strict=True), 1)
    )


def _without_settings(query: nodes.Query) -> nodes.Query:
    """Return the query without SETTINGS, which the view keeps beside its query, and without FORMAT,
    which it ignores."""
    if isinstance(query, nodes.Select | nodes.SetOperation):
        return replace(query, settings=(), format=None)
    return query


# --- source and dimensions -----------------------------------------------------------------------


def _source(
    snapshot: Snapshot,
    view: str,
    query: nodes.Query,
    database: str,
    position: errors.Position | None,
) -> Table:
    """Return the left-most table, whose INSERTs fire the view. Raise UnknownTable, or
    QueryNotSupportedInMaterializedView if no INSERT can fire it."""
    name = source_of(query)
    if name is None:
        raise errors.QueryNotSupportedInMaterializedView(
            f"View {view} reads no table, so nothing would ever fire it.",
            hint="Select FROM a table; for constants use CREATE TABLE … AS SELECT.",
            position=position,
        )
    source = snapshot.find(name.database or database, name.name)
    match source:
        case Table():
            return source
        case MaterializedView() | RefreshableView():
            target = snapshot.by_id(source.target_id)
            target_name = f"{target.database}.{target.name}" if target is not None else "its target"
            raise errors.QueryNotSupportedInMaterializedView(
                f"View {view} reads FROM the materialized view {name}; INSERTs go into"
                f" {target_name}, never into the view's name, so it would never fire.",
                hint=f"Select FROM {target_name}.",
                position=name.position,
            )
        case View() if source.engine_name == "Buffer":
            raise errors.QueryNotSupportedInMaterializedView(
                f"View {view} reads FROM the Buffer {name}: what is inserted into it goes to its table"
                " at once, and fires the views of that.",
                hint=f"Select FROM the table of {name}.",
                position=name.position,
            )
        case View():
            raise errors.QueryNotSupportedInMaterializedView(
                f"View {view} reads FROM the view {name}, into which nothing is inserted, so"
                " it would never fire.",
                hint=f"Select FROM the table that {name} reads, and write its query out.",
                position=name.position,
            )
    if (name.database or database).lower() in ("system", "information_schema"):
        raise errors.QueryNotSupportedInMaterializedView(
            f"View {view} reads FROM {name}, into which nothing is inserted.",
            hint="Select FROM a stored table.",
            position=name.position,
        )
    raise errors.UnknownTable(
        f"Table {name} does not exist.",
        hint="The source must be there before the view.",
        position=name.position,
    )


def _dimensions(plan: Plan, source: Table, name: str) -> tuple[str, ...]:
    """Return the ids of the stored tables other than the source that the query reads, through plain
    views too. Refuse system tables."""
    if any(isinstance(node, SystemScan) for node in all_nodes(plan.root)):
        raise errors.QueryNotSupportedInMaterializedView(
            f"View {name} reads a system table, whose rows change without anybody's INSERT.",
            hint="Copy what it needs into a table.",
        )
    ids = (node.table.id for node in all_scans(plan.root) if node.table.id != source.id)
    return tuple(dict.fromkeys(ids))


def _refuse_files(name: str, query: nodes.Query) -> None:
    """Refuse the table functions file() and remote() in the query."""
    for source in walk(query):
        if isinstance(source, nodes.TableReference) and source.is_remote:
            raise errors.QueryNotSupportedInMaterializedView(
                f"View {name} reads through the table function remote.",
                hint=f"Write {source.table}: a view reads tables by their names.",
                position=source.table.position,
            )
        if isinstance(source, nodes.TableFunction) and source.name.lower() == "file":
            raise errors.QueryNotSupportedInMaterializedView(
                f"View {name} reads files, which change without an INSERT: it would not be told.",
                hint="INSERT the files into a table, and let the view read it.",
                position=source.position,
            )


def _refuse_samples(name: str, query: nodes.Query, plan: Plan) -> None:
    """Refuse SAMPLE in the query, and whatever is momentary in the views that it reads."""
    samples = (n for n in walk(query) if isinstance(n, nodes.TableReference) and n.sample)
    for source in samples:
        raise errors.QueryNotSupportedInMaterializedView(
            f"View {name} has SAMPLE, which a materialized view cannot have.",
            hint="Write a condition on the sampling key: WHERE intHash32(id) < 429496729.",
            position=source.position,
        )
    if plan.momentary:
        is_setting = plan.momentary.startswith("getSetting")
        raise errors.QueryNotSupportedInMaterializedView(
            f"View {name} reads {plan.momentary}: it would not be told of the change.",
            hint="Write the value of the setting."
            if is_setting
            else "Name the tables in a UNION ALL, and give SAMPLE a share such as 1/10.",
        )


def _refuse_calls(name: str, plan: Plan, snapshot: Snapshot) -> None:
    """Refuse a view with parameters among what the query reads, as ClickHouse does."""
    for object_id, _ in plan.tables:
        item = snapshot.by_id(object_id)
        if isinstance(item, View) and item.has_parameters:
            raise errors.QueryNotSupportedInMaterializedView(
                f"View {name} reads {item.database}.{item.name}, a view with parameters.",
                hint="Write its query out, with the values in it.",
            )


def _refuse_computed_names(name: str, query: nodes.Query) -> None:
    """Refuse a call whose dictionary is named by an expression: a RENAME could not follow it."""
    for node in walk(query):
        if (
            isinstance(node, nodes.Function)
            and node.name in DICTIONARY_FUNCTIONS
            and dictionary_name(node) is None
        ):
            raise errors.QueryNotSupportedInMaterializedView(
                f"View {name} computes the name of a dictionary.",
                hint=f"Write it as a text: {node.name}('dictionary', …).",
                position=node.position,
            )


# --- output columns, circles and chains ----------------------------------------------------------


def _check_names(name: str, plan: Plan) -> None:
    """Raise DuplicateColumn if two output columns have one name."""
    seen: set[str] = set()
    for column in plan.names:
        if column in seen:
            raise errors.DuplicateColumn(
                f"View {name} has two columns {column}.",
                hint="Give one of them another name with AS.",
            )
        seen.add(column)


def _refuse_circle(
    snapshot: Snapshot, name: str, source: Table, dimensions: tuple[str, ...], target: Table
) -> None:
    """Raise TooDeepRecursion if the view would read its target or a table made of it."""
    joined = (snapshot.by_id(table_id) for table_id in dimensions)
    inputs = [source, *(table for table in joined if isinstance(table, Table))]
    circle = circle_of(snapshot, inputs, target)
    if circle:
        raise errors.TooDeepRecursion(
            f"View {name} would close a circle: {' -> '.join(circle)}.",
            hint="A table cannot receive what is made of its own rows; use another target, or join"
            " another table.",
        )


def _refuse_depth(snapshot: Snapshot, name: str, source: Table, target: Table) -> None:
    """Raise TooDeepRecursion if the view would make a chain of more than CASCADE_DEPTH_MAX views:
    every INSERT at its top would fail."""
    above = _levels(source.id, lambda t: [view.source_id for view in snapshot.views_into(t)])
    below = _levels(target.id, lambda t: [view.target_id for view in snapshot.views_on(t)])
    if above + 1 + below > CASCADE_DEPTH_MAX:
        raise errors.TooDeepRecursion(
            f"View {name} would be one of {above + 1 + below} that fire one after the other;"
            f" {CASCADE_DEPTH_MAX} may.",
            hint="Select from a table nearer to the first, or split the chain: INSERT … SELECT.",
        )


def _levels(table_id: str, neighbours: Callable[[str], list[str]]) -> int:
    """Return the number of views on the longest path from the table, at most CASCADE_DEPTH_MAX.
    `neighbours` gives the ids of the tables that are one view away."""
    levels, reached = 0, set(neighbours(table_id))
    while reached and levels < CASCADE_DEPTH_MAX:
        levels, reached = levels + 1, {end for start in reached for end in neighbours(start)}
    return levels

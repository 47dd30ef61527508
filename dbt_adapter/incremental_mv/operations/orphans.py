"""Orphans: triggers of models that the project no longer has under that name or materialization.

A trigger's comment names the model that made it. So a trigger in a schema of this target whose
model was deleted, renamed or materialized otherwise is known apart from those of other projects. Orphans
cost time at each INSERT, and INSERTs fail with them, until they are dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from olapdb.bind.syntax import walk
from olapdb.errors import Error
from olapdb.sql import nodes
from olapdb.sql.parser import parse_query

from ...relation import quote, string_literal
from ..names import TARGET_SUFFIX, VIEW_SUFFIX, ModelNames
from ..warehouse import Warehouse, comment_body
from .project import MATERIALIZATIONS, ManifestProject
from .table import Report


@dataclass(frozen=True)
class Orphan:
    """A trigger without a model, the table that it writes, and the relations that go with it, in the
    order of their drop."""

    database: str
    trigger: str
    unique_id: str
    reason: str
    target_database: str
    target: str
    relations: tuple[str, ...]
    rows: int
    attached: bool

    def row(self) -> dict[str, object]:
        """Return the orphan as a row of the report's table, by column name."""
        return {
            "orphan": f"{self.database}.{self.trigger}",
            "of": self.unique_id,
            "because": self.reason,
            "relations": ", ".join(self.relations),
            "rows": self.rows,
        }

    def drop_statement(self) -> str:
        """Return the one statement that drops all relations of the orphan, in one commit."""
        names = ", ".join(f"{quote(self.database)}.{quote(name)}" for name in self.relations)
        return f"DROP TABLE {names}"


def find_orphans(
    warehouse: Warehouse, project: ManifestProject, schemas: Collection[str]
) -> list[Orphan]:
    """Return the orphans of this project in these schemas, each before those that it reads.

    Triggers of other projects, triggers that no dbt run made, and versions that a rebuild makes or
    keeps are no orphans."""
    models = project.models()
    relations = project.relations()
    orphans = []
    for trigger in _dbt_triggers(warehouse, schemas):
        unique_id = str(comment_body(trigger["comment"])["model"])
        if unique_id.split(".")[1:2] and unique_id.split(".")[1] not in project.packages():
            continue
        model = models.get(unique_id)
        if model is not None and _belongs(trigger, model.names):
            continue
        materialized = project.materialized_as(unique_id)
        if model is not None:
            reason = f"the model is {model.names} now"
        elif materialized is not None and materialized not in MATERIALIZATIONS:
            reason = f"the model is materialized as {materialized} now"
        else:
            reason = "the project has no such model"
        orphans.append(_orphan(warehouse, trigger, unique_id, reason, relations))
    return _readers_first(warehouse, _with_targets(warehouse, orphans, relations))


def _with_targets(
    warehouse: Warehouse, orphans: Sequence[Orphan], relations: Collection[tuple[str, str]]
) -> list[Orphan]:
    """Return the orphans, of the writers of each target one with the target among its relations: its
    owner, or another one if the owner is gone.

    A target that other triggers write, too, one in another database, and one that is a relation of the
    project, stay."""
    writers: dict[tuple[str, str], list[Orphan]] = {}
    for orphan in orphans:
        if orphan.database == orphan.target_database:
            writers.setdefault((orphan.database, orphan.target), []).append(orphan)
    chosen = {
        _key(next(filter(_owns_target, listed), listed[-1]))
        for (database, target), listed in writers.items()
        if target.endswith(TARGET_SUFFIX)
        and (database, target) not in relations
        and _writers(warehouse, database, target) == len(listed)
    }
    return [
        replace(orphan, relations=(*orphan.relations, orphan.target))
        if _key(orphan) in chosen
        else orphan
        for orphan in orphans
    ]


def _owns_target(orphan: Orphan) -> bool:
    """Return whether the target has the name of the orphan's own; a model with config target has none."""
    return orphan.target == f"{orphan.trigger.removesuffix(VIEW_SUFFIX)}{TARGET_SUFFIX}"


def _goes_with(writer: Orphan, orphan: Orphan) -> bool:
    """Return whether the target of the writer goes with the orphan."""
    return writer.target_database == orphan.database and writer.target in orphan.relations


def _dbt_triggers(warehouse: Warehouse, schemas: Collection[str]) -> list[dict[str, Any]]:
    """Return the triggers that dbt made in these schemas, without versions of a rebuild."""
    if not schemas:
        return []
    listed = ", ".join(string_literal(schema) for schema in sorted(schemas))
    rows = warehouse.rows(
        "SELECT v.database AS database, v.name AS name, v.target_database AS target_database, "
        "v.target_table AS target, v.comment AS comment, v.attached AS attached, t.total_rows AS rows "
        "FROM system.views AS v LEFT JOIN system.tables AS t "
        "ON t.database = v.target_database AND t.name = v.target_table "
        f"WHERE v.database IN ({listed}) AND v.standing = ''"
    )
    return [row for row in rows if comment_body(row["comment"]).get("model")]


def _belongs(trigger: Mapping[str, Any], names: ModelNames) -> bool:
    """Return whether the trigger is the model's, or one that a run of the model is building."""
    if trigger["database"] != names.database:
        return False
    name = str(trigger["name"])
    return name == names.view or name.startswith(f"{names.model}__dbt_")


def _orphan(
    warehouse: Warehouse,
    trigger: Mapping[str, Any],
    unique_id: str,
    reason: str,
    relations: set[tuple[str, str]],
) -> Orphan:
    """Return the orphan of a trigger, with the read view if it is its own and no relation of the
    project, and without the target, of which `_with_targets` decides."""
    database, name = trigger["database"], trigger["name"]
    parts = [name]
    read_view = name.removesuffix(VIEW_SUFFIX)
    target = trigger["target"]
    if (database, read_view) not in relations and _reads(warehouse, database, read_view, target):
        parts.insert(0, read_view)
    rows = int(trigger["rows"] or 0)
    return Orphan(
        database,
        name,
        unique_id,
        reason,
        trigger["target_database"],
        target,
        tuple(parts),
        rows,
        bool(trigger["attached"]),
    )


def _reads(warehouse: Warehouse, database: str, view: str, target: str) -> bool:
    """Return whether there is a plain view of this name that reads the target."""
    rows = warehouse.rows(
        "SELECT as_select FROM system.tables WHERE engine = 'View' "
        f"AND database = {string_literal(database)} AND name = {string_literal(view)}"
    )
    if not rows:
        return False
    try:
        query = parse_query(rows[0]["as_select"])
    except Error:
        return False
    tables = (n.table for n in walk(query) if isinstance(n, nodes.TableReference))
    return any(t.name == target and t.database in (database, None) for t in tables)


def _writers(warehouse: Warehouse, database: str, target: str) -> int:
    """Return the number of triggers that write the table, versions of a rebuild apart."""
    rows = warehouse.rows(
        "SELECT count() AS writers FROM system.views WHERE standing = '' "
        f"AND target_database = {string_literal(database)} "
        f"AND target_table = {string_literal(target)}"
    )
    return int(rows[0]["writers"])


def _readers_first(warehouse: Warehouse, orphans: Sequence[Orphan]) -> list[Orphan]:
    """Return the orphans so that one which reads the target of another comes before it, and so do all
    other writers of a target that goes with it. The versions that rebuilds keep are dropped with their
    view, and so count as it."""
    remaining = {_key(orphan): orphan for orphan in orphans}
    versions = _kept_versions(warehouse)
    readers = {
        key: {
            *(versions.get(name, name) for name in readers_of(warehouse, orphan)),
            *(_key(other) for other in orphans if _goes_with(other, orphan)),
        }
        - {key}
        for key, orphan in remaining.items()
    }
    ordered: list[Orphan] = []
    while remaining:
        free = [k for k in remaining if not readers[k] & remaining.keys()] or list(remaining)
        ordered += [remaining.pop(key) for key in sorted(free)]
    return ordered


def readers_of(warehouse: Warehouse, orphan: Orphan) -> dict[str, object]:
    """Return the triggers, by `database.name`, that read a relation of the orphan."""
    triggers: dict[str, object] = {}
    for name in orphan.relations:
        for kind in ("source", "dimension"):
            triggers |= warehouse.readers(orphan.database, name, kind=kind)
    return triggers


def _kept_versions(warehouse: Warehouse) -> dict[str, str]:
    """Return the view of each version that a rebuild makes or keeps, both as `database.name`."""
    rows = warehouse.rows(
        "SELECT database, name, version_of FROM system.views WHERE standing != ''"
    )
    return {f"{row['database']}.{row['name']}": str(row["version_of"]) for row in rows}


def _stays(warehouse: Warehouse, orphan: Orphan, readers: Sequence[str]) -> str:
    """Return why an orphan stays that these triggers read, and what to do."""
    versions = _kept_versions(warehouse)
    kept = [reader for reader in readers if reader in versions]
    if kept != list(readers):
        return f"{_key(orphan)} stays: {', '.join(readers)} reads it. Rebuild or drop that first."
    drops = " ".join(f"DROP VIEW {reader};" for reader in kept)
    return (
        f"{_key(orphan)} stays: {', '.join(kept)} reads it, which a rebuild has kept as the previous "
        f"version of {', '.join(versions[reader] for reader in kept)}. Drop that first: {drops}"
    )


def drop_orphans(warehouse: Warehouse, orphans: Sequence[Orphan], *, confirmed: bool) -> Report:
    """Drop the orphans, each in one commit; without `confirmed` only list them.

    An orphan that a living trigger reads stays, and is a problem."""
    report = Report([orphan.row() for orphan in orphans])
    if not orphans:
        return Report([], ["There are no orphans."])
    if not confirmed:
        report.notes += _that_would_stay(warehouse, orphans)
        report.notes.append(
            "Nothing was dropped: this is a dry run. Add confirm: true to --args to drop them."
        )
        return report
    report.rows = []
    dropped: list[Orphan] = []
    for orphan in orphans:
        readers = _other_readers(warehouse, orphan)
        if readers:
            report.problems.append(_stays(warehouse, orphan, readers))
            continue
        try:
            warehouse.run(orphan.drop_statement())
        except DbtRuntimeError as error:
            report.problems.append(f"{_key(orphan)} stays: {error.msg}")
            continue
        report.rows.append({"did": "dropped"} | orphan.row())
        dropped.append(orphan)
    report.notes += [note for orphan in dropped for note in _left_rows(warehouse, orphan)]
    return report


def _other_readers(warehouse: Warehouse, orphan: Orphan) -> list[str]:
    """Return the triggers, as `database.name`, that read the orphan, itself apart."""
    return sorted(set(readers_of(warehouse, orphan)) - {_key(orphan)})


def _that_would_stay(warehouse: Warehouse, orphans: Sequence[Orphan]) -> Iterator[str]:
    """Yield why an orphan would stay, for each that a trigger reads which is not dropped before it."""
    versions = _kept_versions(warehouse)
    dropped: set[str] = set()
    for orphan in orphans:
        readers = _other_readers(warehouse, orphan)
        left = [reader for reader in readers if versions.get(reader, reader) not in dropped]
        if left:
            yield _stays(warehouse, orphan, left)
        else:
            dropped.add(_key(orphan))


def _left_rows(warehouse: Warehouse, orphan: Orphan) -> list[str]:
    """Return a note if a dropped orphan has written the target of another model: its rows are there
    as rows that no trigger made."""
    if orphan.target in orphan.relations:
        return []
    owners = warehouse.rows(
        "SELECT database, name, bypass_rows FROM system.views WHERE standing = '' "
        f"AND target_database = {string_literal(orphan.target_database)} "
        f"AND target_table = {string_literal(orphan.target)} AND bypass_rows > 0 LIMIT 1"
    )
    return [
        f"{_key(orphan)} wrote {orphan.target}, which stays with {owner['bypass_rows']} rows of it. "
        f"SYSTEM REPLAY VIEW {owner['database']}.{owner['name']} DISCARD BYPASS removes them."
        for owner in owners
    ]


def _key(orphan: Orphan) -> str:
    """Return `database.name` of the orphan's trigger."""
    return f"{orphan.database}.{orphan.trigger}"

"""Settings, constraints and TTL of a live target: what ALTER TABLE brings to the model's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from olapdb.config.table import FIXED_SETTINGS, TABLE_SETTINGS
from olapdb.lazy import lazy_modules
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_one

from ..relation import quote
from ..storage_clause import setting_value
from .model_definition import ModelDefinition
from .names import ModelNames
from .warehouse import TableInfo, ViewInfo

if TYPE_CHECKING:
    from olapdb.statements.ddl import ttl
else:
    (ttl,) = lazy_modules("olapdb.statements.ddl", "ttl")


def recorded_difference(view: ViewInfo, definition: ModelDefinition) -> str:
    """Return a sentence if the model's TTL or settings differ from its last run's, else ""."""
    if not view.options or view.options == definition.options:
        return ""
    return "The TTL or SETTINGS of the model have changed."


def only_settings_changed(view: ViewInfo, definition: ModelDefinition) -> bool:
    """Return whether, since the last run, nothing of the model's options has changed but settings
    of the target that ALTER can change."""
    if not view.options or view.options == definition.options:
        return False
    old, new = json.loads(view.options), json.loads(definition.options)
    if [old[0], *old[2:]] != [new[0], *new[2:]]:
        return False
    before, after = (_settings(_table_with(clause)) for clause in (old[1], new[1]))
    return all(before.get(name) == after.get(name) for name in FIXED_SETTINGS)


def restoring_actions(names: ModelNames, definition: ModelDefinition, target: TableInfo) -> str:
    """Return the actions of one ALTER TABLE that give the live target the model's settings,
    constraints and TTL, "" if it has them. Settings that ALTER cannot change are left out."""
    live = _create_table(target.create_table_query)
    expected = _create_table(definition.create_target(names))
    actions = _settings_actions(live, expected) + _constraint_actions(live, expected)
    # TTL is last: its list of expressions would take the next action for another one.
    if _rules(live) != _rules(expected):
        actions.append(f"MODIFY TTL {definition.ttl}" if definition.ttl else "REMOVE TTL")
    return ", ".join(actions)


def _settings_actions(live: nodes.CreateTable, expected: nodes.CreateTable) -> list[str]:
    """Return the actions for settings whose values differ."""
    old, new = _settings(live), _settings(expected)
    changed = [
        f"{name} = {setting_value(value)}"
        for name, value in new.items()
        if name in TABLE_SETTINGS
        and not _is_bound(name)
        and TABLE_SETTINGS[name].parse(value) != _effective(name, old)
    ]
    actions = [f"MODIFY SETTING {', '.join(changed)}"] if changed else []
    removed = [name for name in old if name not in new and not _is_bound(name)]
    return actions + [f"RESET SETTING {name}" for name in removed]


def _is_bound(name: str) -> bool:
    """Return whether ALTER cannot change a setting, or it means nothing."""
    return name in FIXED_SETTINGS or TABLE_SETTINGS[name].neutral


def _effective(name: str, settings: dict[str, object]) -> object:
    """Return the value that a setting has in a table with these explicit ones."""
    definition = TABLE_SETTINGS[name]
    return definition.parse(settings.get(name, definition.default))


def _constraint_actions(live: nodes.CreateTable, expected: nodes.CreateTable) -> list[str]:
    """Return the actions for constraints that are missing, altered or added."""
    old = {constraint.name: constraint for constraint in live.constraints}
    new = {constraint.name: constraint for constraint in expected.constraints}
    dropped = [name for name in old if old[name] != new.get(name)]
    added = [new[name] for name in new if old.get(name) != new[name]]
    return [f"DROP CONSTRAINT {quote(name)}" for name in dropped] + [
        f"ADD CONSTRAINT {quote(c.name)} {c.kind} ({to_sql(c.expression)})" for c in added
    ]


def _rules(table: nodes.CreateTable) -> list[str]:
    """Return the rules of the TTL as the engine shows them."""
    return [ttl.rule_text(item) for item in table.storage.ttl or ()]


def _settings(table: nodes.CreateTable) -> dict[str, object]:
    """Return the values of the settings of a CREATE TABLE by name."""
    return {setting.name: setting.value for setting in table.storage.settings}


def _table_with(settings: str) -> nodes.CreateTable:
    """Return a CREATE TABLE with a SETTINGS clause, "" for none."""
    return _create_table(f"CREATE TABLE t (x UInt8) ENGINE = MergeTree ORDER BY x {settings}")


def _create_table(sql: str) -> nodes.CreateTable:
    """Parse a CREATE TABLE."""
    statement = parse_one(sql)
    assert isinstance(statement, nodes.CreateTable)
    return statement

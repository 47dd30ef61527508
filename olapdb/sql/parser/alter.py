"""ALTER TABLE: its actions, separated by commas.

An action of ClickHouse that olapdb does not have becomes an `OtherAction`, refused later by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

from olapdb import errors
from olapdb.errors import Position
from olapdb.sql import nodes
from olapdb.sql.parser import (
    clauses,
    columns,
    create,
    data,
    expressions,
    named_collections,
    queries,
    refresh,
    statistics,
    storage,
)
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.lookahead import element_end

_PartitionVerb = Literal[
    "DROP", "DETACH", "ATTACH", "REPLACE", "MOVE", "FREEZE", "UNFREEZE", "FETCH", "FORGET"
]
_PARTITION_VERBS: tuple[_PartitionVerb, ...] = get_args(_PartitionVerb)
_REMOVED = ("DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL", "COMMENT", "CODEC", "TTL", "SETTINGS")
_OTHER_VERBS = ("APPLY", "REWRITE")
_OTHER_MODIFIED = ("DATABASE",)


def _parse_alter_database(cursor: TokenCursor, position: Position) -> nodes.AlterDatabase:
    """Parse what follows ALTER DATABASE: `d MODIFY COMMENT 'c'` or `d MODIFY SETTING a = 1, …`."""
    name = cursor.identifier("a database")
    clauses.refuse_on_cluster(cursor)
    cursor.expect("MODIFY")
    if cursor.take("SETTING"):
        settings = clauses.parse_settings(cursor)
        return nodes.AlterDatabase(name, settings=settings, position=position)
    cursor.expect("COMMENT")
    return nodes.AlterDatabase(name, clauses.parse_comment(cursor), position=position)


def parse_alter(cursor: TokenCursor) -> nodes.Statement:
    """Parse `ALTER TABLE t action, … [SETTINGS …]`, ALTER DATABASE, or ALTER NAMED COLLECTION."""
    position = cursor.position()
    cursor.expect("ALTER")
    if cursor.take("DATABASE"):
        return _parse_alter_database(cursor, position)
    if cursor.take("NAMED", "COLLECTION"):
        return named_collections.parse_alter_collection(cursor, position)
    temporary = cursor.take("TEMPORARY")
    if not cursor.take_one_of("TABLE", "VIEW"):
        raise cursor.refused(
            f"ALTER {cursor.token.text.upper()}", "ALTER TABLE is for tables and views."
        )
    table = cursor.table_name()
    clauses.refuse_on_cluster(cursor)
    actions: list[nodes.AlterAction] = []
    for action in cursor.comma_separated(_parse_action):
        actions += _flattened(action)
    settings = clauses.parse_settings_clause(cursor)
    return nodes.Alter(table, tuple(actions), settings, temporary, position=position)


def _flattened(action: nodes.AlterAction) -> tuple[nodes.AlterAction, ...]:
    """Return ADD COLUMN of a Nested as one action for each array, each behind the one before."""
    if not isinstance(action, nodes.AddColumn) or not action.column.nested:
        return (action,)
    actions: list[nodes.AlterAction] = []
    first, after = action.first, action.after
    for column in action.column.flattened():
        actions.append(replace(action, column=column, first=first, after=after))
        if first or after is not None:
            first, after = False, column.name
    return tuple(actions)


def _parse_action(cursor: TokenCursor) -> nodes.AlterAction:
    """Parse one action, in parentheses too; an action that olapdb lacks becomes OtherAction.

    An OtherAction holds the text up to the next comma, so that the executor can refuse it."""
    if cursor.take("("):  # ALTER TABLE t (ADD COLUMN …), as ClickHouse formats it
        cursor.enter()
        action = _parse_action(cursor)
        cursor.expect(")")
        cursor.leave()
        return action
    start = cursor.at
    known_action = _parse_known_action(cursor)
    if known_action is not None:
        return known_action
    cursor.move_to(start)
    position = cursor.position()
    cursor.move_to(element_end(cursor))
    return nodes.OtherAction(cursor.text_since(start), position=position)


def _parse_known_action(cursor: TokenCursor) -> nodes.AlterAction | None:
    """Parse an action; return None if ClickHouse has it and olapdb does not, wherever the cursor
    then is. Raise SyntaxError if no action is next."""
    position = cursor.position()
    if cursor.key_after(1) in ("PARTITION", "PART"):
        verb = cursor.take_one_of(*_PARTITION_VERBS)
        if verb:
            return _parse_partition_action(cursor, verb, position)
    if cursor.key_after(1) == "STATISTICS":
        verb_of_statistics = cursor.take_one_of(*get_args(statistics.Verb))
        if verb_of_statistics and cursor.take("STATISTICS"):
            return statistics.parse_statistics_action(cursor, verb_of_statistics, position)
    if cursor.take("APPLY", "PATCHES") or cursor.take("APPLY", "DELETED", "MASK"):
        storage.parse_in_partition(cursor)
        return nodes.SettledAction(position=position)
    parse = _ACTIONS.get(cursor.key)
    if parse is not None:
        cursor.advance()
        return parse(cursor, position)
    if cursor.take("REMOVE", "TTL"):
        return nodes.ModifyTtl((), position=position)
    if cursor.take("REMOVE", "SAMPLE", "BY"):
        return nodes.ModifySampleBy(None, position=position)
    if cursor.key in _OTHER_VERBS:
        return None
    raise cursor.expected("an action such as ADD COLUMN or MODIFY QUERY")


# --- actions, behind their first word


def _parse_add(cursor: TokenCursor, position: Position) -> nodes.AlterAction | None:
    """Parse ADD of a column, an index, a projection or a constraint."""
    if cursor.take("COLUMN"):
        if_not_exists = cursor.if_not_exists()
        column, _ = columns.parse_column(cursor)
        first, after = _parse_place(cursor)
        return nodes.AddColumn(column, if_not_exists, first, after, position=position)
    if cursor.take("INDEX"):
        if_not_exists = cursor.if_not_exists()
        index = columns.parse_index(cursor)
        first, after = _parse_place(cursor)
        return nodes.IndexAction(
            "ADD", index.name, index, if_not_exists, first, after, position=position
        )
    if cursor.take("CONSTRAINT"):
        if_not_exists = cursor.if_not_exists()
        constraint = columns.parse_constraint(cursor)
        return nodes.ConstraintAction(
            "ADD", constraint.name, constraint, if_not_exists, position=position
        )
    if cursor.take("PROJECTION"):
        if_not_exists = cursor.if_not_exists()
        projection = columns.parse_projection(cursor)
        first, after = _parse_place(cursor)
        return nodes.ProjectionAction(
            "ADD", projection.name, projection, if_not_exists, first, after, position=position
        )
    raise cursor.expected("COLUMN, INDEX, CONSTRAINT or PROJECTION")


def _parse_place(cursor: TokenCursor) -> tuple[bool, str | None]:
    """Parse `FIRST` or `AFTER column`; return whether FIRST, and the column of AFTER or None."""
    if cursor.take("FIRST"):
        return True, None
    return False, cursor.dotted_name("a column") if cursor.take("AFTER") else None


def _parse_drop(cursor: TokenCursor, position: Position) -> nodes.AlterAction | None:
    """Parse DROP of a column, an index, a constraint, a projection or a detached partition.

    DROP PARTITION is parsed by `_parse_partition_action`."""
    if cursor.take("COLUMN"):
        if_exists = cursor.if_exists()
        return nodes.DropColumn(cursor.dotted_name("a column"), if_exists, position=position)
    if cursor.take("INDEX"):
        return parse_drop_index(cursor, position)
    if cursor.take("CONSTRAINT"):
        if_exists = cursor.if_exists()
        name = cursor.identifier("the name of a constraint")
        return nodes.ConstraintAction("DROP", name, None, if_exists, position=position)
    if cursor.take("DETACHED"):
        partition = storage.parse_partition(cursor)
        return nodes.PartitionAction("DROP DETACHED", partition, position=position)
    if cursor.take("PROJECTION"):
        if_exists = cursor.if_exists()
        name = cursor.identifier("the name of a projection")
        return nodes.ProjectionAction("DROP", name, None, if_exists, position=position)
    raise cursor.expected("COLUMN, INDEX, CONSTRAINT, PARTITION or PROJECTION")


def parse_drop_index(cursor: TokenCursor, position: Position) -> nodes.IndexAction:
    """Parse `[IF EXISTS] name`, behind DROP INDEX."""
    if_exists = cursor.if_exists()
    name = cursor.identifier("the name of an index")
    return nodes.IndexAction("DROP", name, None, if_exists, position=position)


def _parse_clear(cursor: TokenCursor, position: Position) -> nodes.AlterAction | None:
    """Parse `COLUMN | INDEX | PROJECTION [IF EXISTS] name [IN PARTITION …]` after CLEAR; None if neither keyword
    is next."""
    if cursor.take("COLUMN"):
        if_exists = cursor.if_exists()
        name = cursor.dotted_name("a column")
        partition = storage.parse_in_partition(cursor)
        return nodes.ClearColumn(name, partition, if_exists, position=position)
    if cursor.take("INDEX"):
        return _parse_index_in_partition(cursor, "CLEAR", position)
    if cursor.take("PROJECTION"):
        return _parse_projection_in_partition(cursor, "CLEAR", position)
    return None


def _parse_index_in_partition(
    cursor: TokenCursor, action: Literal["CLEAR", "MATERIALIZE"], position: Position
) -> nodes.IndexAction:
    """Parse `[IF EXISTS] index [IN PARTITION …]` behind CLEAR or MATERIALIZE INDEX."""
    if_exists = cursor.if_exists()
    name = cursor.identifier("the name of an index")
    partition = storage.parse_in_partition(cursor)
    return nodes.IndexAction(
        action, name, if_exists=if_exists, partition=partition, position=position
    )


def _parse_projection_in_partition(
    cursor: TokenCursor, action: Literal["CLEAR", "MATERIALIZE"], position: Position
) -> nodes.ProjectionAction:
    """Parse `[IF EXISTS] projection [IN PARTITION …]` behind CLEAR or MATERIALIZE PROJECTION."""
    if_exists = cursor.if_exists()
    name = cursor.identifier("the name of a projection")
    partition = storage.parse_in_partition(cursor)
    return nodes.ProjectionAction(
        action, name, if_exists=if_exists, partition=partition, position=position
    )


def _parse_rename(cursor: TokenCursor, position: Position) -> nodes.RenameColumn:
    """Parse `COLUMN [IF EXISTS] a TO b` behind RENAME."""
    cursor.expect("COLUMN")
    if_exists = cursor.if_exists()
    name = cursor.dotted_name("a column")
    cursor.expect("TO")
    return nodes.RenameColumn(name, cursor.dotted_name("a column"), if_exists, position=position)


def _parse_comment(cursor: TokenCursor, position: Position) -> nodes.CommentColumn:
    """Parse `COLUMN [IF EXISTS] c 'text'` behind COMMENT."""
    cursor.expect("COLUMN")
    if_exists = cursor.if_exists()
    name = cursor.dotted_name("a column")
    comment = clauses.parse_comment(cursor)
    return nodes.CommentColumn(name, comment, if_exists, position=position)


def _parse_materialize(cursor: TokenCursor, position: Position) -> nodes.AlterAction | None:
    """Parse MATERIALIZE of a column, an index or a projection or the TTL."""
    if cursor.take("COLUMN"):
        name = cursor.dotted_name("a column")
        partition = storage.parse_in_partition(cursor)
        return nodes.MaterializeColumn(name, partition, position=position)
    if cursor.take("INDEX"):
        return _parse_index_in_partition(cursor, "MATERIALIZE", position)
    if cursor.take("TTL"):
        return nodes.MaterializeTtl(storage.parse_in_partition(cursor), position=position)
    if cursor.take("PROJECTION"):
        return _parse_projection_in_partition(cursor, "MATERIALIZE", position)
    raise cursor.expected("COLUMN, INDEX, PROJECTION or TTL")


def _parse_reset(cursor: TokenCursor, position: Position) -> nodes.ModifySetting:
    """Parse `SETTING a, b` behind RESET; stop before a comma that begins the next action."""
    cursor.expect("SETTING")
    names = [cursor.dotted_name("the name of a setting")]
    while cursor.key == "," and cursor.kind_after(1) == "word" and _ends_setting(cursor, 2):
        cursor.advance()
        names.append(cursor.dotted_name("the name of a setting"))
    return nodes.ModifySetting((), tuple(names), position=position)


def _ends_setting(cursor: TokenCursor, ahead: int) -> bool:
    """Return whether the token `ahead` tokens on ends a setting."""
    return cursor.kind_after(ahead) == "end" or cursor.key_after(ahead) in (",", "SETTINGS", ")")


def _parse_delete(cursor: TokenCursor, position: Position) -> nodes.DeleteWhere:
    """Parse `[IN PARTITION …] WHERE condition` behind DELETE."""
    partition = storage.parse_in_partition(cursor)
    cursor.expect("WHERE")
    return nodes.DeleteWhere(expressions.parse_expression(cursor), partition, position=position)


def _parse_update(cursor: TokenCursor, position: Position) -> nodes.UpdateWhere:
    """Parse `c = x, … [IN PARTITION …] WHERE condition` behind UPDATE."""
    assignments = data.parse_assignments(cursor)
    partition = storage.parse_in_partition(cursor)
    cursor.expect("WHERE")
    where = expressions.parse_expression(cursor)
    return nodes.UpdateWhere(assignments, where, partition, position=position)


# --- MODIFY


def _parse_modify(cursor: TokenCursor, position: Position) -> nodes.AlterAction | None:
    """Parse the action behind MODIFY; None for a kind in `_OTHER_MODIFIED`, which olapdb does not have."""
    if cursor.take("COLUMN"):
        return _parse_modify_column(cursor)
    if cursor.take("ORDER", "BY"):
        return nodes.ModifyOrderBy(storage.parse_sorting_key(cursor), position=position)
    if cursor.take("SAMPLE", "BY"):
        return nodes.ModifySampleBy(expressions.parse_expression(cursor), position=position)
    if cursor.take("TTL"):
        return nodes.ModifyTtl(storage.parse_ttl(cursor), position=position)
    if cursor.take("SETTING"):
        return nodes.ModifySetting(clauses.parse_settings(cursor), position=position)
    if cursor.take("QUERY"):
        return nodes.ModifyQuery(queries.parse_query(cursor), position=position)
    if cursor.key == "REFRESH":
        return nodes.ModifyRefresh(refresh.parse_refresh(cursor), position=position)
    if cursor.take("COMMENT"):
        return nodes.ModifyComment(clauses.parse_comment(cursor), position=position)
    if cursor.key in ("SQL", "DEFINER"):
        create.skip_definer(cursor)
        return nodes.SettledAction(of_view=True, position=position)
    if cursor.key in _OTHER_MODIFIED:
        return None
    raise cursor.expected("COLUMN, QUERY, REFRESH, ORDER BY, TTL, SETTING or COMMENT")


def _parse_modify_column(cursor: TokenCursor) -> nodes.ModifyColumn | None:
    """Parse `c type … [REMOVE property | MODIFY SETTING a = 1, … | RESET SETTING a, …]`, behind
    MODIFY COLUMN or ALTER COLUMN."""
    position = cursor.position()
    if_exists = cursor.if_exists()
    if (cursor.key_after(1), cursor.key_after(2), cursor.key_after(3)) == ("ADD", "ENUM", "VALUES"):
        return _parse_enum_values(cursor, position, if_exists)
    column, _ = columns.parse_column(cursor)
    if column.modifier and column.type is None:
        raise errors.SyntaxError(
            f"{column.modifier} needs the type of the column before it.",
            hint=f"Write MODIFY COLUMN {column.name} type {column.modifier}.",
            position=position,
        )
    removed = None
    if cursor.take("REMOVE"):
        removed = cursor.take_one_of(*_REMOVED)
        if not removed:
            raise cursor.expected("what to remove: " + ", ".join(_REMOVED))
    elif cursor.take("MODIFY", "SETTING"):
        settings = clauses.parse_settings(cursor)
        return nodes.ModifyColumn(column, if_exists, settings=settings, position=position)
    elif cursor.take("RESET", "SETTING"):
        names = cursor.comma_separated(lambda c: c.identifier("the name of a setting"))
        settings = tuple(nodes.Setting(name, None, position=position) for name in names)
        return nodes.ModifyColumn(column, if_exists, settings=settings, position=position)
    first, after = _parse_place(cursor)
    return nodes.ModifyColumn(column, if_exists, removed, first, after, position=position)


def _parse_enum_values(
    cursor: TokenCursor, position: Position, if_exists: bool
) -> nodes.ModifyColumn:
    """Parse `c ADD ENUM VALUES ('text' [= number], …)`.

    Raises EmptyDataPassed for no element, and UnexpectedAstStructure for one that is no text."""
    column = nodes.ColumnDefinition(cursor.dotted_name("a column"), None, position=position)
    cursor.expect("ADD", "ENUM", "VALUES")
    cursor.expect("(")
    if cursor.key == ")":
        raise errors.EmptyDataPassed(
            "ADD ENUM VALUES names no element.", position=cursor.position()
        )
    elements = cursor.comma_separated(_parse_enum_element)
    cursor.expect(")")
    return nodes.ModifyColumn(column, if_exists, elements=elements, position=position)


def _parse_enum_element(cursor: TokenCursor) -> tuple[str, int | None]:
    """Parse `'text'` or `'text' = number`."""
    if cursor.token.kind != "string":
        raise errors.UnexpectedAstStructure(
            "Elements of an Enum have the form 'text' = number or 'text'.",
            position=cursor.position(),
        )
    text = cursor.string()
    if not cursor.take("="):
        return text, None
    sign = -1 if cursor.take("-") else 1
    return text, sign * cursor.integer()


def _parse_alter_column(cursor: TokenCursor, _: Position) -> nodes.ModifyColumn | None:
    """Parse `COLUMN c TYPE T …`, or what MODIFY COLUMN takes without a type, behind ALTER.

    Raises SyntaxError for a type without the word TYPE before it."""
    cursor.expect("COLUMN")
    start = cursor.at
    position = cursor.position()
    if_exists = cursor.if_exists()
    name_start = cursor.at
    cursor.dotted_name("a column")
    has_type = cursor.key == "TYPE"
    if not has_type:
        if cursor.key not in columns.AFTER_NAME and not cursor.sees("ADD", "ENUM"):
            raise cursor.expected("TYPE, DEFAULT, REMOVE, COMMENT, CODEC, TTL or SETTINGS")
        cursor.move_to(start)
        return _parse_modify_column(cursor)
    cursor.move_to(name_start)
    column = columns.parse_column(cursor, before_type="TYPE")[0]
    first, after = _parse_place(cursor)
    return nodes.ModifyColumn(column, if_exists, None, first, after, position=position)


# --- partitions


def _parse_partition_action(
    cursor: TokenCursor, verb: _PartitionVerb, position: Position
) -> nodes.PartitionAction | None:
    """Parse the rest of an action from PARTITION or PART on; `verb` is before it.

    None for what olapdb does not support: MOVE TO SHARD; FETCH FROM."""
    partition = storage.parse_partition(cursor)
    table: nodes.TableName | None = None
    if verb == "MOVE":
        for place in ("MOVE TO DISK", "MOVE TO VOLUME"):
            if cursor.take(*place.split()[1:]):
                target = cursor.string("the name of a disk or volume")
                return nodes.PartitionAction(place, partition, target=target, position=position)
        if not cursor.take("TO", "TABLE"):
            return None  # TO SHARD
        table = cursor.table_name()
    elif verb in ("REPLACE", "ATTACH", "FETCH") and cursor.take("FROM"):
        if verb == "FETCH":
            return None
        table = cursor.table_name()
    elif verb == "REPLACE":
        raise cursor.expected("FROM")
    name = _parse_copy_name(cursor, verb) if verb in ("FREEZE", "UNFREEZE") else ""
    return nodes.PartitionAction(verb, partition, table, name, position=position)


def _parse_copy_name(cursor: TokenCursor, verb: str) -> str:
    """Parse `WITH NAME 'name'`, which FREEZE may leave out: then it is empty."""
    if verb == "FREEZE" and not cursor.sees("WITH", "NAME"):
        return ""
    cursor.expect("WITH")
    cursor.expect("NAME")
    return cursor.string("the name of the copy")


def _parse_freeze(cursor: TokenCursor, position: Position) -> nodes.PartitionAction:
    """Parse the rest of FREEZE of all partitions."""
    name = _parse_copy_name(cursor, "FREEZE")
    everything = nodes.PartitionReference("ALL")
    return nodes.PartitionAction("FREEZE", everything, target=name, position=position)


def _parse_unfreeze(cursor: TokenCursor, position: Position) -> nodes.PartitionAction:
    """Parse the rest of UNFREEZE of all partitions."""
    name = _parse_copy_name(cursor, "UNFREEZE")
    everything = nodes.PartitionReference("ALL")
    return nodes.PartitionAction("UNFREEZE", everything, target=name, position=position)


_ACTIONS: dict[str, Callable[[TokenCursor, Position], nodes.AlterAction | None]] = {
    "ADD": _parse_add,
    "DROP": _parse_drop,
    "CLEAR": _parse_clear,
    "RENAME": _parse_rename,
    "MODIFY": _parse_modify,
    "ALTER": _parse_alter_column,
    "COMMENT": _parse_comment,
    "MATERIALIZE": _parse_materialize,
    "RESET": _parse_reset,
    "DELETE": _parse_delete,
    "UPDATE": _parse_update,
    "FREEZE": _parse_freeze,
    "UNFREEZE": _parse_unfreeze,
}

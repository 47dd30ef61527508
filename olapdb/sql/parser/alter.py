"""ALTER TABLE: its actions, separated by commas."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from olapdb.errors import Position
from olapdb.sql import nodes
from olapdb.sql.parser.definitions import DefinitionParser

_PARTITION_ACTIONS: dict[
    str, Literal["DROP", "DETACH", "ATTACH", "REPLACE", "MOVE", "FREEZE", "FETCH"]
] = {
    "DROP": "DROP",
    "DETACH": "DETACH",
    "ATTACH": "ATTACH",
    "REPLACE": "REPLACE",
    "MOVE": "MOVE",
    "FREEZE": "FREEZE",
    "FETCH": "FETCH",
}
_REMOVED = ("DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL", "COMMENT", "CODEC", "TTL", "SETTINGS")


class AlterParser(DefinitionParser):
    """Everything that begins with ALTER; what olapdb may refuse later is an OtherAction."""

    def alter(self) -> nodes.Alter:
        position = self.position()
        self.expect("ALTER")
        self.take("TEMPORARY")
        if self.keys[self.at] not in ("TABLE", "VIEW"):
            raise self.refused(
                f"ALTER {self.token.text.upper()}", "ALTER TABLE is for tables and views."
            )
        self.advance()
        table = self.table_name()
        self.refuse_on_cluster()
        actions = list(_flattened(self._action()))
        while self.take(","):
            actions += _flattened(self._action())
        return nodes.Alter(table, tuple(actions), self.settings_clause(), position=position)

    def _action(self) -> nodes.AlterAction:
        start = self.at
        position = self.position()
        if self.take("("):  # ALTER TABLE t (ADD COLUMN …), as ClickHouse formats it
            action = self._action()
            self.expect(")")
            return action
        verb = self.keys[self.at]
        if self.key_after(1) in ("PARTITION", "PART") and verb in _PARTITION_ACTIONS:
            return self._partition_action(_PARTITION_ACTIONS[verb])
        match verb:
            case "ADD":
                found = self._add()
            case "DROP":
                found = self._drop_action()
            case "CLEAR":
                found = self._clear()
            case "RENAME":
                found = self._rename_column()
            case "MODIFY" | "ALTER":
                found = self._modify()
            case "COMMENT":
                found = self._comment_column()
            case "MATERIALIZE":
                found = self._materialize()
            case "RESET":
                found = self._reset_setting()
            case "REMOVE" if self.key_after(1) == "TTL":
                self.at += 2
                found = nodes.ModifyTtl((), position=position)
            case "DELETE":
                found = self._delete()
            case "UPDATE":
                found = self._update()
            case "FREEZE":
                found = self._freeze()
            case "UNFREEZE" | "FORGET" | "APPLY" | "REWRITE":
                found = None
            case _:
                raise self.expected("an action such as ADD COLUMN or MODIFY QUERY")
        if found is not None:
            return found
        self.at = start
        return self._other()

    def _other(self) -> nodes.OtherAction:
        """The text up to a comma that is in no parentheses, SETTINGS, or the end."""
        start = self.at
        position = self.position()
        depth = 0
        while not self.ended:
            key = self.keys[self.at]
            if key in ("(", "[", "{"):
                depth += 1
            elif key in (")", "]", "}"):
                if depth == 0:
                    break
                depth -= 1
            elif depth == 0 and key == ",":
                break
            self.advance()
        return nodes.OtherAction(self.text_since(start), position=position)

    # --- columns

    def _add(self) -> nodes.AlterAction | None:
        position = self.position(self.advance())
        if self.take("COLUMN"):
            if_not_exists = self.if_not_exists()
            column, _ = self.column_definition()
            first, after = self._place()
            return nodes.AddColumn(column, if_not_exists, first, after, position=position)
        if self.take("INDEX"):
            unless_there = self.if_not_exists()
            index = self.index_definition()
            first, after = self._place()
            return nodes.IndexAction(
                "ADD", index.name, index, unless_there, first, after, position=position
            )
        if self.take("CONSTRAINT"):
            unless_there = self.if_not_exists()
            constraint = self.constraint_definition()
            return nodes.ConstraintAction(
                "ADD", constraint.name, constraint, unless_there, position=position
            )
        if self.keys[self.at] in ("PROJECTION", "STATISTICS"):
            return None
        raise self.expected("COLUMN, INDEX, CONSTRAINT or PROJECTION")

    def _place(self) -> tuple[bool, str | None]:
        """`FIRST` or `AFTER column`."""
        if self.take("FIRST"):
            return True, None
        return False, self.dotted_name("a column") if self.take("AFTER") else None

    def _drop_action(self) -> nodes.AlterAction | None:
        position = self.position(self.advance())
        if self.take("COLUMN"):
            if_exists = self.if_exists()
            return nodes.DropColumn(self.dotted_name("a column"), if_exists, position=position)
        if self.take("INDEX"):
            if_exists = self.if_exists()
            name = self.identifier("the name of an index")
            return nodes.IndexAction("DROP", name, None, if_exists, position=position)
        if self.take("CONSTRAINT"):
            if_exists = self.if_exists()
            name = self.identifier("the name of a constraint")
            return nodes.ConstraintAction("DROP", name, None, if_exists, position=position)
        if self.take("DETACHED"):
            reference = self.partition_reference()
            return nodes.PartitionAction("DROP DETACHED", reference, position=position)
        if self.keys[self.at] in ("PROJECTION", "STATISTICS"):
            return None
        raise self.expected("COLUMN, INDEX, CONSTRAINT, PARTITION or PROJECTION")

    def _clear(self) -> nodes.AlterAction | None:
        position = self.position(self.advance())
        if self.take("COLUMN"):
            if_exists = self.if_exists()
            name = self.dotted_name("a column")
            return nodes.ClearColumn(name, self._in_partition(), if_exists, position=position)
        if self.take("INDEX"):
            return self._index_in_partition("CLEAR", position)
        return None

    def _index_in_partition(
        self, action: Literal["CLEAR", "MATERIALIZE"], position: Position
    ) -> nodes.IndexAction:
        if_exists = self.if_exists()
        name = self.identifier("the name of an index")
        partition = self._in_partition()
        return nodes.IndexAction(
            action, name, if_exists=if_exists, partition=partition, position=position
        )

    def _rename_column(self) -> nodes.AlterAction:
        position = self.position(self.advance())
        self.expect("COLUMN")
        if_exists = self.if_exists()
        name = self.dotted_name("a column")
        self.expect("TO")
        return nodes.RenameColumn(name, self.dotted_name("a column"), if_exists, position=position)

    def _comment_column(self) -> nodes.AlterAction:
        position = self.position(self.advance())
        self.expect("COLUMN")
        if_exists = self.if_exists()
        name = self.dotted_name("a column")
        return nodes.CommentColumn(
            name, self.string("the comment, quoted"), if_exists, position=position
        )

    def _materialize(self) -> nodes.AlterAction | None:
        position = self.position(self.advance())
        if self.take("COLUMN"):
            name = self.dotted_name("a column")
            return nodes.MaterializeColumn(name, self._in_partition(), position=position)
        if self.take("INDEX"):
            return self._index_in_partition("MATERIALIZE", position)
        if self.take("TTL"):
            return nodes.MaterializeTtl(self._in_partition(), position=position)
        if self.keys[self.at] in ("PROJECTION", "STATISTICS"):
            return None
        raise self.expected("COLUMN, INDEX, PROJECTION or TTL")

    # --- MODIFY

    def _modify(self) -> nodes.AlterAction | None:
        position = self.position()
        changed = self.advance().key == "MODIFY"
        if self.take("COLUMN"):
            return self._modify_column(changed)
        if not changed:
            raise self.expected("COLUMN")
        if self.take("ORDER", "BY"):
            return nodes.ModifyOrderBy(self.sorting_key(), position=position)
        if self.take("TTL"):
            return nodes.ModifyTtl(self.ttl_items(), position=position)
        if self.take("SETTING"):
            return nodes.ModifySetting(self.settings(), position=position)
        if self.take("QUERY"):
            return nodes.ModifyQuery(self.query(), position=position)
        if self.take("COMMENT"):
            return nodes.ModifyComment(self.string("the comment, quoted"), position=position)
        if self.keys[self.at] in ("REFRESH", "SAMPLE", "SQL", "DEFINER", "STATISTICS", "DATABASE"):
            return None
        raise self.expected("COLUMN, QUERY, ORDER BY, TTL, SETTING or COMMENT")

    def _modify_column(self, modify: bool) -> nodes.AlterAction | None:
        """`MODIFY COLUMN c …` and `ALTER COLUMN c TYPE …`."""
        position = self.position()
        if_exists = self.if_exists()
        if not modify and self.key_after(1) == "TYPE":
            name = self.dotted_name("a column")
            self.expect("TYPE")
            column = nodes.ColumnDefinition(name, self.data_type(), position=position)
            first, after = self._place()
            return nodes.ModifyColumn(column, if_exists, None, first, after, position=position)
        column, _ = self.column_definition()
        removed = None
        if self.take("REMOVE"):
            removed = self.take_one_of(*_REMOVED)
            if not removed:
                raise self.expected("what to remove: " + ", ".join(_REMOVED))
        elif self.sees("MODIFY", "SETTING") or self.sees("RESET", "SETTING"):
            return None
        first, after = self._place()
        return nodes.ModifyColumn(column, if_exists, removed, first, after, position=position)

    def _reset_setting(self) -> nodes.AlterAction:
        position = self.position(self.advance())
        self.expect("SETTING")
        names = [self.dotted_name("the name of a setting")]
        while self.sees(",") and self.kind_after(1) == "word" and self._setting_name_follows():
            self.advance()
            names.append(self.dotted_name("the name of a setting"))
        return nodes.ModifySetting((), tuple(names), position=position)

    def _setting_name_follows(self) -> bool:
        return self.kind_after(2) == "end" or self.key_after(2) in (",", "SETTINGS", ")")

    # --- rows

    def _in_partition(self) -> nodes.PartitionReference | None:
        return self.partition_reference() if self.take("IN") else None

    def _delete(self) -> nodes.AlterAction:
        position = self.position(self.advance())
        partition = self._in_partition()
        self.expect("WHERE")
        return nodes.DeleteWhere(self.expression(), partition, position=position)

    def _update(self) -> nodes.AlterAction:
        position = self.position(self.advance())
        assignments = self.assignments()
        partition = self._in_partition()
        self.expect("WHERE")
        return nodes.UpdateWhere(assignments, self.expression(), partition, position=position)

    def assignments(self) -> tuple[tuple[str, nodes.Expression], ...]:
        """`a = x, b = y`; a value stops before IN PARTITION."""
        found: list[tuple[str, nodes.Expression]] = []
        while True:
            name = self.dotted_name("a column")
            self.expect("=")
            found.append((name, self.expression()))
            if not self.take(","):
                return tuple(found)

    # --- partitions

    def _partition_action(
        self, verb: Literal["DROP", "DETACH", "ATTACH", "REPLACE", "MOVE", "FREEZE", "FETCH"]
    ) -> nodes.AlterAction:
        start = self.at
        position = self.position(self.advance())
        reference = self.partition_reference()
        if verb == "MOVE":
            if not self.take("TO", "TABLE"):
                self.at = start
                return self._other()  # TO DISK, TO VOLUME, TO SHARD
            return nodes.PartitionAction(verb, reference, self.table_name(), position=position)
        if verb in ("REPLACE", "ATTACH", "FETCH") and self.take("FROM"):
            if verb == "FETCH":
                self.at = start
                return self._other()
            return nodes.PartitionAction(verb, reference, self.table_name(), position=position)
        if verb == "REPLACE":
            raise self.expected("FROM")
        if self.sees("WITH", "NAME"):
            self.at = start
            return self._other()
        return nodes.PartitionAction(verb, reference, position=position)

    def _freeze(self) -> nodes.AlterAction | None:
        """FREEZE without a partition is of all."""
        position = self.position(self.advance())
        if self.sees("WITH", "NAME"):
            return None
        return nodes.PartitionAction("FREEZE", nodes.PartitionReference("ALL"), position=position)


def _flattened(action: nodes.AlterAction) -> tuple[nodes.AlterAction, ...]:
    """ADD COLUMN of a Nested as one action for each array, each behind the one before."""
    if not isinstance(action, nodes.AddColumn) or not action.column.nested:
        return (action,)
    made: list[nodes.AlterAction] = []
    first, after = action.first, action.after
    for column in action.column.flattened():
        made.append(replace(action, column=column, first=first, after=after))
        if first or after is not None:
            first, after = False, column.name
    return tuple(made)

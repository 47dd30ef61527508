"""ALTER TABLE actions on columns: pure functions from Table to Table.

    draft = ColumnsDraft(table)
    draft.add(AddColumn(…)); draft.rename(RenameColumn(…))
    draft.finished()        the table of the next schema version

Column ids are never reused: a column that is dropped and added again is a new one. `Table.past`
keeps the names and types that older parts have for a column (see `olapdb.model.columns`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import TypeVar

from olapdb import errors
from olapdb.engine.expiry import rule_expressions, ttl_rules
from olapdb.engine.layout import TableLayout
from olapdb.model.columns import next_column_id
from olapdb.model.schema import Column, PastColumn, Table
from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.literals import quote_name
from olapdb.statements.ddl.column_checks import column_names_in, constraint_from
from olapdb.statements.ddl.column_renames import with_column_renamed
from olapdb.statements.ddl.enum_elements import with_enum_elements
from olapdb.statements.ddl.statistics import with_settings, with_statistics
from olapdb.statements.ddl.ttl import column_ttl_text
from olapdb.storage.column_statistics import bounds_hold
from olapdb.types import Array, DataType, Enum, is_nullable, plain

Action = TypeVar("Action", bound=nodes.AlterAction)


@dataclass
class ColumnsDraft:
    """A table while it is altered: `before` is the original, `table` the present draft.

    `renamed` has (old name, new name) of each rename in order, `renames` the table before and after
    each. Methods raise errors of ClickHouse for changes that are not possible.
    """

    before: Table
    renamed: list[tuple[str, str]] = field(default_factory=list)
    renames: list[tuple[Table, Table]] = field(default_factory=list)
    table: Table = field(init=False)

    def __post_init__(self) -> None:
        self.table = self.before

    @property
    def version(self) -> int:
        """Return the schema version that the ALTER gives the table: the old one plus 1."""
        return self.before.version + 1

    def is_new(self, column: Column) -> bool:
        """Return whether this ALTER adds the column."""
        return all(column.id != old.id for old in self.before.columns)

    def finished(self) -> Table:
        """Return the altered table with the next version, and with the former names and types of
        its columns in `past`."""
        by_id = {column.id: column for column in self.table.columns}
        past = [former for former in self.table.past if former.column_id in by_id]
        for old in self.before.stored_columns:
            new = by_id.get(old.id)
            if new is None or not new.stored:
                continue
            keeps_bounds = bounds_hold(old.type, new.type)
            if old.name != new.name or old.type != new.type:
                past.append(PastColumn(old.id, self.version, old.name, old.type.name, keeps_bounds))
        return replace(
            self.table,
            past=tuple(past),
            version=self.version,
            last_column_id=next_column_id(self.table) - 1,
        )

    # --- ADD and DROP

    def add(self, action: nodes.AddColumn) -> None:
        """Apply ADD COLUMN. Raise DuplicateColumn, BadArguments without a type."""
        definition = action.column
        if self.table.column(definition.name) is not None:
            if action.if_not_exists:
                return
            raise errors.DuplicateColumn(
                f"Cannot add column {definition.name}: {self._where} has it already.",
                hint="Say IF NOT EXISTS.",
                position=action.position,
            )
        if definition.type is None:
            raise errors.BadArguments(
                f"Column {definition.name} needs a type to be added.", position=action.position
            )
        column = Column(
            next_column_id(self.table),
            definition.name,
            definition.type,
            definition.default_kind,
            _sql_text(definition.default),
            definition.comment,
            _codec_text(definition),
            self.version,
            column_ttl_text(definition.ttl),
        )
        column = with_statistics(column, definition)
        self._put(column, action.first, action.after, action)

    def drop(self, action: nodes.DropColumn) -> None:
        """Apply DROP COLUMN. Raise an error for the last column, and for one that a key, default,
        constraint, index or TTL uses."""
        column = self._column(action.name, action.if_exists, "drop", action)
        if column is None:
            return
        self._refuse_key(column, "DROP", action)
        others = [other for other in self.table.columns if other.default and other.id != column.id]
        dependent = next(
            (
                other
                for other in others
                if column.name in column_names_in(other.default, self.table)
            ),
            None,
        )
        if dependent is not None:
            raise errors.IllegalColumn(
                f"Cannot drop column {column.name} of {self._where}: column {dependent.name} depends on"
                " it.",
                hint=f"Drop {dependent.name} first, or give it another default.",
                position=action.position,
            )
        for label, text in self._expressions(dropped=column):
            if column.name in column_names_in(text, self.table):
                raise errors.UnknownIdentifier(
                    f"Cannot drop column {column.name} of {self._where}: {label} names it.",
                    hint=f"Remove {label} first.",
                    position=action.position,
                )
        remaining = tuple(other for other in self.table.columns if other.id != column.id)
        if not remaining:
            raise errors.BadArguments(
                f"Cannot drop all columns of {self._where}.",
                hint="DROP TABLE drops the table.",
                position=action.position,
            )
        self.table = replace(
            self.table, columns=remaining, last_column_id=next_column_id(self.table) - 1
        )

    # --- RENAME

    def rename(self, action: nodes.RenameColumn) -> None:
        """Apply RENAME COLUMN, and rename the column in defaults, constraints, indexes, settings
        and the TTL. Raise an error for key columns and existing names."""
        self._check_structure(action)
        column = self._column(action.name, action.if_exists, "rename", action)
        if column is None:
            return
        self._refuse_key(column, "RENAME", action)
        self._refuse_new_name(action)
        old_table = self.table
        self.table = with_column_renamed(old_table, action.name, action.new_name)
        self.renamed.append((action.name, action.new_name))
        self.renames.append((old_table, self.table))

    def _refuse_new_name(self, action: nodes.RenameColumn) -> None:
        """Raise an error if the table has a column of the new name, or if the same ALTER gave the
        column its present name."""
        if self.table.column(action.new_name) is not None:
            raise errors.DuplicateColumn(
                f"Cannot rename {action.name} to {action.new_name}: {self._where} has such a column.",
                position=action.position,
            )
        if any(new_name == action.name for _, new_name in self.renamed):
            raise errors.NotSupportedError(
                f"{action.name} got this name in the same ALTER.",
                hint="Rename it at once.",
                position=action.position,
            )

    def _check_structure(self, action: nodes.RenameColumn) -> None:
        """Raise an error for renaming a whole nested structure, and for moving an array into or out
        of one."""
        if nested_columns(self.table, action.name):
            raise errors.NotSupportedError(
                f"Cannot rename the nested structure {action.name} of {self._where} as a whole.",
                hint="CREATE a new table, INSERT … SELECT the rows, and EXCHANGE TABLES.",
                position=action.position,
            )
        column = self.table.column(action.name)
        old_parts, new_parts = (name.partition(".") for name in (action.name, action.new_name))
        stays_in_structure = old_parts[:2] == new_parts[:2] or not (old_parts[1] or new_parts[1])
        if column is None or not isinstance(column.type, Array) or stays_in_structure:
            return
        raise errors.BadArguments(
            f"Cannot rename {action.name} to {action.new_name}: a column of a nested structure stays"
            " in it, and another one does not become one.",
            position=action.position,
        )

    # --- MODIFY

    def modify(self, action: nodes.ModifyColumn) -> None:
        """Apply MODIFY COLUMN: another type, default, comment, codec or position, or REMOVE of one
        of these."""
        definition = action.column
        old = self._column(definition.name, action.if_exists, "modify", action)
        if old is None:
            return
        if action.elements:
            new = replace(old, type=with_enum_elements(old, action))
        elif action.settings:
            new = with_settings(old, action.settings)
        else:
            new = self._removed(old, action) if action.remove else self._redefined(old, definition)
        if new.type != old.type:
            self._check_type(old, new, action)
        if old.stored and not new.stored:
            self._refuse_key(old, f"MODIFY to {new.default_kind}", action)
        if new.stored and not old.stored:
            # A new id: older parts have no values of the column, or outdated ones.
            new = replace(new, id=next_column_id(self.table), since=self.version)
        if action.first or action.after not in (None, old.name):
            remaining = tuple(column for column in self.table.columns if column.id != old.id)
            self.table = replace(self.table, columns=remaining, last_column_id=self._ids_so_far())
            self._put(new, action.first, action.after, action)
            return
        columns = tuple(new if column.id == old.id else column for column in self.table.columns)
        self.table = replace(self.table, columns=columns, last_column_id=self._ids_so_far())

    def comment(self, action: nodes.CommentColumn) -> None:
        """Apply COMMENT COLUMN."""
        column = self._column(action.name, action.if_exists, "comment", action)
        if column is not None:
            self._replace(replace(column, comment=action.comment))

    def _redefined(self, old: Column, definition: nodes.ColumnDefinition) -> Column:
        """Return the column with the properties of the definition; omitted ones stay."""
        new = replace(
            old,
            type=old.type if definition.type is None else definition.type,
            comment=definition.comment or old.comment,
            codec=_codec_text(definition) or old.codec,
            ttl=column_ttl_text(definition.ttl) or old.ttl,
        )
        if definition.default_kind:
            new = replace(
                new, default_kind=definition.default_kind, default=_sql_text(definition.default)
            )
        return (
            with_settings(replace(new, settings=""), definition.settings)
            if definition.settings
            else new
        )

    def _removed(self, old: Column, action: nodes.ModifyColumn) -> Column:
        """Return the column without its COMMENT, CODEC, TTL, SETTINGS or default. Raise BadArguments
        if it has none."""
        property_name = str(action.remove)
        properties = {"COMMENT": old.comment, "CODEC": old.codec, "TTL": old.ttl}
        properties["SETTINGS"] = old.settings
        if not properties.get(property_name, old.default_kind == property_name):
            raise errors.BadArguments(
                f"Column {old.name} of {self._where} has no {property_name}: it cannot be removed.",
                position=action.position,
            )
        if property_name == "COMMENT":
            return replace(old, comment="")
        if property_name == "CODEC":
            return replace(old, codec="")
        if property_name == "TTL":
            return replace(old, ttl="")
        if property_name == "SETTINGS":
            return replace(old, settings="")
        return replace(old, default_kind="", default="")

    def _check_type(self, old: Column, new: Column, action: nodes.AlterAction) -> None:
        """Raise AlterOfColumnIsForbidden for another type of a key column, BadArguments if NULLs
        would have no value."""
        if old.name in self._keys() and not _same_key_order(old.type, new.type):
            raise errors.AlterOfColumnIsForbidden(
                f"Cannot change the type of key column {old.name} of {self._where} from {old.type}"
                f" to {new.type}: parts are sorted and split by it.",
                hint="CREATE a new table, INSERT … SELECT the rows, and EXCHANGE TABLES.",
                position=action.position,
            )
        if is_nullable(old.type) and not is_nullable(new.type) and not new.default:
            raise errors.BadArguments(
                f"Cannot convert column {old.name} of {self._where} from {old.type} to {new.type}"
                " without a value for NULL.",
                hint=f"MODIFY COLUMN {old.name} {new.type} DEFAULT …: NULLs become that.",
                position=action.position,
            )

    # --- constraints

    def constraint(self, action: nodes.ConstraintAction) -> None:
        """Apply ADD or DROP CONSTRAINT. Raises BadArguments and IllegalColumn."""
        constraints = dict(self.table.constraints)
        if action.action == "DROP":
            if action.name not in constraints:
                if action.if_exists:
                    return
                raise errors.BadArguments(
                    f"{self._where} has no constraint {action.name}.",
                    hint=f"It has {', '.join(constraints) or 'none'}.",
                    position=action.position,
                )
            remaining = tuple(
                constraint for constraint in self.table.constraints if constraint[0] != action.name
            )
            assumed = tuple(name for name in self.table.assumed if name != action.name)
            self.table = replace(self.table, constraints=remaining, assumed=assumed)
            return
        assert action.constraint is not None
        if action.name in constraints and action.if_exists:
            return
        if action.name in constraints:
            raise errors.IllegalColumn(
                f"Cannot add constraint {action.name}: {self._where} has one of this name.",
                position=action.position,
            )
        new_constraint = constraint_from(action.constraint)
        self.table = replace(self.table, constraints=(*self.table.constraints, new_constraint))
        if action.constraint.kind == "ASSUME":
            self.table = replace(self.table, assumed=(*self.table.assumed, action.name))

    # --- helpers

    @property
    def _where(self) -> str:
        """Return the table's qualified name, for messages."""
        return f"{self.before.database}.{self.before.name}"

    def _column(
        self, name: str, if_exists: bool, what: str, action: nodes.AlterAction
    ) -> Column | None:
        """Return the column; None if it is missing and `if_exists`. Raise NotFoundColumnInBlock;
        `what` is the verb of its message."""
        column = self.table.column(name)
        if column is None and not if_exists:
            raise errors.NotFoundColumnInBlock(
                f"There is no column {name} in {self._where} to {what}.",
                hint=f"It has {', '.join(existing.name for existing in self.table.columns)}.",
                position=action.position,
            )
        return column

    def _replace(self, column: Column) -> None:
        """Put the column in place of the one with its id."""
        columns = tuple(
            column if existing.id == column.id else existing for existing in self.table.columns
        )
        self.table = replace(self.table, columns=columns)

    def _put(
        self, column: Column, first: bool, after: str | None, action: nodes.AlterAction
    ) -> None:
        """Insert the column FIRST, AFTER another column or the last one of a nested structure, or at the end.
        Raise NoSuchColumn."""
        columns = list(self.table.columns)
        position = 0 if first else len(columns)
        if after is not None:
            names = [existing.name for existing in columns]
            nested = [name for name in names if name.startswith(f"{after}.")]
            if after not in names and nested:
                after = nested[-1]
            if after not in names:
                raise errors.NoSuchColumn(
                    f"There is no column {after} in {self._where} to put {column.name} after.",
                    hint=f"It has {', '.join(names)}.",
                    position=action.position,
                )
            position = names.index(after) + 1
        columns.insert(position, column)
        self.table = replace(self.table, columns=tuple(columns))

    def _ids_so_far(self) -> int:
        """Return the largest column id in use so far."""
        return next_column_id(self.table) - 1

    def _keys(self) -> frozenset[str]:
        """Return the columns of ORDER BY and PARTITION BY."""
        layout = TableLayout(self.table)
        return layout.sorting_columns | layout.partition_columns

    def _refuse_key(self, column: Column, what: str, action: nodes.AlterAction) -> None:
        """Raise AlterOfColumnIsForbidden if the column is part of a key or an argument of the
        engine; `what` is the verb of its message."""
        if column.name in self._keys():
            raise errors.AlterOfColumnIsForbidden(
                f"Cannot {what} column {column.name} of {self._where}: it is part of its key.",
                hint="CREATE a new table, INSERT … SELECT the rows, and EXCHANGE TABLES.",
                position=action.position,
            )
        if column.name in self.table.engine.arguments:
            raise errors.AlterOfColumnIsForbidden(
                f"Cannot {what} column {column.name} of {self._where}:"
                f" {self.table.engine} combines rows by it.",
                position=action.position,
            )

    def _expressions(self, dropped: Column) -> Iterator[tuple[str, str]]:
        """Yield (label, text) of each expression over columns that is left without column
        `dropped`: constraints, indexes, TTL."""
        for name, text in self.table.constraints:
            yield f"constraint {name}", text
        for index in self.table.indexes:
            yield f"index {index.name}", index.expression
        for column in self.table.columns:
            if column.ttl and column.id != dropped.id:
                yield f"the TTL of column {column.name}", column.ttl
        for rule in ttl_rules(self.table):
            for expression in rule_expressions(rule):
                yield "the TTL", to_sql(expression)
            for name, _ in rule.assignments:
                yield "the TTL", quote_name(name)


def nested_columns(table: Table, name: str) -> tuple[str, ...]:
    """Return the names of the columns of a nested structure; none if a column has this name."""
    if table.column(name) is not None:
        return ()
    return tuple(
        column.name
        for column in table.columns
        if column.name.startswith(f"{name}.") and isinstance(column.type, Array)
    )


def _same_key_order(old: DataType, new: DataType) -> bool:
    """Return whether a key keeps its values and its order when its column changes from one type to
    the other: an Enum may get more elements."""
    before, after = plain(old), plain(new)
    if isinstance(before, Enum) and isinstance(after, Enum) and before.bits == after.bits:
        return bounds_hold(before, after) and is_nullable(old) == is_nullable(new)
    return plain(old) == plain(new) and is_nullable(old) == is_nullable(new)


def _sql_text(expression: nodes.Expression | None) -> str:
    """Return the SQL text of the expression, "" for None."""
    return "" if expression is None else to_sql(expression)


def _codec_text(definition: nodes.ColumnDefinition) -> str:
    """Return the codecs of the definition, comma-separated."""
    return ", ".join(to_sql(codec) for codec in definition.codec)

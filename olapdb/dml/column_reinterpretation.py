"""The effects of an ALTER of columns on existing rows.

Parts stay unchanged and are read through the new columns (see `olapdb.storage.reader`), so nearly
every ALTER is a commit of the catalog alone.  Three things need the rows:

* A conversion that may fail is first tried on every part.
* NULLs of a column that is no longer Nullable are replaced.
* Views whose source now reads differently become stale (rule 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from olapdb.bind.syntax import rewrite, walk
from olapdb.dml.default_readability import check_readable, may_not_convert
from olapdb.dml.mutation import Mutation
from olapdb.dml.mutation_steps import FillNullsStep
from olapdb.errors import DataError
from olapdb.ingest.trigger import TriggerContext
from olapdb.lineage.invalidation import invalidate
from olapdb.lineage.type_change import same_result, same_stored, widened_only
from olapdb.model.changes import Change
from olapdb.model.columns import PartColumns, lacks
from olapdb.model.part import Part
from olapdb.model.schema import Column, MaterializedView, Table
from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.sql.parser import parse_expression
from olapdb.storage.column_statistics import bounds_hold
from olapdb.storage.reader import PartReader
from olapdb.types import DataType, Decimal, Float, Integer, is_nullable, make_nullable, plain


@dataclass
class ColumnReinterpretation:
    """The rows of `before`, read as `after` from now on. `checked` holds the ids of parts whose
    values convert; it lasts over the attempts of one statement, as parts never change."""

    before: Table
    after: Table
    checked: set[str] = field(default_factory=set)

    def apply(self, mutation: Mutation) -> None:
        """Try conversions, stage parts without NULLs, and note the columns that views now read
        differently.

        Raises the DataError of the first value that does not convert, with its column.
        """
        parts = [p for p in mutation.snapshot.parts(self.before.id) if p.rows]
        pairs = list(self._retyped_pairs())
        risky = [new for old, new in pairs if _may_fail(old, new)]
        if risky:
            mutation.requires_all_parts = True
            for part in parts:
                self._try_conversion(part, risky, mutation)
        null_columns = self._columns_to_fill(pairs, parts)
        if null_columns:
            mutation.run(FillNullsStep(null_columns))
        unchanged_parts = [part for part in parts if part.id not in mutation.replaced]
        context = TriggerContext.of(mutation.origin, mutation.snapshot)
        if check_readable(self.before, self.after, unchanged_parts, context, self.checked):
            mutation.requires_all_parts = True
        mutation.invalidate_reread_rows(
            self._with_dependents(
                self._changed_columns(parts) | self._retyped_columns(pairs, joined=False), parts
            ),
            self._with_dependents(
                self._changed_columns(parts) | self._retyped_columns(pairs, joined=True), parts
            ),
            self._with_dependents(
                {o.name for o, n in pairs if widened_only(o.type, n.type)}, parts
            ),
        )

    def writer_invalidations(self, mutation: Mutation) -> list[Change]:
        """Return an invalidation of each view that writes the table, if rows may read differently.

        Returns none if the table has no rows.
        """
        parts = [p for p in mutation.snapshot.parts(self.before.id) if p.rows]
        if not parts:
            return []
        rows = sum(p.rows for p in parts)
        reads_otherwise = bool(self.changed_names(parts))
        return [
            invalidate(mutation.origin, view.id, None, "TARGET CHANGED", rows)
            for view in mutation.snapshot.views_into(self.before.id)
            if reads_otherwise or self._stores_otherwise(view)
        ]

    def _stores_otherwise(self, view: MaterializedView) -> bool:
        """Return whether the altered table would store another value of what the view gives than
        its rows have, though these read as before."""
        given = {column.name: column.type for column in view.columns}
        return any(
            old.name in given and not same_stored(given[old.name], old.type, new.type)
            for old, new in self._retyped_pairs()
        )

    def changed_names(self, parts: list[Part]) -> frozenset[str]:
        """Return the columns of `before` that may read a different value in some row from now
        on."""
        return self._with_dependents(self._changed_columns(parts), parts)

    def _changed_columns(self, parts: list[Part]) -> set[str]:
        """Return the columns of `before` whose own values may read differently."""
        return {old.name for old in self.before.columns if self._reads_differently(old, parts)}

    def _retyped_columns(self, pairs: list[tuple[Column, Column]], *, joined: bool) -> set[str]:
        """Return columns whose values stay equal, but from which a view may compute different
        results."""
        return {
            old.name for old, new in pairs if not same_result(old.type, new.type, joined=joined)
        }

    def _with_dependents(self, names: set[str], parts: list[Part]) -> frozenset[str]:
        """Return `names` and the columns whose values are computed from them when they are read.

        These are ALIAS columns, and defaults that some part lacks.
        """
        while True:
            more = {
                column.name
                for column in self.before.columns
                if column.name not in names
                and column.default
                and names_in_default(column.default) & names
                and (column.default_kind == "ALIAS" or any(lacks(p, column) for p in parts))
            }
            if not more:
                return frozenset(names)
            names |= more

    def _reads_differently(self, old: Column, parts: list[Part]) -> bool:
        """Return whether the column may read a different value in some of these parts."""
        new = next((c for c in self.after.columns if c.id == old.id), None)
        if new is None:
            # Dropped; readers now see a new column of the same name, if there is one.
            return self.after.column(old.name) is not None
        if new.stored != old.stored or not bounds_hold(old.type, new.type):
            return True
        if new.type == old.type and (
            default_by_ids(old, self.before) == default_by_ids(new, self.after)
        ):
            return False
        if not (old.default or new.default) and _have_one_zero(old.type, new.type):
            return False
        # A value that is computed when it is read is converted to the new type, not from the old one.
        return not new.stored or any(lacks(part, new) for part in parts)

    def _retyped_pairs(self) -> Iterator[tuple[Column, Column]]:
        """Yield the old and the new version of each stored column whose type changes."""
        for old in self.before.stored_columns:
            new = next((c for c in self.after.stored_columns if c.id == old.id), None)
            if new is not None and new.type != old.type:
                yield old, new

    def _columns_to_fill(
        self, pairs: list[tuple[Column, Column]], parts: list[Part]
    ) -> tuple[str, ...]:
        """Return the new names of columns that are no longer Nullable and may be NULL in some
        part."""
        part_columns = PartColumns(self.before)
        names = []
        for old, new in pairs:
            if not is_nullable(old.type) or is_nullable(new.type):
                continue
            bounds = [part_columns.bounds(part).get(old.name) for part in parts]
            if any(bound is None or bound[2] for bound in bounds):
                names.append(new.name)
        return tuple(names)

    def _try_conversion(self, part: Part, columns: list[Column], mutation: Mutation) -> None:
        """Read the columns of the part with their new types, unless an earlier attempt did.

        Raises a DataError that names the column and part of a value that does not convert.
        """
        if part.id in self.checked:
            return
        nullable = [_as_nullable(c) for c in columns]
        wide = _with_columns(self.after, nullable)
        origin = mutation.origin
        reader = PartReader(
            origin.services.store, mutation.snapshot, part, wide, origin.environment
        )
        for column in nullable:
            try:
                reader.read([column.name])
            except DataError as error:
                raise type(error)(
                    f"MODIFY COLUMN {column.name} of {self.after.database}.{self.after.name}: a"
                    f" value of part {part.name} does not convert: {error.message}",
                    hint="Nothing was changed. UPDATE or DELETE these rows first, or add a column"
                    " with a DEFAULT that converts as you need it.",
                ) from error
        self.checked.add(part.id)


def _may_fail(old: Column, new: Column) -> bool:
    """Return whether some value of the old type has no value of the new one; numbers wrap, as in
    CAST."""
    return not bounds_hold(old.type, new.type) and may_not_convert(old.type, new.type)


def _have_one_zero(before: DataType, after: DataType) -> bool:
    """Return whether the default of both types is the same number, or NULL."""
    are_numbers = all(isinstance(plain(t), Integer | Float | Decimal) for t in (before, after))
    return are_numbers and is_nullable(before) == is_nullable(after)


def default_by_ids(column: Column, table: Table) -> object:
    """Return a comparable form of the column's default that names columns by id, so that a
    rename leaves it equal."""
    if not column.default:
        return column.default_kind == "ALIAS", None
    ids = {c.name: c.id for c in table.columns}
    parsed = parse_expression(column.default)
    named = tuple(
        ids.get(node.parts[-1], node.parts) if isinstance(node, nodes.Identifier) else type(node)
        for node in walk(parsed)
    )
    plainly = _without_names(parsed)
    return column.default_kind == "ALIAS", (named, plainly)


def _without_names(parsed: nodes.Expression) -> nodes.Expression:
    """Return the expression with every identifier blank, for a comparison of its form."""

    def change(node: nodes.Node) -> nodes.Node | None:
        """Return an identifier with an empty name for an identifier, else None."""
        return nodes.Identifier(("",)) if isinstance(node, nodes.Identifier) else None

    return rewrite(parsed, change)


def names_in_default(text: str) -> set[str]:
    """Return the identifiers in the text of a default."""
    return {
        node.parts[-1]
        for node in walk(parse_expression(text))
        if isinstance(node, nodes.Identifier)
    }


def _as_nullable(column: Column) -> Column:
    """Return a copy of the column whose type admits NULL."""
    return replace(column, type=make_nullable(column.type))


def _with_columns(table: Table, columns: list[Column]) -> Table:
    """Return the table with these columns in place of those with their ids."""
    by_id = {c.id: c for c in columns}
    return replace(table, columns=tuple(by_id.get(c.id, c) for c in table.columns))

"""The expected content of a warehouse with views: a model in plain Python, without aggregates or
parts.

A table holds pieces: the rows that one block brought to one partition, and their maker.  A view has
seen some pieces of its source.  Every statement moves pieces. A table of the engine holds the sum
of its pieces. A view's target should hold the view's output for the pieces that it has seen, with
the present dimension.

    INSERT s         a piece of s for each partition; each attached view has seen it and makes a
                     piece of its target, on which the views below fire in turn
    BACKFILL v       for each partition of the source: the pieces not seen make a piece
    REPLAY v         the pieces of a slice that views made are replaced by what is seen now
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tests.schedules.frozen import Frozen, holds, joined, key_of
from tests.schedules.shapes import TABLES, VIEWS, Content, Fails, Row, TableShape, ViewShape

OPEN_BITS_MAX = 5


@dataclass(frozen=True)
class Piece:
    """The rows that one block brought to one partition. `maker` is the view that wrote them;
    None for rows of no view."""

    slice: str
    rows: tuple[Row, ...]
    maker: int | None = None


@dataclass(frozen=True)
class ViewState:
    """A view and the pieces that it has seen. `id` is never reused: rows of a dropped view
    belong to no view."""

    id: int
    shape: ViewShape
    attached: bool = True
    seen: frozenset[int] = frozenset()
    generation: int = 1
    standing: str = ""
    """The role of a version beside the view named `beside`, "candidate" or "previous"; else ""."""
    beside: str = ""


Leave: TypeAlias = tuple[int, str, str]
"""Key of rows that left by retention: a view's id, "source" or "target", and the partition of
that table."""


@dataclass
class Model:
    """The state of the warehouse.

    * `names` are the tables' present names; `pieces` are by table, then by number.
    * `happened` has (cause, statement) of everything that may have made slices stale.
    * `tokens` are those of acknowledged INSERTs; `positions` are by table and stream.
    * `keys` are those that the deduplicating table accepted; `dropped` counts its repeated rows.
    * `detached` holds pieces by table.
    * `unsettled` are seen pieces that may be a view's gap since rows of its target left.
    * `retained` counts the rows that left by retention, with the keys of the target frozen since;
      where `open_frost`, these may be all keys.
    * `absent` has the tables that lack their optional column, `defaults` its default.
    * `columns` are present names; `ids` are those of the engine's tables.
    * `statement` is the present one.
    """

    names: dict[str, str] = field(default_factory=dict)
    pieces: dict[str, dict[int, Piece]] = field(default_factory=dict)
    views: dict[str, ViewState] = field(default_factory=dict)
    happened: set[tuple[str, str]] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)
    detached: dict[str, list[Piece]] = field(default_factory=dict)
    keys: set[Row] = field(default_factory=set)
    dropped: int = 0
    positions: dict[tuple[str, str], int] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    unsettled: dict[str, frozenset[int]] = field(default_factory=dict)
    retained: dict[Leave, tuple[int, Frozen]] = field(default_factory=dict)
    open_frost: frozenset[Leave] = frozenset()
    absent: dict[str, bool] = field(default_factory=dict)
    columns: dict[tuple[str, str], str] = field(default_factory=dict)
    defaults: dict[str, int] = field(default_factory=dict)
    statement: str = ""
    number: int = 0

    @classmethod
    def of(cls, tables: Iterable[str]) -> Model:
        """Return empty tables under their own names."""
        keys = list(tables)
        absent = {key: True for key in keys if TABLES[key].optional}
        return cls({key: key for key in keys}, {key: {} for key in keys}, absent=absent)

    def copy(self) -> Model:
        """Return an independent copy."""
        return replace(
            self,
            names=dict(self.names),
            pieces={t: dict(p) for t, p in self.pieces.items()},
            views=dict(self.views),
            happened=set(self.happened),
            tokens=set(self.tokens),
            detached={table: list(pieces) for table, pieces in self.detached.items()},
            keys=set(self.keys),
            positions=dict(self.positions),
            unsettled=dict(self.unsettled),
            retained=dict(self.retained),
            absent=dict(self.absent),
            columns=dict(self.columns),
            defaults=dict(self.defaults),
        )

    def blame(self, cause: str) -> None:
        """Record that the present statement may have made slices stale."""
        self.happened.add((cause, self.statement))

    def caused(self, causes: Iterable[str]) -> bool:
        """Return whether one of these causes ever made slices stale."""
        return not {cause for cause, _ in self.happened}.isdisjoint(causes)

    # --- tables

    def present(self, table: str) -> str:
        """Return the key of the table that has the place of `table`: a rebuild makes another one,
        and keeps the replaced one as the target of a version."""
        versions = {view.shape.target for view in self.views.values() if view.standing}
        same = (key for key in self.names if key.partition("#")[0] == table)
        return next((key for key in same if key not in versions), table)

    def defined(self, shape: ViewShape) -> ViewShape:
        """Return the shape of a view over the tables that are present."""
        return replace(shape, source=self.present(shape.source), target=self.present(shape.target))

    # --- columns

    def column(self, table: str, name: str) -> str:
        """Return the present name of the column."""
        return self.columns.get((table, name), name)

    def fields(self, table: str) -> list[str]:
        """Return the present names of the columns that the table has."""
        fields = TABLES[table].fields
        return [self.column(table, f) for f in (fields[:-1] if table in self.absent else fields)]

    def read(self, table: str, row: Mapping[str, Any]) -> Row:
        """Return the model's row for a row of the engine."""
        found = [row[name] for name in self.fields(table)]
        return TABLES[table].read([*found, 0] if table in self.absent else found)

    # --- open questions

    def unsettle(self, view: ViewState, pieces: frozenset[int]) -> None:
        """Leave open whether these pieces are the view's gap."""
        known = self.unsettled.get(view.shape.key, frozenset())
        self.unsettled[view.shape.key] = known | pieces

    def open_bits(self) -> int:
        """Return the number of open questions."""
        return sum(len(pieces) for pieces in self.unsettled.values()) + len(self.open_frost)

    def choices(self) -> int:
        """Return the number of ways to `choose`."""
        return 1 << min(self.open_bits(), OPEN_BITS_MAX)

    def choose(self, choice: int) -> None:
        """Settle the open questions by the bits of `choice`: a piece whose bit is set becomes a
        gap, and so do pieces beyond the last bit."""
        for leave in sorted(self.open_frost):
            if choice & 1:
                self.freeze(leave, 0, {None: None})
            choice >>= 1
        self.open_frost = frozenset()
        named = [(key, n) for key, pieces in sorted(self.unsettled.items()) for n in sorted(pieces)]
        for at, (key, number) in enumerate(named):
            if at >= OPEN_BITS_MAX or choice >> at & 1:
                self.forget(key, {number})
        self.unsettled.clear()

    def without(self, key: str, pieces: Iterable[int]) -> Model:
        """Return a copy in which the pieces are the view's gap."""
        changed = self.copy()
        changed.forget(key, pieces)
        return changed

    def forget(self, key: str, pieces: Iterable[int]) -> None:
        """Make the pieces the view's gap again."""
        if key in self.views:
            view = self.views[key]
            self.views[key] = replace(view, seen=view.seen.difference(pieces))

    # --- frozen keys

    def freeze(self, leave: Leave, rows: int, reached: Frozen) -> None:
        """Add rows that left by retention, and the frozen keys that they reached."""
        known, before = self.retained.get(leave, (0, {}))
        self.retained[leave] = known + rows, joined(before, reached)

    def release(self, table: str, slice_: str | None) -> None:
        """Unfreeze the keys of a target, or of one partition of it."""
        for view in self.views_into(table):
            for leave, (rows, frozen) in list(self.retained.items()):
                if leave[0] != view.id or not (slice_ is None or slice_ in frozen):
                    continue
                left = (
                    {} if slice_ is None else {s: box for s, box in frozen.items() if s != slice_}
                )
                if left:
                    self.retained[leave] = rows, left
                else:
                    del self.retained[leave]

    def frozen(self, table: str) -> list[Frozen]:
        """Return the frozen keys of the table, one entry for each departure of rows."""
        live = {view.id for view in self.views_into(table)}
        return [one for leave, (_, one) in self.retained.items() if leave[0] in live and one]

    def is_frozen(self, table: str, row: Row) -> bool:
        """Return whether the row's key is frozen."""
        shape = TABLES[table]
        return holds(self.frozen(table), shape.slice_of(row), key_of(shape, row))

    def outside(self, table: str, rows: Iterable[Row]) -> list[Row]:
        """Return the rows of a target whose keys are not frozen."""
        if not self.frozen(table):
            return list(rows)
        return [row for row in rows if not self.is_frozen(table, row)]

    # --- queries

    def rows(self, table: str) -> list[Row]:
        """Return all rows of the table."""
        return [row for piece in self.pieces[table].values() for row in piece.rows]

    def views_on(self, table: str) -> list[ViewState]:
        """Return the views that read the table as their source."""
        return [v for v in self.views.values() if v.shape.source == table]

    def views_into(self, table: str) -> list[ViewState]:
        """Return the views that write the table."""
        return [v for v in self.views.values() if v.shape.target == table]

    def is_target(self, table: str) -> bool:
        """Return whether a view writes the table."""
        return bool(self.views_into(table))

    def keeps(self, view: ViewState) -> bool:
        """Return whether the view's source stores rows, so that they can be read again."""
        return TABLES[view.shape.source].stores

    def gap(self, view: ViewState) -> dict[str, dict[int, Piece]]:
        """Return the pieces that the view has not seen, by the source's partition."""
        found: dict[str, dict[int, Piece]] = {}
        for number, piece in self.pieces[view.shape.source].items():
            if number not in view.seen:
                found.setdefault(piece.slice, {})[number] = piece
        return found

    def bypass(self, table: str) -> dict[int, Piece]:
        """Return the pieces of a target that no existing view wrote."""
        live = {v.id for v in self.views_into(table)}
        return {n: p for n, p in self.pieces[table].items() if p.maker not in live}

    def made_of(self, view: ViewState, pieces: Iterable[Piece]) -> list[Row]:
        """Return the view's output for the pieces, with the present dimension."""
        read = view.shape.dimension
        dimension = self.rows(read) if read else []
        return [
            made
            for piece in pieces
            for row in piece.rows
            for made in view.shape.make(row, dimension)
        ]

    def seen_pieces(self, view: ViewState) -> list[Piece]:
        """Return the source pieces that the view has seen."""
        return [p for n, p in self.pieces[view.shape.source].items() if n in view.seen]

    def due(self, view: ViewState, *, with_gap: bool = False) -> dict[str, Content]:
        """Return the rows that the view's target should have from it, by slice, without frozen
        keys."""
        source = self.pieces[view.shape.source]
        pieces = source.values() if with_gap else self.seen_pieces(view)
        made = self.outside(view.shape.target, self.made_of(view, pieces))
        return self._by_slice(TABLES[view.shape.target], made)

    def holds(self, table: str, accept: Callable[[Piece], bool]) -> dict[str, Content]:
        """Return the table's rows in accepted pieces, by slice, without frozen keys."""
        rows = [r for p in self.pieces[table].values() if accept(p) for r in p.rows]
        return self._by_slice(TABLES[table], self.outside(table, rows))

    def differing(self, view: ViewState) -> set[str]:
        """Return the slices in which the view's rows are wrong; all of its slices where it would
        fail on a row that it has seen. Over a source that stores no rows, all are right."""
        made = self.holds(view.shape.target, lambda piece: piece.maker == view.id)
        if not self.keeps(view):
            return set()
        try:
            due = self.due(view)
        except Fails:
            return set(made)
        return {one for one in {*due, *made} if due.get(one, {}) != made.get(one, {})}

    @staticmethod
    def _by_slice(shape: TableShape, rows: Iterable[Row]) -> dict[str, Content]:
        return {one: shape.content(found) for one, found in split(shape, rows).items()}

    # --- statements

    def add_rows(
        self, table: str, rows: Iterable[Row], maker: int | None = None, *, ignoring: bool = False
    ) -> list[int]:
        """Add one block and the output of its cascade; return the numbers of the table's new
        pieces. Raises Fails where a view does; with `ignoring`, the block is that view's gap
        instead."""
        added: dict[int, Piece] = {}
        for slice_, found in split(TABLES[table], rows).items():
            self.number += 1
            added[self.number] = Piece(slice_, tuple(found), maker)
        if not added:
            return []
        if TABLES[table].stores:
            self.pieces[table].update(added)
        for view in self.views_on(table):
            if not view.attached:
                continue
            try:
                made = self.made_of(view, added.values())
            except Fails:
                if not ignoring and not view.standing:
                    raise
                self.blame("VIEW FAILED")
                continue
            if TABLES[table].stores:
                self._see(view, added)
            self.add_rows(view.shape.target, made, view.id, ignoring=ignoring)
        return list(added)

    def _see(self, view: ViewState, numbers: Iterable[int]) -> None:
        now = self.views[view.shape.key]
        self.views[view.shape.key] = replace(now, seen=now.seen.union(numbers))

    def create_view(self, key: str) -> None:
        """Create the view, which has seen nothing."""
        shape = self.defined(VIEWS[key])
        self.number += 1
        self.views[key] = ViewState(self.number, shape)

    def drop_view(self, key: str) -> None:
        """Drop the view with its versions, and these with their targets."""
        view = self.views.pop(key)
        for one in [v.shape.key for v in self.views.values() if v.beside == key]:
            self.drop_view(one)
        if view.standing:
            for known in (self.names, self.pieces, self.detached, self.absent):
                known.pop(view.shape.target, None)

    def attach(self, key: str, attached: bool) -> None:
        """Attach or detach the view."""
        self.views[key] = replace(self.views[key], attached=attached)

    def fill(self, key: str, slice_: str, planned: frozenset[int] | None = None) -> None:
        """Run one chunk of a backfill: the pieces of a source partition that the view has not
        seen; with `planned`, just these pieces."""
        missed = {
            number: piece
            for number, piece in self.gap(self.views[key]).get(slice_, {}).items()
            if planned is None or number in planned
        }
        view = self.views[key]
        made = self.made_of(view, missed.values())
        self._see(view, missed)
        self.add_rows(view.shape.target, made, view.id)

    def replay(self, key: str, chosen: Callable[[str], bool], *, discard: bool) -> None:
        """Replace the chosen slices by the present output of all views into the target."""
        table = self.views[key].shape.target
        views = self.views_into(table)
        live = {v.id for v in views}
        shape = TABLES[table]
        fresh: list[tuple[int | None, str, list[Row]]] = []
        for view in views:
            for slice_, rows in split(shape, self.made_of(view, self.seen_pieces(view))).items():
                if chosen(slice_):
                    fresh.append((view.id, slice_, self.outside(table, rows)))
        frozen = self.frozen(table)
        old = {
            n
            for n, p in self.pieces[table].items()
            if chosen(p.slice) and (not holds(frozen, p.slice) if p.maker in live else discard)
        }
        for number in old:
            gone = self.pieces[table].pop(number)
            if gone.maker in live:
                kept = [row for row in gone.rows if self.is_frozen(table, row)]
                fresh.append((gone.maker, gone.slice, kept))
        added: list[int] = []
        for maker, slice_, rows in fresh:
            if not rows:
                continue
            self.number += 1
            self.pieces[table][self.number] = Piece(slice_, tuple(rows), maker)
            added.append(self.number)
        for below in self.views_on(table):
            # A view that saw a replaced piece counts the new rows as seen, and becomes stale; for
            # another view they are a gap.
            if below.seen & old:
                self._see(below, added)

    def remove_rows(self, table: str, leaves: Callable[[Row], bool]) -> int:
        """Delete rows; return their number."""
        gone = 0
        for number, piece in list(self.pieces[table].items()):
            stay = tuple(row for row in piece.rows if not leaves(row))
            gone += len(piece.rows) - len(stay)
            if stay:
                self.pieces[table][number] = replace(piece, rows=stay)
            else:
                del self.pieces[table][number]
        return gone

    def truncate(self, table: str) -> None:
        """Delete all rows and delivery records; in a target the coverage too."""
        self.pieces[table].clear()
        self.tokens = {token for token in self.tokens if token.split()[0] != table}
        self.positions = {k: at for k, at in self.positions.items() if k[0] != table}
        if table == "e":
            self.keys.clear()
        for view in self.views_into(table):
            self.views[view.shape.key] = replace(view, seen=frozenset())
        self.release(table, None)

    def adopt(self, key: str) -> None:
        """Give the bypass rows to the view, and mark its gap as seen."""
        view = self.views[key]
        for number, piece in self.bypass(view.shape.target).items():
            self.pieces[view.shape.target][number] = replace(piece, maker=view.id)
        self._see(view, self.pieces[view.shape.source])

    def all_equal_recomputed(self, key: str) -> bool:
        """Return whether the whole target equals the output of its views, this view's gap
        included."""
        view = self.views[key]
        table = view.shape.target
        rows = [
            row
            for one in self.views_into(table)
            for row in self.made_of(
                one,
                self.pieces[one.shape.source].values() if one == view else self.seen_pieces(one),
            )
        ]
        shape = TABLES[table]
        there = shape.content(self.outside(table, self.rows(table)))
        return shape.content(self.outside(table, rows)) == there


def split(shape: TableShape, rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group rows by the id of their partition."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(shape.slice_of(row), []).append(row)
    return found


def tables_of(views: Iterable[str]) -> Iterator[str]:
    """Return the sources, dimensions and targets of these views, once each, bases first; and
    `s`."""
    needed = {"s"} | {
        t
        for key in views
        for t in (VIEWS[key].source, VIEWS[key].target, VIEWS[key].dimension)
        if t
    }
    return (key for key in TABLES if key in needed)

"""What a warehouse with views must hold: a model in plain Python, without aggregates or parts.

A table holds pieces: the rows that one block brought to one partition, and who made them.  A view
has seen some pieces of its source.  Every statement moves pieces; what the engine's tables hold
is the sum of the pieces, and what a view's target should hold is what the view makes of the
pieces that it has seen, with the dimension as it is now.

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
    """`maker` is the view whose rows these are; None for rows that no view made."""

    slice: str
    rows: tuple[Row, ...]
    maker: int | None = None


@dataclass(frozen=True)
class ViewState:
    """`id` is never reused: rows of a dropped view are nobody's."""

    id: int
    shape: ViewShape
    attached: bool = True
    seen: frozenset[int] = frozenset()
    generation: int = 1
    standing: str = ""
    """Of a version beside the view named `beside`: "candidate" or "previous"."""
    beside: str = ""


Leave: TypeAlias = tuple[int, str, str]
"""A view's id; rows of its "source", or "target"; and of which partition of that."""


@dataclass
class Model:
    """`pieces` by table, then by number; `happened` (cause, statement) of all that may have made
    slices stale; `tokens` those of INSERTs that were acknowledged; `positions` by table and stream;
    `detached` pieces by table; `keys` that the table which deduplicates has accepted, `dropped` how many
    rows came again; `unsettled` pieces of a view's source that may be its gap since rows of its target
    left; `retained` how many rows have left by retention, and what of the target is frozen since,
    `absent` the tables that are without their optional column, `defaults` its default; `columns` names
    of now; `open_frost` where that may be all of it; `ids` of the engine's tables; `statement` is the one of now."""

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
        """Empty tables under their own names."""
        keys = list(tables)
        absent = {key: True for key in keys if TABLES[key].optional}
        return cls({key: key for key in keys}, {key: {} for key in keys}, absent=absent)

    def copy(self) -> Model:
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
        """The statement of now may have made slices stale."""
        self.happened.add((cause, self.statement))

    def caused(self, causes: Iterable[str]) -> bool:
        """Whether one of these ever made slices stale."""
        return not {cause for cause, _ in self.happened}.isdisjoint(causes)

    # --- columns

    def column(self, table: str, name: str) -> str:
        """What it is called now."""
        return self.columns.get((table, name), name)

    def fields(self, table: str) -> list[str]:
        """The names of the columns that are there."""
        fields = TABLES[table].fields
        return [self.column(table, f) for f in (fields[:-1] if table in self.absent else fields)]

    def read(self, table: str, row: Mapping[str, Any]) -> Row:
        """A row of the engine's."""
        found = [row[name] for name in self.fields(table)]
        return TABLES[table].read([*found, 0] if table in self.absent else found)

    # --- what is left open

    def unsettle(self, view: ViewState, pieces: frozenset[int]) -> None:
        known = self.unsettled.get(view.shape.key, frozenset())
        self.unsettled[view.shape.key] = known | pieces

    def open_bits(self) -> int:
        """How many things are left open."""
        return sum(len(pieces) for pieces in self.unsettled.values()) + len(self.open_frost)

    def choices(self) -> int:
        """How many ways there are to `choose`."""
        return 1 << min(self.open_bits(), OPEN_BITS_MAX)

    def choose(self, choice: int) -> None:
        """Of the pieces that are left open, those whose bit is set are a gap; those beyond the bits
        too."""
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
        """Where they are the view's gap."""
        changed = self.copy()
        changed.forget(key, pieces)
        return changed

    def forget(self, key: str, pieces: Iterable[int]) -> None:
        """They are the view's gap again."""
        if key in self.views:
            view = self.views[key]
            self.views[key] = replace(view, seen=view.seen.difference(pieces))

    # --- what is frozen

    def freeze(self, leave: Leave, rows: int, reached: Frozen) -> None:
        known, before = self.retained.get(leave, (0, {}))
        self.retained[leave] = known + rows, joined(before, reached)

    def release(self, table: str, slice_: str | None) -> None:
        """What is frozen of a target, or of a partition of it, is not any more."""
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
        live = {view.id for view in self.views_into(table)}
        return [one for leave, (_, one) in self.retained.items() if leave[0] in live and one]

    def is_frozen(self, table: str, row: Row) -> bool:
        shape = TABLES[table]
        return holds(self.frozen(table), shape.slice_of(row), key_of(shape, row))

    def outside(self, table: str, rows: Iterable[Row]) -> list[Row]:
        """The rows of a target whose keys are not frozen."""
        if not self.frozen(table):
            return list(rows)
        return [row for row in rows if not self.is_frozen(table, row)]

    # --- what is there

    def rows(self, table: str) -> list[Row]:
        return [row for piece in self.pieces[table].values() for row in piece.rows]

    def views_on(self, table: str) -> list[ViewState]:
        return [v for v in self.views.values() if v.shape.source == table]

    def views_into(self, table: str) -> list[ViewState]:
        return [v for v in self.views.values() if v.shape.target == table]

    def is_target(self, table: str) -> bool:
        return bool(self.views_into(table))

    def keeps(self, view: ViewState) -> bool:
        """Whether its source's rows can be read again."""
        return TABLES[view.shape.source].stores

    def gap(self, view: ViewState) -> dict[str, dict[int, Piece]]:
        """The pieces that the view has not seen, by the source's partition."""
        found: dict[str, dict[int, Piece]] = {}
        for number, piece in self.pieces[view.shape.source].items():
            if number not in view.seen:
                found.setdefault(piece.slice, {})[number] = piece
        return found

    def bypass(self, table: str) -> dict[int, Piece]:
        """Pieces of a target that no view of now made."""
        live = {v.id for v in self.views_into(table)}
        return {n: p for n, p in self.pieces[table].items() if p.maker not in live}

    def made_of(self, view: ViewState, pieces: Iterable[Piece]) -> list[Row]:
        read = view.shape.dimension
        dimension = self.rows(read) if read else []
        return [
            made
            for piece in pieces
            for row in piece.rows
            for made in view.shape.make(row, dimension)
        ]

    def seen_pieces(self, view: ViewState) -> list[Piece]:
        return [p for n, p in self.pieces[view.shape.source].items() if n in view.seen]

    def due(self, view: ViewState, *, with_gap: bool = False) -> dict[str, Content]:
        """What the view's rows in its target should be, by slice, beside those that are frozen."""
        source = self.pieces[view.shape.source]
        pieces = source.values() if with_gap else self.seen_pieces(view)
        made = self.outside(view.shape.target, self.made_of(view, pieces))
        return self._by_slice(TABLES[view.shape.target], made)

    def holds(self, table: str, accept: Callable[[Piece], bool]) -> dict[str, Content]:
        """Beside what is frozen."""
        rows = [r for p in self.pieces[table].values() if accept(p) for r in p.rows]
        return self._by_slice(TABLES[table], self.outside(table, rows))

    def differing(self, view: ViewState) -> set[str]:
        """The slices in which the view's rows are not what they should be; all that there are where
        it would fail on a row that it has seen. What it made of rows that nobody keeps is right."""
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

    # --- what statements do

    def add_rows(
        self, table: str, rows: Iterable[Row], maker: int | None = None, *, ignoring: bool = False
    ) -> list[int]:
        """One block and all that its cascade makes; the numbers of the table's new pieces. Raises
        Fails where a view does; `ignoring` that, the block is its gap."""
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
        self.number += 1
        self.views[key] = ViewState(self.number, VIEWS[key])

    def drop_view(self, key: str) -> None:
        """Its versions go with it, and these with their targets."""
        view = self.views.pop(key)
        for one in [v.shape.key for v in self.views.values() if v.beside == key]:
            self.drop_view(one)
        if view.standing:
            for known in (self.names, self.pieces, self.detached, self.absent):
                known.pop(view.shape.target, None)

    def attach(self, key: str, attached: bool) -> None:
        self.views[key] = replace(self.views[key], attached=attached)

    def fill(self, key: str, slice_: str, planned: frozenset[int] | None = None) -> None:
        """One chunk of a backfill: what the view has not seen of a partition of its source; just
        these pieces of it, where it is `planned`."""
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
        """Swaps in what all views into the target make now, for the chosen slices."""
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
            # A view that saw some of what is replaced counts the new rows as seen, and is told
            # that it is stale; for another one they are a gap.
            if below.seen & old:
                self._see(below, added)

    def remove_rows(self, table: str, leaves: Callable[[Row], bool]) -> int:
        """A DELETE; how many rows left."""
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
        """In a target the coverage leaves with the rows; and what was delivered is forgotten."""
        self.pieces[table].clear()
        self.tokens = {one for one in self.tokens if one.split()[0] != table}
        self.positions = {k: at for k, at in self.positions.items() if k[0] != table}
        if table == "e":
            self.keys.clear()
        for view in self.views_into(table):
            self.views[view.shape.key] = replace(view, seen=frozenset())
        self.release(table, None)

    def adopt(self, key: str) -> None:
        """Rows that no view made are the view's, and what it had not seen counts as seen."""
        view = self.views[key]
        for number, piece in self.bypass(view.shape.target).items():
            self.pieces[view.shape.target][number] = replace(piece, maker=view.id)
        self._see(view, self.pieces[view.shape.source])

    def all_equal_recomputed(self, key: str) -> bool:
        """Whether the whole target is what its views make, this one of the rows of its gap too."""
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
    """Rows by the id of their partition."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(shape.slice_of(row), []).append(row)
    return found


def tables_of(views: Iterable[str]) -> Iterator[str]:
    """Sources, dimensions and targets of these views, once each, bases first; and `s`."""
    needed = {"s"} | {
        t
        for key in views
        for t in (VIEWS[key].source, VIEWS[key].target, VIEWS[key].dimension)
        if t
    }
    return (key for key in TABLES if key in needed)

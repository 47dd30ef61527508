"""Observes the engine after a step, and compares it with a model.

Every table's rows are read raw and joined here. `system.views` must be right: a view with the
verdict covered or proven equals its source, and every other one has its true cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any

from olapdb.dbapi.connection import Connection
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.view_state import RetainedSlice
from olapdb.views.proof.coverage import gap_slices as gap_of
from tests.schedules.frozen import Box, Frozen
from tests.schedules.model import Model, Piece, ViewState
from tests.schedules.shapes import TABLES, Fails, Row

SETTLED_MAX = 4


@dataclass(frozen=True)
class Observation:
    """The state that the engine shows: for each table its parts, columns and rows; each view's
    row of system.views; the positions of streams by table and name; the numbers of keys held and
    of rows dropped by them; covered and uncovered rows by view and partition; rows and frozen
    keys by retention; (partition or None, cause, statement) of each view's invalidations."""

    parts: Mapping[str, tuple[object, ...]]
    columns: Mapping[str, list[str]]
    rows: Mapping[str, list[dict[str, Any]]]
    status: Mapping[str, dict[str, Any]]
    positions: Mapping[tuple[str, str], int]
    keys: tuple[int, int]
    coverage: Mapping[tuple[str, str, str], int]
    retained: Mapping[str, Mapping[tuple[str, str], tuple[int, Frozen]]]
    stale: Mapping[str, list[tuple[str | None, str, str]]]


VIEWS_STATUS = (
    "SELECT name, standing, attached, verdict, reason, gap_rows, bypass_rows, stale_slices, mend"
    " FROM system.views"
)


def dicts(connection: Connection, query: str) -> list[dict[str, Any]]:
    """Return the rows of a query as dictionaries."""
    cursor = connection.execute(query)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def observe(connection: Connection, before: Observation | None = None) -> Observation:
    """Observe the present state. Parts are immutable, so a table is read again only where its
    parts differ from `before`."""
    snapshot = connection.database.services.catalog.snapshot()
    parts = {
        item.name: (item.id, item.version, *(part.id for part in snapshot.parts(item.id)))
        for item in snapshot.objects("default")
        if isinstance(item, Table)
    }
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, now in parts.items():
        same = before is not None and before.parts.get(name) == now
        rows[name] = (
            before.rows[name] if same and before else dicts(connection, f"SELECT * FROM {name}")
        )
    stale: dict[str, list[tuple[str | None, str, str]]] = {}
    for one in dicts(
        connection, "SELECT view, partition_id, cause, statement FROM system.view_invalidations"
    ):
        stale.setdefault(one["view"], []).append(
            (one["partition_id"], one["cause"], one["statement"])
        )
    offsets = "SELECT table, stream, position FROM system.source_offsets"
    delivered = dicts(connection, "SELECT keys_held, rows_dropped FROM system.deduplication")
    coverage = "SELECT view, partition_id, status, rows FROM system.view_coverage"
    return Observation(
        parts=parts,
        columns={
            item.name: [column.name for column in item.columns]
            for item in snapshot.objects("default")
            if isinstance(item, Table)
        },
        rows=rows,
        status={one["name"]: one for one in dicts(connection, VIEWS_STATUS)},
        positions={
            (one["table"], one["stream"]): one["position"] for one in dicts(connection, offsets)
        },
        keys=(sum(o["keys_held"] for o in delivered), sum(o["rows_dropped"] for o in delivered)),
        retained={
            item.name: {
                (r.side, r.partition): (r.rows, {s.partition: _box(s) for s in r.slices})
                for r in snapshot.retained(item.id)
            }
            for item in snapshot.objects("default")
            if isinstance(item, MaterializedView)
        },
        coverage={
            (one["view"], one["partition_id"], one["status"]): one["rows"]
            for one in dicts(connection, coverage)
        },
        stale=stale,
    )


def _box(slice_: RetainedSlice) -> Box | None:
    if slice_.bounds is None:
        return None
    return tuple(zip(slice_.bounds.low, slice_.bounds.high, strict=True))


def frosted(model: Model, seen: Observation) -> Model:
    """Return the model with its open frozen keys settled as the engine shows them."""
    if not model.open_frost:
        return model
    changed = model.copy()
    by_id = {view.id: key for key, view in model.views.items()}
    for leave in model.open_frost:
        view_id, side, slice_ = leave
        _, shown = seen.retained.get(by_id.get(view_id, ""), {}).get((side, slice_), (0, {}))
        if None in shown:
            changed.freeze(leave, 0, {None: None})
    changed.open_frost = frozenset()
    return changed


def settled(model: Model, connection: Connection) -> list[Model]:
    """Return the models with open gaps settled as the engine shows them: its gap rows are whole
    pieces. Return none where no pieces have these rows."""
    if not model.unsettled:
        return [model]
    found = [model.copy()]
    snapshot = connection.database.services.catalog.snapshot()
    by_name = {item.name: item for item in snapshot.objects("default")}
    for key, pieces in model.unsettled.items():
        view = by_name.get(key)
        if key not in model.views or not isinstance(view, MaterializedView):
            continue
        shape = TABLES[model.views[key].shape.source]
        missed: dict[str, list[Row]] = {}
        for slice_ in gap_of(view, snapshot):
            parts = ", ".join(f"'{part.name}'" for part in slice_.parts)
            rows = dicts(
                connection, f"SELECT * FROM {model.names[shape.key]} WHERE _part IN ({parts})"
            )
            missed[slice_.partition] = [model.read(shape.key, row) for row in rows]
        found = [
            one.without(key, chosen)
            for one in found
            for chosen in islice(_gaps(one, key, pieces, missed), SETTLED_MAX)
        ]
    for one in found:
        one.unsettled.clear()
    return found


def _gaps(
    model: Model, key: str, open_: frozenset[int], missed: Mapping[str, list[Row]]
) -> Iterator[list[int]]:
    """Yield the choices of open pieces with which the view's gap has the rows that the engine
    shows."""
    view = model.views[key]
    shape = TABLES[view.shape.source]
    ways: list[list[list[int]]] = []
    source = model.pieces[shape.key]
    known = model.gap(view)
    for slice_ in {piece.slice for piece in source.values()}:
        some = [
            n for n in sorted(open_) if n in source and n in view.seen and source[n].slice == slice_
        ]
        before = [row for piece in known.get(slice_, {}).values() for row in piece.rows]
        wanted = shape.content(missed.get(slice_, []))
        fitting = [
            list(chosen)
            for size in range(len(some), -1, -1)
            for chosen in combinations(some, size)
            if shape.content([*before, *(r for n in chosen for r in source[n].rows)]) == wanted
        ]
        ways.append(fitting[:SETTLED_MAX])
    for several in product(*ways):
        yield [number for some in several for number in some]


def untruths(model: Model, seen: Observation) -> Iterator[str]:
    """Yield the differences in words; nothing where the engine is right."""
    if set(seen.rows) != set(model.names.values()):
        yield f"the tables are {sorted(seen.rows)}, should be {sorted(model.names.values())}"
        return
    for key, name in model.names.items():
        if seen.parts[name][0] != model.ids.setdefault(key, str(seen.parts[name][0])):
            yield f"{name} is not the table that it should be"
            return
    for key, name in model.names.items():
        shape = TABLES[key]
        more = set(seen.columns[name]).symmetric_difference(model.fields(key))
        if (more and shape.optional) or more.intersection(model.fields(key)):
            yield f"{name} has the columns {seen.columns[name]}"
            return
        there = shape.content(model.read(key, r) for r in seen.rows[name])
        wanted = shape.content(model.rows(key))
        if there != wanted:
            yield f"{name} holds {_apart(there, wanted)}"
    positions = {
        (model.names[table], stream): at for (table, stream), at in model.positions.items()
    }
    if positions != seen.positions:
        yield f"streams stand at {seen.positions}, should stand at {positions}"
    if seen.keys != (len(model.keys), model.dropped):
        yield f"keys and duplicates are {seen.keys}, should be {len(model.keys), model.dropped}"
    if set(seen.status) != set(model.views):
        yield f"the views are {sorted(seen.status)}, should be {sorted(model.views)}"
        return
    for view in model.views.values():
        yield from (f"{view.shape.key}: {what}" for what in _about(model, view, seen))


def _apart(there: Mapping[Row, Row], wanted: Mapping[Row, Row]) -> str:
    keys = sorted(k for k in {*there, *wanted} if there.get(k) != wanted.get(k))[:5]
    return ", ".join(f"{k}: {there.get(k)} instead of {wanted.get(k)}" for k in keys)


def _about(model: Model, view: ViewState, seen: Observation) -> Iterator[str]:
    """Yield the wrong facts about one view."""
    key = view.shape.key
    status = seen.status[key]
    verdict = status["verdict"]
    by_hand = model.bypass(view.shape.target)
    gap = model.gap(view)
    differing = model.differing(view)
    named = {slice_ for slice_, cause, _ in seen.stale.get(key, ()) if cause != "VIEW FAILED"}
    if status["standing"] != view.standing:
        yield f"stands as {status['standing']!r}, not {view.standing!r}"
    if bool(status["attached"]) != view.attached:
        yield f"attached is {status['attached']}"
    if differing and None not in named and not differing <= named:
        yield f"slices {differing - named} are wrong and not named; named are {named}"
    if not model.keeps(view) and status["mend"]:
        yield f"cannot be mended, and is said to be by {status['mend']}"
    stuck = verdict == "unproven" and model.keeps(view)
    if stuck and not _failing(model, view, gap, status):
        yield f"is called unproven: {status['reason']}"
    if differing and verdict != "stale" and not stuck:
        yield f"is called {verdict}, but slices {differing} are wrong"
    if verdict == "stale" and not named and not status["stale_slices"]:
        yield "is called stale, and no slice is named"
    for slice_, cause, statement in seen.stale.get(key, ()):
        if (cause, statement) not in model.happened:
            yield f"slice {slice_} is stale by {cause} of {statement!r}, which did not happen"
    yield from _gap(model, view, gap, seen)
    rows = sum(len(piece.rows) for piece in by_hand.values())
    shape = TABLES[view.shape.target]
    least = len({(p.slice, k) for p in by_hand.values() for k in shape.content(p.rows)})
    if not (least <= status["bypass_rows"] <= rows) or (rows and not status["bypass_rows"]):
        yield f"has {status['bypass_rows']} bypass rows, not between {least} and {rows}"
    yield from _retained(model, view, seen)
    kept = {leave: one for leave, (_, one) in model.retained.items() if leave[0] == view.id and one}
    if verdict in ("covered", "proven", "retained") and (verdict == "retained") != bool(kept):
        yield f"is called {verdict}, and {kept} is frozen"
    if verdict == "bypassed" and not by_hand:
        yield "is called bypassed, and no row is by hand"
    if verdict == "partial" and not gap:
        yield "is called partial, and has no gap"
    if verdict in ("covered", "proven", "retained") and (gap or by_hand or differing):
        yield f"is called {verdict}; gap {gap}, by hand {by_hand}, differing {differing}"
    failed = any(cause == "VIEW FAILED" for _, cause, _ in seen.stale.get(key, ()))
    if failed and model.keeps(view) and not gap:
        yield "is said to have failed on rows, and has no gap"
    if verdict != "unproven" and not model.keeps(view):
        yield f"is called {verdict}, and its source keeps no rows"
    if verdict not in ("covered", "proven", "partial", "stale", "bypassed", "unproven", "retained"):
        yield f"is called {verdict}: {status['reason']}"


def _failing(
    model: Model, view: ViewState, gap: Mapping[str, Mapping[int, Piece]], status: Mapping[str, Any]
) -> bool:
    """Return whether the view is rightly called unproven over a source that keeps its rows: the
    reason names a repair that failed, the view still fails on rows that this repair reads, and
    what is said to mend the view is another repair."""
    missed = [piece for pieces in gap.values() for piece in pieces.values()]
    seen = model.seen_pieces(view)
    failed = [
        (repair, pieces)
        for repair, pieces in (("BACKFILL", missed), ("REPLAY", seen), ("RECONCILE", seen))
        if f"{repair} failed: Code" in status["reason"]
    ]
    if any(f"SYSTEM {repair} " in status["mend"] for repair, _ in failed):
        return False
    try:
        model.made_of(view, [piece for _, pieces in failed for piece in pieces])
    except Fails:
        return True
    return False


def _gap(
    model: Model, view: ViewState, gap: Mapping[str, Mapping[int, Any]], seen: Observation
) -> Iterator[str]:
    """Yield wrong gaps: exact over a source that keeps its rows; over one that joins them, only
    whether there are any."""
    source = view.shape.source
    exact = not TABLES[source].joins
    pieces: dict[str, dict[str, int]] = {"gap": {}, "covered": {}}
    for number, piece in model.pieces[source].items():
        status = "covered" if number in view.seen else "gap"
        counts = pieces[status]
        counts[piece.slice] = counts.get(piece.slice, 0) + len(piece.rows)
    for status, wanted in pieces.items():
        there = {
            partition: rows
            for (name, partition, what), rows in seen.coverage.items()
            if (name, what) == (view.shape.key, status)
        }
        if (there != wanted) if exact else (set(there) != set(wanted)):
            yield f"rows of {source}, {status}: {there}, should be {wanted}"
    rows = seen.status[view.shape.key]["gap_rows"]
    if bool(rows) != bool(gap) or (exact and rows != sum(pieces["gap"].values())):
        yield f"has a gap of {rows} rows, should be {pieces['gap']}"


def _retained(model: Model, view: ViewState, seen: Observation) -> Iterator[str]:
    """Yield wrong counts of retained rows and wrong frozen keys: these must be exactly the keys
    that the rows reached, or all."""
    for side, shape in (("source", view.shape.source), ("target", view.shape.target)):
        exact = side == "source" and not TABLES[shape].joins
        wanted = {
            slice_: (rows if exact else 0, one if None not in one else None)
            for (view_id, what, slice_), (rows, one) in model.retained.items()
            if (view_id, what) == (view.id, side)
        }
        there = {
            slice_: (rows if exact else 0, one if None not in one else None)
            for (what, slice_), (rows, one) in seen.retained[view.shape.key].items()
            if what == side
        }
        if there != wanted:
            yield f"left by retention of {side} {shape}: {there}, should be {wanted}"

"""The invariants, checked in every state that the exploration reaches.

The numbers in the messages are those of docs/invariants.md, "What may never break".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tests.protocol.model import (
    REBUILT,
    SOURCE,
    TARGET,
    Atom,
    Part,
    Protocol,
    World,
    actual,
    blocks_seen,
    covers,
    expected,
    is_bypass,
    is_current,
    parts_of,
    stale,
    touches,
    views_on,
)


def violations(world: World, protocol: Protocol) -> Iterator[str]:
    """Yield the violations in words; nothing for a sound state."""
    yield from _rows(world)
    yield from _coverage(world)
    yield from _targets(world)
    yield from _verdicts(world, protocol)
    yield from _files(world)
    yield from _names(world)


def _rows(world: World) -> Iterator[str]:
    """Check 1: no acknowledged row is lost or doubled."""
    counts = Counter(r for p in parts_of(world.catalog, SOURCE) for r in p.content)
    for row, count in counts.items():
        if count > 1:
            yield f"1: source row {row} is there {count} times"
        if row in world.removed:
            yield f"1: deleted source row {row} is back"
    for row in sorted(world.acknowledged - world.removed):
        if row not in counts:
            yield f"1: acknowledged row {row} is lost"


def _coverage(world: World) -> Iterator[str]:
    """Check 2: coverage consists of whole parts, and an attached view has no silent gap."""
    catalog = world.catalog
    for table in ("s", "t", "n"):
        for view in views_on(catalog, table):
            for part in parts_of(catalog, table):
                if touches(catalog, view.id, part) and not covers(catalog, view.id, part):
                    yield f"2: {view.name} has seen half of {_name(part)}"
    for view_id, block in sorted(world.owed):
        source = next((v.source for v in catalog.views if v.id == view_id), None)
        if source is None:
            continue
        parts = [p for p in parts_of(catalog, source) if p.first <= block <= p.last]
        missed = [p for p in parts if block not in blocks_seen(catalog, view_id, p.partition)]
        if missed:
            yield f"2: {view_id.split('#')[0]} was attached and missed block {block} of {source}"


def _targets(world: World) -> Iterator[str]:
    """Check 2: rows that are covered and not stale exist once; and so do bypass rows."""
    catalog = world.catalog
    for table in ("t", "u", "n"):
        wanted, there = expected(catalog, table), actual(catalog, table, bypass=False)
        for slice_ in sorted({*wanted, *there}):
            if stale(catalog, table, slice_):
                continue
            if wanted.get(slice_, ()) != there.get(slice_, ()):
                yield (
                    f"2: slice {slice_} of {table} holds {_words(there.get(slice_, ()))},"
                    f" its coverage claims {_words(wanted.get(slice_, ()))}"
                )
        counts = Counter(
            a for p in parts_of(catalog, table) if is_bypass(catalog, p) for a in p.content
        )
        for where, atom in sorted(world.kept, key=repr):
            if where == table and counts[atom] != 1:
                yield f"1: row {_word(atom)} of {table}, made by no view, is {counts[atom]} times"


def _verdicts(world: World, protocol: Protocol) -> Iterator[str]:
    """Check 9: a verdict "equal" that is still current is true."""
    catalog = world.catalog
    by_id = {v.id: v for v in catalog.views}
    for check in sorted(catalog.checks, key=repr):
        if not is_current(catalog, protocol, check):
            continue
        view_id, slice_, _ = check
        table = by_id[view_id].target
        wanted = expected(catalog, table).get(slice_, ())
        there = actual(catalog, table, bypass=True).get(slice_, ())
        if wanted != there:
            yield (
                f"9: slice {slice_} of {table} counts as proven, holds {_words(there)} and"
                f" should hold {_words(wanted)}"
            )


def _files(world: World) -> Iterator[str]:
    """Check 6: every file that a reader may read exists."""
    for part in sorted(world.catalog.parts):
        if part.id not in world.files:
            yield f"6: the file of {_name(part)} is gone"
    for actor, snapshot, reads in sorted(world.pins, key=repr):
        for part in sorted(snapshot.parts if reads else ()):
            if part.id not in world.files:
                yield f"6: the file of {_name(part)}, which actor {actor} reads, is gone"


def _names(world: World) -> Iterator[str]:
    """Check 10: readers of a target's name read the version that has it, which lacks nothing."""
    named = world.catalog.named
    for view in sorted(world.catalog.views):
        if view.source in (TARGET, REBUILT) and view.source != named:
            yield f"10: {view.name} reads {view.source}, which has lost its name to {named}"
    for difference in sorted(world.unlike):
        yield f"10: the swap took {difference} from the readers of the name"


def _name(part: Part) -> str:
    return f"part {part.table}.{part.partition}_{part.first}_{part.last}"


def _words(content: Iterable[Atom]) -> str:
    return "(" + ", ".join(_word(a) for a in content) + ")"


def _word(atom: Atom) -> str:
    if isinstance(atom, str):
        return atom
    definition, inner, dimension = atom
    state = f", d={dimension}" if dimension else ""
    return f"{definition}({_word(inner)}{state})"

"""The scenarios to explore: for each guard a small one that needs it, and every pair and triple
of operations after a few histories."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

from tests.protocol.explore import Program, Scenario
from tests.protocol.operations import Backfill, ChangeView, Delete, Insert, Merge, Truncate
from tests.protocol.repairs import Read, Reconcile, Replay, Vacuum
from tests.protocol.swaps import BESIDE, Swap
from tests.protocol.turn import Operation

CREATE_V = ChangeView("CREATE", "v", "s", "t")
CREATE_V2 = ChangeView("CREATE", "v2", "s", "t")
CREATE_W = ChangeView("CREATE", "w", "t", "u")
CREATE_VD = ChangeView("CREATE", "v", "s", "t", True)
CREATE_X = ChangeView("CREATE", "x", "s", "d")
CREATE_N = ChangeView("CREATE", BESIDE, "s", "n")
CREATE_ND = ChangeView("CREATE", BESIDE, "s", "n", True)
DETACH_N = ChangeView("DETACH", BESIDE)
DETACH_W, ATTACH_W = ChangeView("DETACH", "w"), ChangeView("ATTACH", "w")
DETACH_V = ChangeView("DETACH", "v")
ATTACH_V = ChangeView("ATTACH", "v")
DROP_V = ChangeView("DROP", "v")
MODIFY_V = ChangeView("MODIFY", "v")


def insert(*rows: str, token: str = "", unknown: bool = False) -> Insert:
    """Return an INSERT into the source."""
    return Insert("s", rows, token, unknown)


def by_hand(*rows: str) -> Insert:
    """Return an INSERT directly into the target of v: bypass rows."""
    return Insert("t", rows)


def dimension(*rows: str) -> Insert:
    """Return an INSERT into the dimension."""
    return Insert("d", rows)


A1, A2, B1 = insert("a1"), insert("a2"), insert("b1")
FILL_A, FILL_B = Backfill("v", "a"), Backfill("v", "b")
REPLAY, REPLAY_A = Replay("t"), Replay("t", ("a",))
FILL_N = Backfill(BESIDE, "a")
SWAP, ROLLBACK = Swap(), Swap(steps_back=True)
NAMED: dict[str, Scenario] = {}
"""By guard, the scenario that breaks without it."""


def _needs(guard: str, history: Program, *programs: Program, crashes: int = 0) -> None:
    NAMED[guard] = Scenario(guard, history, programs, crashes)


_needs("1.views", (), (A1,), (CREATE_V,))
_needs("1.one_commit", (CREATE_V,), (A1,))
_needs("1.dimension", (CREATE_VD,), (A1,), (dimension("a7"),))
_needs("1.own_dimension", (CREATE_X, CREATE_VD), (A1,))
_needs("2.coverage_opens", (A1,), (CREATE_V,))
_needs("3.view", (A1, CREATE_V), (FILL_A,), (MODIFY_V, REPLAY))
_needs("3.data_version", (A1, A2, CREATE_V), (FILL_A,), (Delete(("a1",)),))
_needs("3.not_covered", (A1, CREATE_V), (FILL_A,), (FILL_A,))
_needs("3.no_straddle", (CREATE_V, DETACH_V, A1), (FILL_A,), (A2, Merge("s")))
_needs("3.coverage_with_rows", (A1, CREATE_V), (FILL_A,))
_needs("3.dimension", (A1, CREATE_VD), (FILL_A,), (dimension("a7"),))
_needs("4.parts_live", (A1, A2), (Delete(("a1",)),), (Merge("s"),))
_needs("4.raise", (A1, A2, CREATE_V), (FILL_A,), (Delete(("a1",)),))
_needs("4.stale", (CREATE_V, A1), (Delete(("a1",)),))
_needs("4.watchers", (A1,), (Delete(("a1",)),), (CREATE_V, FILL_A))
_needs("4.not_covered", (A1, CREATE_V), (Delete(("a1",)),), (FILL_A,))
_needs("4.dimension_stale", (CREATE_VD, A1), (dimension("a7"),))
_needs("4.dimension_watchers", (), (dimension("a7"),), (CREATE_VD, A1))
_needs("4.dimension_unseen", (CREATE_VD, DETACH_V), (dimension("a7"),), (A1, FILL_A))
_needs("4.dimension_read", (CREATE_VD, A1), (Delete(("a1",)),), (dimension("a7"), REPLAY))
_needs("5.views_of_target", (A1, CREATE_V), (FILL_A,), (CREATE_W,))
_needs("5.chunk_fires", (A1, CREATE_V, CREATE_W), (FILL_A,))
_needs("5.all_parts", (CREATE_V, A1), (Truncate("t"),), (A2,))
_needs("5.coverage_leaves", (CREATE_V, A1), (Truncate("t"),))
_needs("6.view", (CREATE_VD, A1, dimension("a7")), (REPLAY,), (DROP_V,))
_needs(
    "6.data_version", (CREATE_W, by_hand("a9")), (Truncate("t"),), (Replay("u"),), (Replay("u"),)
)
_needs(
    "6.dimension",
    (A1, CREATE_VD, B1, CREATE_W, dimension("b7")),
    (dimension("a7"),),
    (REPLAY,),
    (REPLAY,),
)
_needs("6.whole_target", (CREATE_VD, A1, dimension("a7")), (REPLAY,), (Truncate("t"), FILL_A))
_needs("5.raise_whole", (CREATE_VD, A1, dimension("a7")), (REPLAY,), (Truncate("t"), FILL_A))
_needs("6.fence", (CREATE_V, A1), (REPLAY,), (A2,))
_needs("6.straddle", (CREATE_V, A1), (REPLAY,), (A2, Merge("t")))
_needs("6.parts", (CREATE_V, A1, A2), (REPLAY,), (Merge("t"),))
_needs("6.target_version", (CREATE_V, A1), (REPLAY,), (REPLAY,))
_needs("6.all_writers", (CREATE_V, CREATE_V2, A1), (REPLAY,))
_needs("6.bypass_stays", (CREATE_V, A1, by_hand("a9")), (REPLAY,))
_needs(
    "6.clear_up_to", (CREATE_V, DETACH_V, B1, ATTACH_V, A1), (REPLAY,), (FILL_B, Delete(("b1",)))
)
_needs("6.watchers", (CREATE_V, A1), (REPLAY,), (CREATE_W, Backfill("w", "a")))
_needs("6.downstream_not_covered", (CREATE_V, A1, CREATE_W), (REPLAY,), (Backfill("w", "a"),))
_needs("6.downstream_stale", (CREATE_VD, CREATE_W, A1, dimension("a7")), (REPLAY,))
_needs("7.bypass_apart", (CREATE_V, A1, by_hand("a9")), (Merge("t"), REPLAY))
_needs("7.makers_apart", (CREATE_V, A1, CREATE_V2, A2), (Merge("t"), DROP_V))
_needs("8.parts_live", (A1, A2), (Merge("s"),), (Delete(("a1",)),))
_needs("8.coverage_common", (A1, CREATE_V, DETACH_V), (A2, Merge("s")), (FILL_A,))
_needs("8.contributions", (CREATE_V, A1, A2), (Merge("t"),))
_needs("9.stale", (CREATE_V, A1), (Reconcile("t"),), (Delete(("a1",)),))
_needs("9.newest_block", (CREATE_V, A1), (Reconcile("t"),), (by_hand("a9"),))
_needs("9.clear_up_to", (CREATE_V, A1), (Reconcile("t"),), (Delete(("a1",)),))
_needs("10.identity", (A1,), (CREATE_V, DROP_V, CREATE_V), (FILL_A,))
_needs("10.versions", (CREATE_V, A1, CREATE_N, FILL_N), (SWAP,), (MODIFY_V, REPLAY))
_needs("10.readers", (CREATE_V, CREATE_N, A1), (SWAP,), (CREATE_W,))
_needs("10.no_bypass", (CREATE_V, CREATE_N, A1), (SWAP,), (by_hand("a9"),))
_needs("10.no_gap", (CREATE_V, CREATE_N), (SWAP,), (DETACH_N, A1))
_needs("10.nothing_stale", (CREATE_VD, CREATE_ND, A1), (SWAP,), (dimension("a7"),))
_needs(
    "10.reader_version",
    (CREATE_V, CREATE_W, A1, DETACH_W, A2, ATTACH_W, CREATE_N, FILL_N),
    (SWAP, Replay("u")),
    (Backfill("w", "a"),),
)
_needs("10.reader_stale", (CREATE_V, CREATE_N, CREATE_W, A1), (SWAP,))
_needs("10.cover_source", (A1, CREATE_V, CREATE_N, FILL_N, CREATE_W), (SWAP,))
_needs("11.stale", (CREATE_V, A1), (MODIFY_V,))
_needs("12.token", (CREATE_V,), (insert("a1", token="x", unknown=True), insert("a1", token="x")))
_needs("13.lease", (), (A1,), (Vacuum(suspects=True),))
_needs("13.revoke_first", (), (A1,), (Vacuum(suspects=True),))
_needs("13.live_leases", (), (A1,), (Vacuum(),))
_needs("13.catalog_last", (), (A1,), (Vacuum(),))
_needs("13.pins", (A1, A2), (Read(),), (Merge("s"), Vacuum()))
_needs("13.mark", (A1, A2), (Read(),), (Merge("s"), Vacuum()))
_needs("13.look_again", (A1, A2), (Read(),), (Merge("s"), Vacuum()))
_needs("13.write_first", (), (A1,), crashes=1)
_needs("14.keep_files", (), (insert("a1", unknown=True),))

GUARDS = tuple(NAMED)

HISTORIES: dict[str, Program] = {
    "nothing": (),
    "late view": (A1, B1, CREATE_V, CREATE_W),
    "view": (CREATE_V, A1, CREATE_W, B1, by_hand("a9")),
    "gap": (CREATE_V, CREATE_W, B1, DETACH_V, A1),
    "two writers": (CREATE_V, CREATE_V2, A1, DETACH_V, B1),
    "dimension": (A1, CREATE_VD, B1, CREATE_W, dimension("b7")),
    "own dimension": (CREATE_VD, CREATE_X, A1, DETACH_V, B1, CREATE_W, ATTACH_V),
    "rebuilt": (CREATE_V, CREATE_W, A1, CREATE_N, FILL_N, B1),
    "stale": (CREATE_V, CREATE_W, A1, B1, Delete(("a1",))),
}
MENU: tuple[Operation, ...] = (
    insert("a3", "b3"),
    by_hand("a8"),
    dimension("a7"),
    Delete(("a1",)),
    Truncate("t"),
    ChangeView("CREATE", "v", "s", "t", True),
    DETACH_V,
    ATTACH_V,
    DROP_V,
    MODIFY_V,
    FILL_A,
    Backfill("w", "a"),
    REPLAY,
    REPLAY_A,
    Replay("t", None, True),
    Replay("u"),
    Merge("s"),
    Merge("t"),
    Reconcile("t"),
    SWAP,
    ROLLBACK,
    Vacuum(suspects=True),
    Read(),
)


def together(count: int, crashes: int = 0) -> Iterator[Scenario]:
    """Yield every choice of `count` operations of the menu at once, after each history."""
    for name, history in HISTORIES.items():
        for chosen in combinations_with_replacement(MENU, count):
            programs = tuple((_own(one, index),) for index, one in enumerate(chosen))
            yield Scenario(name, history, programs, crashes)


def _own(operation: Operation, index: int) -> Operation:
    """Return the operation with the actor's index in its row names, so that no two actors insert
    the same row."""
    if not isinstance(operation, Insert):
        return operation
    return operation._replace(rows=tuple(f"{row}{index}" for row in operation.rows))


def sequences(length: int) -> Iterator[Scenario]:
    """Yield two actors, each with any `length` operations one after another, after each history."""
    for name, history in HISTORIES.items():
        programs = [
            tuple(_own(one, index) for index, one in enumerate(chosen))
            for chosen in product(MENU, repeat=length)
        ]
        for left, right in combinations_with_replacement(programs, 2):
            other = tuple(_own(one, 7) for one in right)
            yield Scenario(name, history, (left, other))

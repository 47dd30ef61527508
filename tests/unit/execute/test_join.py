"""Joins against a nested loop in Python, for every kind and strictness, any batching."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.compute.context import BATCH_ROWS
from olapdb.config import tuning
from olapdb.errors import MemoryLimitExceeded
from olapdb.execute import ExecutionContext
from olapdb.execute.run import run_node
from olapdb.plan import nodes
from olapdb.types import INT64, STRING, UINT64, Nullable, make_nullable
from tests.unit.execute.build import call, col, const, rows_of, values

pytestmark = pytest.mark.feature("select")

KEY = Nullable(INT64)
ROWS = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 9)), max_size=10)
Side = list[tuple[int | None, int]]
SIZES = st.tuples(st.integers(1, 6), st.booleans(), st.integers(1, 2))
"""Rows of a batch, whether an index is made of any number of keys, threads."""


def joined(node: nodes.Node, sizes: tuple[int, bool, int]) -> list[tuple[object, ...]]:
    batch_rows, is_indexed, threads = sizes
    with pytest.MonkeyPatch.context() as patched:
        if is_indexed:
            patched.setattr(tuning, "INDEXED_VALUES_MIN", 1)
        return rows_of(node, max_block_size=batch_rows, max_threads=threads)


def join(
    left: Side,
    right: Side,
    kind: str,
    strictness: str = "ALL",
    *,
    residual: bool = False,
    use_nulls: bool = False,
) -> nodes.Join:
    sides = [
        values({f"{name}k": (KEY, [r[0] for r in rows]), f"{name}v": (INT64, [r[1] for r in rows])})
        for name, rows in (("l", left), ("r", right))
    ]
    fields = [*sides[0].schema, *sides[1].schema]
    if strictness in ("SEMI", "ANTI"):
        fields = fields[:2]
    elif use_nulls:
        fields = [nodes.Field(f.name, make_nullable(f.type)) for f in fields]
    keyed = kind != "CROSS"
    return nodes.Join(
        sides[0],
        sides[1],
        kind,
        strictness,  # type: ignore[arg-type]
        (col("lk", KEY),) if keyed else (),
        (col("rk", KEY),) if keyed else (),
        call("less", col("lv", INT64), col("rv", INT64)) if residual else None,
        tuple(fields),
    )


def partners(left: Side, right: Side, residual: bool) -> list[tuple[int, int]]:
    return [
        (i, j)
        for i, (lk, lv) in enumerate(left)
        for j, (rk, rv) in enumerate(right)
        if lk is not None and lk == rk and (not residual or lv < rv)
    ]


def expected(
    left: Side, right: Side, kind: str, residual: bool, nobody: int | None
) -> list[object]:
    pairs = partners(left, right, residual)
    rows: list[object] = []
    for i, row in enumerate(left):
        mine = [j for a, j in pairs if a == i]
        rows += [(*row, *right[j]) for j in mine]
        if not mine and kind in ("LEFT", "FULL"):
            rows.append((*row, None, nobody))
    if kind in ("RIGHT", "FULL"):
        matched = {j for _, j in pairs}
        rows += [(None, nobody, *right[j]) for j in range(len(right)) if j not in matched]
    return rows


@pytest.mark.parametrize("use_nulls", [False, True])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("kind", ["INNER", "LEFT", "RIGHT", "FULL"])
@given(left=ROWS, right=ROWS, sizes=SIZES)
def test_all(
    kind: str,
    residual: bool,
    use_nulls: bool,
    left: Side,
    right: Side,
    sizes: tuple[int, bool, int],
) -> None:
    node = join(left, right, kind, residual=residual, use_nulls=use_nulls)
    nobody = None if use_nulls else 0
    assert joined(node, sizes) == expected(left, right, kind, residual, nobody)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("strictness", ["SEMI", "ANTI"])
@given(left=ROWS, right=ROWS, sizes=SIZES)
def test_semi_and_anti(
    strictness: str, residual: bool, left: Side, right: Side, sizes: tuple[int, bool, int]
) -> None:
    node = join(left, right, "LEFT", strictness, residual=residual)
    with_partner = {i for i, _ in partners(left, right, residual)}
    wanted = strictness == "SEMI"
    assert joined(node, sizes) == [
        row for i, row in enumerate(left) if (i in with_partner) == wanted
    ]


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("kind", ["INNER", "LEFT", "RIGHT", "FULL"])
@given(left=ROWS, right=ROWS, sizes=SIZES)
def test_any(
    kind: str, residual: bool, left: Side, right: Side, sizes: tuple[int, bool, int]
) -> None:
    """The first partner of each left row (LEFT, FULL), right row (RIGHT), key (INNER)."""
    taken: dict[object, tuple[int, int]] = {}
    for i, j in partners(left, right, residual):
        taken.setdefault({"RIGHT": j, "INNER": left[i][0]}.get(kind, i), (i, j))
    pairs = sorted(taken.values())
    wanted: list[object] = [(*left[i], *right[j]) for i, j in pairs]
    if kind in ("LEFT", "FULL"):
        alone = set(range(len(left))) - {i for i, _ in pairs}
        wanted += [(*left[i], None, 0) for i in alone]
    if kind in ("RIGHT", "FULL"):
        alone = set(range(len(right))) - {j for _, j in pairs}
        wanted += [(None, 0, *right[j]) for j in alone]
    found = joined(join(left, right, kind, "ANY", residual=residual), sizes)
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    if kind in ("INNER", "LEFT"):
        place = {row: at for at, row in reversed(list(enumerate(left)))}
        rows = [place[row[:2]] for row in found]  # type: ignore[index]
        assert rows == sorted(rows) or len(place) < len(left)


@given(left=ROWS, right=ROWS, sizes=SIZES)
def test_cross(left: Side, right: Side, sizes: tuple[int, bool, int]) -> None:
    found = joined(join(left, right, "CROSS"), sizes)
    assert found == [(*one, *two) for one in left for two in right]


@given(left=ROWS, right=ROWS, sizes=SIZES)
def test_a_condition_without_a_key(left: Side, right: Side, sizes: tuple[int, bool, int]) -> None:
    found = joined(join(left, right, "CROSS", residual=True), sizes)
    assert found == [(*one, *two) for one in left for two in right if one[1] < two[1]]


def test_the_pairs_of_one_row_come_in_batches() -> None:
    """However many they are, and wide rows in smaller ones."""
    left, right = nodes.Numbers("n", UINT64, 0, 2), nodes.Numbers("m", UINT64, 0, 300_000)
    wide = nodes.Project(
        left,
        (("n", col("n", UINT64)), ("s", call("repeat", const("x", STRING), const(10_000, UINT64)))),
    )
    for side, rows_max in ((left, BATCH_ROWS), (wide, 10_000)):
        node = nodes.Join(side, right, "CROSS", "ALL", (), (), None, (*side.schema, *right.schema))
        context = ExecutionContext()
        batches = run_node(node, context)
        first = next(batches)
        assert first.num_rows <= rows_max
        assert first.column("m")[5].as_py() == 5
        assert sum(batch.num_rows for batch in batches) == 600_000 - first.num_rows


def test_text_keys_and_large_sides_keep_the_left_order() -> None:
    left = nodes.Project(
        nodes.Numbers("n", UINT64, 0, 300_000),
        (("n", col("n", UINT64)), ("lk", call("toString", col("n", UINT64)))),
    )
    right = nodes.Project(
        nodes.Numbers("m", UINT64, 0, 100_000, 2),
        (("m", col("m", UINT64)), ("rk", call("toString", col("m", UINT64)))),
    )
    node = nodes.Join(
        left,
        right,
        "INNER",
        "ALL",
        (col("lk", STRING),),
        (col("rk", STRING),),
        None,
        (*left.schema, *right.schema),
    )
    found = rows_of(nodes.Project(node, (("n", col("n", UINT64)), ("m", col("m", UINT64)))))
    assert found == [(n, n) for n in range(0, 200_000, 2)]


def test_the_right_side_counts_against_the_memory_limit() -> None:
    numbers = nodes.Numbers("n", UINT64, 0, 1_000_000)
    other = nodes.Numbers("m", UINT64, 0, 10)
    node = nodes.Join(
        other,
        numbers,
        "INNER",
        "ALL",
        (col("m", UINT64),),
        (col("n", UINT64),),
        None,
        (*other.schema, *numbers.schema),
    )
    with pytest.raises(MemoryLimitExceeded, match="JOIN"):
        rows_of(node, max_memory_usage=4_000_000, max_bytes_ratio_before_external_join=0)

"""Steps that insert and remove rows: INSERT, DELETE, TRUNCATE, DROP PARTITION."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeAlias

from olapdb.dbapi.connection import Connection
from olapdb.errors import Error
from tests.schedules.model import Model
from tests.schedules.operation import CATALOG, STORE, Answer, Operation, Untrue
from tests.schedules.shapes import BAD_USER, KINDS, ONCE, PARTITIONS, TABLES, Row

INSERT_STAGES = (
    *STORE,
    *CATALOG,
    "insert.source_staged",
    "insert.view_fired",
    "insert.staged",
    "insert.before_commit",
    "insert.committed",
)


def bases(model: Model) -> list[str]:
    """Return the sources of the model."""
    return [key for key in ("s", "r", "e", "z", "h", "w") if key in model.names]


def stored_bases(model: Model) -> list[str]:
    """Return the sources that store rows."""
    return [key for key in bases(model) if TABLES[key].stores]


def plain_bases(model: Model) -> list[str]:
    """Return the sources that accept every row; there always is one."""
    return [key for key in ("s", "r") if key in model.names]


def targets(model: Model) -> list[str]:
    """Return the tables that views write."""
    return sorted({view.shape.target for view in model.views.values()})


Stretch: TypeAlias = tuple[str, int, int]
"""A stream, and the positions from, to (exclusive)."""


@dataclass(frozen=True)
class Insert(Operation):
    """An INSERT into a source, in blocks of `cut` rows, as files where `inline` is 0; a token or
    offsets may repeat. With `ignoring`, a block on which a view fails is the view's gap."""

    table: str
    rows: tuple[Row, ...]
    cut: int
    inline: int
    token: str = ""
    ignoring: bool = False
    offsets: tuple[Stretch, ...] = ()
    weight: ClassVar[int] = 45
    stages: ClassVar[tuple[str, ...]] = INSERT_STAGES
    refusals: ClassVar[tuple[str, ...]] = ("OFFSET_HOLE",)

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Self:
        bad = BAD_USER if "risky" in model.names and chance.random() < 0.25 else 1
        rows = tuple(
            (
                chance.choice(PARTITIONS),
                chance.choice(KINDS),
                chance.choice((1, 2, 3, 4, bad)),
                chance.randint(-5, 5),
            )
            for _ in range(chance.randint(1, 6))
        )
        token = f"token {chance.randint(1, 4)}" if chance.random() < 0.15 else ""
        table = chance.choice(bases(model))
        offsets = () if token or chance.random() < 0.8 else _stretches(model, table, chance)
        return cls(
            table,
            rows,
            chance.choice((1, 2, 1_000)),
            chance.choice((0, 262_144)),
            token,
            chance.random() < (0.7 if bad == BAD_USER else 0.1),
            offsets,
        )

    def sql(self, model: Model) -> str:
        return (
            f"INSERT INTO {model.names[self.table]}{self._columns(model)} SETTINGS max_insert_block_size = {self.cut},"
            f" inline_bytes_max = {self.inline}{self._more()} VALUES {written(self.rows)}"
        )

    def _columns(self, model: Model) -> str:
        """Return a column list for a table that may have more columns than the row."""
        return (
            f" ({', '.join(model.fields(self.table)[:4])})" if TABLES[self.table].optional else ""
        )

    def _more(self) -> str:
        token = f", insert_deduplication_token = '{self.token}'" if self.token else ""
        ignoring = ", materialized_views_ignore_errors = 1" if self.ignoring else ""
        told = {stream: [first, after] for stream, first, after in self.offsets}
        return f"{token}{ignoring}" + (f", source_offsets = '{json.dumps(told)}'" if told else "")

    def after(self, model: Model, answer: Answer) -> Model:
        if answer.error == "OFFSET_HOLE" and self._arrival(model) != "hole":
            raise Untrue(f"there is no hole: {answer.message}")
        if not answer.error and self._arrival(model) == "hole":
            raise Untrue(f"there is a hole in {self.offsets} at {model.positions}")
        return super().after(model, answer)

    def _arrival(self, model: Model) -> str:
        """Return "new", "known" or "hole" by the INSERT's offsets."""
        found = set()
        for stream, first, after in self.offsets:
            at = model.positions.get((self.table, stream), first)
            found.add("new" if at == first else "known" if after <= at else "hole")
        return found.pop() if len(found) == 1 else "hole" if found else "new"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        named = f"{self.table} {self.token}"
        if (self.token and named in model.tokens) or self._arrival(model) != "new":
            return
        for block in range(0, len(self.rows), self.cut):
            accepted = list(self._accepted(model, self.rows[block : block + self.cut]))
            model.add_rows(self.table, accepted, ignoring=self.ignoring)
        if self.token:
            model.tokens.add(named)
        for stream, _, after in self.offsets:
            model.positions[self.table, stream] = after

    def _accepted(self, model: Model, rows: Sequence[Row]) -> Iterator[Row]:
        """Yield the first row of each new key, where the table deduplicates."""
        at = [TABLES[self.table].fields.index(column) for column in ONCE]
        for row in rows:
            key = tuple(row[i] for i in at)
            if TABLES[self.table].optional:
                yield (*row, model.defaults.get(self.table, 0))
            elif self.table != "e":
                yield row
            elif key in model.keys:
                model.dropped += 1
            else:
                model.keys.add(key)
                yield row


def written(rows: Sequence[Row]) -> str:
    """Return the rows as VALUES."""
    return ", ".join(f"({p}, '{k}', {u}, {n})" for p, k, u, n in rows)


def _stretches(model: Model, table: str, chance: random.Random) -> tuple[Stretch, ...]:
    """Draw the next positions of one or two streams, mostly; or old ones, or some beyond a hole."""
    found: list[Stretch] = []
    for stream in chance.sample(("left", "right"), chance.choice((1, 1, 2))):
        at = model.positions.get((table, stream), 0)
        first, after = chance.choice(((0, 2), (0, 2), (0, 3), (-2, 0), (-1, 0), (-1, 1), (1, 2)))
        found.append((stream, max(at + first, 0), max(at + after, 1)))
    return tuple(found)


@dataclass(frozen=True)
class Deliver(Insert):
    """An INSERT by `connection.insert`, whose result is checked too."""

    weight: ClassVar[int] = 9

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Self:
        given = super().draw(model, chance)
        offsets = given.offsets or (() if given.token else _stretches(model, given.table, chance))
        return replace(given, cut=1_000, ignoring=False, offsets=offsets)

    def sql(self, model: Model) -> str:
        return f"-- insert into {model.names[self.table]}{self._columns(model)}{self._more()}: {written(self.rows)}"

    def perform(self, connection: Connection, text: str) -> Answer:
        """Insert by `connection.insert`, with the table and columns in the text."""
        table = text.split()[3].rstrip(":,")
        names = TABLES[self.table].fields[:4]
        if " (" in text.partition(":")[0]:
            names = tuple(text[text.index("(") + 1 : text.index(")")].split(", "))
        columns = dict(zip(names, zip(*self.rows, strict=True), strict=True))
        offsets = {stream: (first, after) for stream, first, after in self.offsets}
        try:
            done = connection.insert(
                table,
                {name: list(values) for name, values in columns.items()},
                token=self.token or None,
                offsets=offsets or None,
            )
        except Error as error:
            return Answer(error=error.name, message=str(error))
        return Answer(
            [{"rows": int(done), "duplicate": done.duplicate, "dropped": done.duplicates_dropped}]
        )

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        before = model.copy()
        yield from super().change(model, answer)
        if answer is None:
            return
        known = self._arrival(before) == "known" or f"{self.table} {self.token}" in before.tokens
        dropped = model.dropped - before.dropped
        wanted = {
            "rows": 0 if known else len(self.rows) - dropped,
            "duplicate": known,
            "dropped": dropped,
        }
        if answer.rows != [wanted]:
            raise Untrue(f"says {answer.rows}, should say {wanted}")


@dataclass(frozen=True)
class Copy(Operation):
    """INSERT SELECT from one source into the other."""

    source: str
    into: str
    weight: ClassVar[int] = 4
    stages: ClassVar[tuple[str, ...]] = INSERT_STAGES

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Copy | None:
        found = plain_bases(model)
        if len(found) < 2 or len(model.rows("s")) + len(model.rows("r")) > 60:
            return None
        return cls(*chance.sample(found, 2))

    def sql(self, model: Model) -> str:
        return f"INSERT INTO {model.names[self.into]} SELECT * FROM {model.names[self.source]}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        model.add_rows(self.into, model.rows(self.source))


@dataclass(frozen=True)
class WriteByHand(Operation):
    """An INSERT of bypass rows into a target."""

    table: str
    at: int
    kind: str
    weight: ClassVar[int] = 8
    stages: ClassVar[tuple[str, ...]] = INSERT_STAGES

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> WriteByHand | None:
        found = [t for t in targets(model) if TABLES[t].by_hand]
        if not found:
            return None
        return cls(chance.choice(found), chance.choice(PARTITIONS), chance.choice(KINDS))

    def sql(self, model: Model) -> str:
        return f"INSERT INTO {model.names[self.table]} VALUES {self._row()[0]}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        model.add_rows(self.table, [self._row()[1]])

    def _row(self) -> tuple[str, Row]:
        by_hand = TABLES[self.table].by_hand
        assert by_hand is not None
        return by_hand(self.at, self.kind)


@dataclass(frozen=True)
class FillByHand(Operation):
    """An INSERT SELECT of a partition of a view's past into its target, without a backfill."""

    view: str
    at: int
    settles: ClassVar[bool] = True
    weight: ClassVar[int] = 6
    stages: ClassVar[tuple[str, ...]] = INSERT_STAGES

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> FillByHand | None:
        found = [
            cls(view.shape.key, p)
            for view in model.views.values()
            if view.shape.filled and not view.standing
            for p in PARTITIONS
            if (missed := model.gap(view).get(str(p)))
            and len(missed)
            == sum(1 for x in model.pieces[view.shape.source].values() if x.slice == str(p))
        ]
        return chance.choice(found) if found else None

    def sql(self, model: Model) -> str:
        shape = model.views[self.view].shape
        query = shape.filled.format(source=model.names[shape.source], p=self.at)
        return f"INSERT INTO {model.names[shape.target]} {query}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        view = model.views[self.view]
        pieces = [p for p in model.pieces[view.shape.source].values() if p.slice == str(self.at)]
        model.add_rows(view.shape.target, model.made_of(view, pieces))


@dataclass(frozen=True)
class ChangeDimension(Operation):
    """An INSERT of a row into the dimension."""

    kind: str
    value: int
    weight: ClassVar[int] = 5
    stages: ClassVar[tuple[str, ...]] = INSERT_STAGES

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> ChangeDimension | None:
        if "d" not in model.names or len(model.rows("d")) > 5:
            return None
        return cls(chance.choice(KINDS), chance.randint(1, 3))

    def sql(self, model: Model) -> str:
        return f"INSERT INTO {model.names['d']} VALUES ('{self.kind}', {self.value})"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        model.blame("DIMENSION CHANGE")
        model.add_rows("d", [(self.kind, self.value)])


@dataclass(frozen=True)
class Delete(Operation):
    """A DELETE of rows of a source, or of the dimension, by the value of a column."""

    table: str
    column: int
    value: int | str
    weight: ClassVar[int] = 9
    stages: ClassVar[tuple[str, ...]] = (
        *STORE,
        *CATALOG,
        "delete.part_rewritten",
        "delete.before_commit",
    )

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Delete | None:
        found = [t for t in (*bases(model), "d") if model.pieces.get(t)]
        found = [t for t in found if not model.is_target(t)]
        if not found:
            return None
        table = chance.choice(found)
        column = chance.randrange(len(model.fields(table)))
        return cls(table, column, chance.choice(model.rows(table))[column])

    def sql(self, model: Model) -> str:
        name = model.fields(self.table)[min(self.column, len(model.fields(self.table)) - 1)]
        return f"DELETE FROM {model.names[self.table]} WHERE {name} = {self.value!r}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        cause = "DIMENSION CHANGE" if self.table == "d" else "DELETE"
        model.blame(cause)
        model.remove_rows(self.table, lambda row: row[self.column] == self.value)


@dataclass(frozen=True)
class DropPartition(Operation):
    """DROP PARTITION of a source."""

    table: str
    at: int
    weight: ClassVar[int] = 4
    stages: ClassVar[tuple[str, ...]] = (*CATALOG, "delete.before_commit")

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> DropPartition:
        return cls(chance.choice(stored_bases(model)), chance.choice(PARTITIONS))

    def sql(self, model: Model) -> str:
        return f"ALTER TABLE {model.names[self.table]} DROP PARTITION {self.at}"

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        model.blame("DROP PARTITION")
        model.remove_rows(self.table, lambda row: row[0] == self.at)


@dataclass(frozen=True)
class Truncate(Operation):
    """TRUNCATE of any table; in a target it removes the coverage."""

    table: str
    settles: ClassVar[bool] = True
    weight: ClassVar[int] = 4
    stages: ClassVar[tuple[str, ...]] = (*CATALOG, "delete.before_commit")
    refusals: ClassVar[tuple[str, ...]] = ("NOT_IMPLEMENTED", "RETAINED_ROWS")

    @classmethod
    def draw(cls, model: Model, chance: random.Random) -> Truncate:
        return cls(chance.choice(sorted(model.names)))

    def sql(self, model: Model) -> str:
        return f"TRUNCATE TABLE {model.names[self.table]}"

    def after(self, model: Model, answer: Answer) -> Model:
        """Check the answer: a Null table can be truncated only where it has delivery records."""
        delivered = any(token.split()[0] == self.table for token in model.tokens) or any(
            table == self.table for table, _ in model.positions
        )
        stores = TABLES[self.table].stores
        frozen = bool(model.frozen(self.table)) and bool(model.pieces[self.table])
        if frozen != (answer.error == "RETAINED_ROWS"):
            raise Untrue(f"takes frozen rows: {frozen}, {answer.message}")
        if not frozen and bool(answer.error) == (stores or delivered):
            raise Untrue(f"stores {stores}, delivered {delivered}: {answer.message}")
        return super().after(model, answer)

    def change(self, model: Model, answer: Answer | None) -> Iterator[None]:
        yield
        cause = "DIMENSION CHANGE" if self.table == "d" else "TRUNCATE"
        model.blame(cause)
        model.truncate(self.table)
        if answer is not None and model.pieces[self.table]:
            raise Untrue("rows are left")

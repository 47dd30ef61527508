"""Whether `system.views` is right: compares the target with the view's query over all of its source
at the same snapshot.

The comparison shares no code with RECONCILE. The expected rows are the query's own, run as a
SELECT, grouped by key in the query's own (wide) types, and compared as Python values. The target is
read with FINAL."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from olapdb.config import SESSION_SETTINGS
from olapdb.dbapi.connection import Connection
from olapdb.errors import Error
from olapdb.model.schema import Column, MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.types import (
    AggregateFunction,
    Array,
    DataType,
    Float,
    SimpleAggregateFunction,
    Tuple,
    is_nullable,
    is_number,
    plain,
)
from olapdb.views.provability.rounding import merges_by_adding
from tests.definitions.values import hashable, is_nothing, normal, same

TRUSTED = ("covered", "proven")
KEYLESS = "the only row"
CONTENT = (
    "VIOLATED_CONSTRAINT",
    "CANNOT_PARSE",
    "ATTEMPT_TO_READ_AFTER_EOF",
    "CANNOT_INSERT_NULL",
    "ARGUMENT_OUT_OF_BOUND",
    "DECIMAL_OVERFLOW",
    "INCORRECT_DATA",
    "TOO_LARGE_STRING_SIZE",
    "VALUE_IS_OUT_OF_RANGE",
    "CANNOT_CONVERT_TYPE",
    "TYPE_MISMATCH",
)
"""Errors that a row's value may cause."""


class NotComparable(Exception):
    """The rows cannot be told apart by a key, so the claim cannot be checked."""


@dataclass(frozen=True)
class Untruth:
    """A false verdict. `kind` stays the same while a script is shrunk; `detail` is text for
    people."""

    kind: str
    view: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.view}: {self.detail}"


@dataclass(frozen=True)
class Status:
    """A view's row of system.views."""

    name: str
    verdict: str
    reason: str
    mend: str


def statuses(connection: Connection) -> dict[str, Status]:
    """Return the status of each view by its name."""
    rows = connection.execute("SELECT name, verdict, reason, mend FROM system.views").fetchall()
    return {row[0]: Status(*row) for row in rows}


def fingerprint(connection: Connection, seen: Mapping[str, Status]) -> object:
    """Return a value that is equal as long as no rows, definitions or verdicts changed."""
    snapshot = connection.database.services.catalog.snapshot()
    tables = tuple(
        (item.id, item.version, tuple(part.id for part in snapshot.parts(item.id)))
        for item in snapshot.objects("default")
        if isinstance(item, Table)
    )
    return tables, tuple((s.name, s.verdict) for s in seen.values())


def untruths(
    connection: Connection, seen: Mapping[str, Status], counts: Counter[str]
) -> Iterator[Untruth]:
    """Yield an Untruth for each trusted view whose target differs from its query."""
    snapshot = connection.database.services.catalog.snapshot()
    views = {o.name: o for o in snapshot.objects("default") if isinstance(o, MaterializedView)}
    targets: dict[str, list[MaterializedView]] = {}
    for view in views.values():
        targets.setdefault(view.target_id, []).append(view)
    for target_id, writers in targets.items():
        target = snapshot.by_id(target_id)
        allowed = {seen[w.name].verdict for w in writers if w.name in seen}
        frozen = "retained" in allowed
        if not isinstance(target, Table) or not target.engine.stores_rows:
            continue
        if not allowed or not allowed <= {*TRUSTED, "retained"}:
            continue
        names = ", ".join(sorted(w.name for w in writers))
        try:
            boxes = _frozen(snapshot, writers) if frozen else []
            reader = _reader(connection, writers[0])
            comparison = Comparison(reader, snapshot, target, writers)
            wrong = comparison.difference(boxes)
        except NotComparable:
            counts["not comparable"] += 1
            continue
        except Error as error:
            of_a_value = any(name in error.name for name in CONTENT)
            if of_a_value and _is_of_nothing(connection, snapshot, target, writers):
                counts["of nothing"] += 1
                continue
            yield Untruth(f"recomputation fails ({error.name})", names, str(error)[:300])
            continue
        counts["compared"] += 1
        if wrong:
            sign = (
                wrong[: wrong.index("]") + 1]
                if wrong.startswith("[") and wrong[1] != "("
                else "[rows]"
            )
            yield Untruth(f"untrue {sign}", names, f"{sorted(allowed)}: {wrong}")


def _reader(connection: Connection, writer: MaterializedView) -> Connection:
    """Return a connection with a session of its own, in the writer's database and zone: it knows no
    temporary table, and no USE or SET, of the script."""
    database = connection.database
    return Connection(
        database, database.session(writer.database, {"session_timezone": writer.zone})
    )


def _is_of_nothing(
    connection: Connection, snapshot: Snapshot, target: Table, writers: Sequence[MaterializedView]
) -> bool:
    """Return whether neither a source nor the target has rows.

    Then rows of dimensions do not matter, not even one on which the query fails."""
    sources = [snapshot.by_id(writer.source_id) for writer in writers]
    tables = [one.name for one in (target, *sources) if isinstance(one, Table)]
    return not any(
        connection.execute(f"SELECT count() FROM {name}").fetchall()[0][0] for name in tables
    )


def _frozen(snapshot: Snapshot, writers: Sequence[MaterializedView]) -> list[tuple[Any, Any]]:
    """Return the bounds of the frozen keys. Raise NotComparable if a whole partition is frozen."""
    found = []
    for writer in writers:
        for kept in snapshot.retained(writer.id):
            for slice_ in kept.slices:
                if slice_.bounds is None:
                    raise NotComparable
                found.append((slice_.bounds.low, slice_.bounds.high))
    return found


@dataclass
class Comparison:
    """A comparison of a target with the union of its writers' queries."""

    connection: Connection
    snapshot: Snapshot
    target: Table
    writers: Sequence[MaterializedView]

    def difference(self, boxes: Sequence[tuple[Any, Any]]) -> str:
        """Return "" if both sides are equal, else the difference in words."""
        engine = self.target.engine
        if engine.merges_states:
            return self._by_key(boxes)
        if engine.combines:
            return self._kept_rows(boxes)
        if boxes:
            raise NotComparable
        return self._multisets()

    # --- the queries

    @property
    def columns(self) -> list[Column]:
        return list(self.target.stored_columns)

    @property
    def keys(self) -> list[str]:
        """Return the target's sorting key; NotComparable if it is not made of columns alone."""
        names = [item.expression.strip("`") for item in self.target.sorting_key]
        if any(self.target.column(name) is None for name in names):
            raise NotComparable
        return names

    def written(self) -> list[str]:
        """Return the columns that the queries write; NotComparable if they differ between
        writers."""
        if len(self.writers_by_columns()) > 1:
            raise NotComparable
        found = {c.name for c in self.writers[0].columns}
        return [c.name for c in self.target.columns if c.name in found]

    def computed(self) -> set[str]:
        """Return the columns that the target computes for the rows of some writer."""
        return {n for one in self.writers_by_columns() for n in one._own(one.written())}

    def shown(self) -> list[Column]:
        """Return the columns that each writer gives or the target computes for it; NotComparable if they
        differ between writers."""
        found = []
        for one in self.writers_by_columns():
            written = one.written()
            found.append({*written, *one._own(written)} & {c.name for c in self.columns})
        if any(names != found[0] for names in found):
            raise NotComparable
        return [c for c in self.columns if c.name in found[0]]

    def completed(self, *, finished: bool) -> str:
        """Return the rows of all writers, with the columns that the target computes; column c as w_c.

        `finished` finalizes states, in the rows and in the expressions."""
        texts = []
        for one in self.writers_by_columns():
            written = one.written()
            names = ", ".join(
                f"w_{c.name}" if c.name in written else f"{c.name} AS w_{c.name}"
                for c in self.shown()
            )
            texts.append(f"SELECT {names} FROM ({one._completed(written, finished=finished)})")
        return " UNION ALL ".join(texts)

    def writers_by_columns(self) -> list[Comparison]:
        """Return a comparison for the writers of each set of columns: the target computes the others."""
        groups: dict[frozenset[str], list[MaterializedView]] = {}
        for writer in self.writers:
            groups.setdefault(frozenset(c.name for c in writer.columns), []).append(writer)
        if len(groups) == 1:
            return [self]
        return [replace(self, writers=writers) for writers in groups.values()]

    def union(self) -> str:
        """Return the UNION ALL of all writers' queries. A column on whose type they differ is cast
        to the target's type."""
        kinds = [{c.name: c.type.name for c in writer.columns} for writer in self.writers]
        names = ", ".join(
            name if len({kind[name] for kind in kinds}) == 1 else f"{self._cast(name)} AS {name}"
            for name in self.written()
        )
        return " UNION ALL ".join(f"SELECT {names} FROM ({w.query})" for w in self.writers)

    def _as_key(self, name: str) -> str:
        """Return the key column as merges compare it: 0 and -0 are one key, and so are all NaN."""
        column = self.target.column(name)
        assert column is not None
        return _compared_as(name, column.type)

    def _cast(self, name: str) -> str:
        """Return the column cast to its type in the target."""
        return f"CAST({name} AS {self._type(name)})"

    def settings(self) -> str:
        """Return the SETTINGS clause of the settings that the first writer froze."""
        given = dict(self.writers[0].settings)
        said = [
            f"{name} = {value!r}" if isinstance(value, str) else f"{name} = {int(value)}"
            for name, value in given.items()
            if value != SESSION_SETTINGS[name].default and name != "dimensions"
        ]
        return f" SETTINGS {', '.join(said)}" if said else ""

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.connection.execute(query).fetchall()]

    @property
    def coarse(self) -> str:
        """Return " of Float32" if a table that the writers read has such columns, else "".

        Sums of Float32 depend on which values a merge has added up."""
        read = (self.snapshot.by_id(reference) for w in self.writers for reference in w.references)
        tables = (one for one in read if isinstance(one, Table))
        return (
            " of Float32"
            if any("Float32" in c.type.name for t in tables for c in t.columns)
            else ""
        )

    def merged(self, column: Column) -> str:
        """Return the expression that combines the column's values of one key."""
        kind, name = column.type, column.name
        if isinstance(kind, AggregateFunction):
            parameters = f"({', '.join(map(str, kind.parameters))})" if kind.parameters else ""
            return f"{kind.function}Merge{parameters}({name})"
        if isinstance(kind, SimpleAggregateFunction):
            return f"{kind.function}({name})"
        return f"sum({name})" if self.summed(column) else f"any({name})"

    def summed(self, column: Column) -> bool:
        """Return whether merges of the target sum the column."""
        engine = self.target.engine
        if engine.name != "SummingMergeTree" or not is_number(plain(column.type)):
            return False
        return not engine.arguments or column.name in engine.arguments

    def _own(self, written: Sequence[str]) -> dict[str, str]:
        """Return the expressions of columns that no query writes: their DEFAULT, or the zero or
        NULL of a column that merges sum."""
        own = {}
        for column in self.columns:
            if column.name in written:
                continue
            if column.default:
                own[column.name] = column.default
            elif self.summed(column):
                own[column.name] = "NULL" if is_nullable(column.type) else "0"
        return own

    def _completed(self, written: Sequence[str], *, finished: bool) -> str:
        """Return the union extended by the columns that the target itself computes from each stored
        row.

        `finished` finalizes states, in the rows and in the expressions."""
        own = self._own(written)
        for column in self.target.columns:  # defaults may read a column that is not stored
            if not column.stored and column.name not in written and column.default and own:
                own[column.name] = column.default
        texts = " ".join(own.values())
        rows, shown = [], []
        for name in written:
            value = name
            if finished and self._is_state(name):
                value = f"finalizeAggregation({name})"
            rows.append(f"{value} AS w_{name}")
            shown.append(f"w_{name}")
            if re.search(rf"\b{name}\b", texts):
                rows.append(f"{value if self._is_state(name) else self._cast(name)} AS {name}")
        for column in self.columns:  # a default may read a column that nobody writes
            name = column.name
            if name not in written and name not in own and re.search(rf"\b{name}\b", texts):
                rows.append(f"defaultValueOfTypeName('{self._type(name)}') AS {name}")
        for name, text in own.items():
            if finished:
                text = re.sub(r"finalizeAggregation\((\w+)\)", r"\1", text)
            shown.append(f"CAST({text} AS {self._type(name)}) AS {name}")
        return f"SELECT {', '.join(shown)} FROM (SELECT {', '.join(rows)} FROM ({self.union()}))"

    def _is_state(self, name: str) -> bool:
        column = self.target.column(name)
        return column is not None and isinstance(column.type, AggregateFunction)

    # --- targets whose merges combine rows

    def _by_key(self, boxes: Sequence[tuple[Any, Any]]) -> str:
        shown, keys, own = self.shown(), self.keys, self.computed()
        names = [c.name for c in shown]
        if not set(keys) <= set(names):
            raise NotComparable
        by = f" GROUP BY {', '.join(map(self._as_key, keys))}" if keys else ""
        actual = self.rows(
            "SELECT "
            + ", ".join(
                self._as_key(c.name) if c.name in keys else f"{self.merged(c)} AS m_{c.name}"
                for c in shown
            )
            + f" FROM {self.target.name} FINAL{by}"
        )
        inner = []
        for name in names:
            inner.append(
                f"CAST(w_{name} AS {self._type(name)}) AS {name}"
                if name in keys
                else f"w_{name} AS {name}"
            )
        # A GROUP BY over no rows returns no row; without keys an aggregate returns one empty row.
        said = [
            self._as_key(c.name) if c.name in keys else f"{self.merged(c)} AS m_{c.name}"
            for c in shown
        ]
        rows = f"SELECT {', '.join(inner)} FROM ({self.completed(finished=False)})"
        expected = self.rows(f"SELECT {', '.join(said)} FROM ({rows}){by}{self.settings()}")
        at = [names.index(k) for k in keys]
        sums = [i for i, c in enumerate(shown) if c.name not in keys and self.summed(c)]
        sides = [
            self._keyed(rows, at, sums, boxes, [i for i, n in enumerate(names) if n in own])
            for rows in (expected, actual)
        ]
        return self._apart(sides[0], sides[1], shown)

    def _keyed(
        self,
        rows: Sequence[tuple[Any, ...]],
        at: Sequence[int],
        sums: Sequence[int],
        boxes: Sequence[tuple[Any, Any]],
        filled: Sequence[int],
    ) -> dict[Any, tuple[Any, ...]]:
        found = {}
        for row in rows:
            key = tuple(hashable(row[i]) for i in at) or KEYLESS
            values = [v for i, v in enumerate(row) if i not in at and i not in filled]
            if sums and all(not row[i] for i in sums):
                continue  # merges drop rows whose sums are zero
            if key == KEYLESS and all(is_nothing(v) for v in values):
                continue
            if any(_within(key, box) for box in boxes):
                continue
            found[key] = row
        return found

    def _apart(
        self,
        expected: Mapping[Any, Sequence[Any]],
        actual: Mapping[Any, Sequence[Any]],
        columns: Sequence[Column],
    ) -> str:
        wrong, coarse = [], self.coarse
        for key in sorted({*expected, *actual}, key=repr):
            due, there = expected.get(key), actual.get(key)
            if due is None or there is None:
                wrong.append(("row", f"{key}: {there} instead of {due}"))
                continue
            for column, one, other in zip(columns, due, there, strict=True):
                exact = not coarse and _keeps_values(column.type)
                if not same(one, other, column.type.name + coarse, exact=exact):
                    wrong.append(
                        (column.name, f"{key}.{column.name}: {other!r} instead of {one!r}")
                    )
        if not wrong:
            return ""
        return f"[{wrong[0][0]}] " + "; ".join(text for _, text in wrong[:4])

    # --- targets that keep all rows

    def _multisets(self) -> str:
        shown = self.shown()
        finish = [
            f"finalizeAggregation({c.name}) AS {c.name}" if self._is_state(c.name) else c.name
            for c in shown
        ]
        actual = self.rows(f"SELECT {', '.join(finish)} FROM {self.target.name}")
        names = ", ".join(f"w_{c.name}" for c in shown)
        completed = self.completed(finished=True)
        expected = self.rows(f"SELECT {names} FROM ({completed}){self.settings()}")
        if len(expected) != len(actual):
            return f"[rows] {len(actual)} rows instead of {len(expected)}: {actual[:3]} instead of {expected[:3]}"
        kinds = [c.type.name + self.coarse for c in shown]
        left, right = (
            sorted(rows, key=lambda r: repr([normal(v, k) for v, k in zip(r, kinds)]))
            for rows in (expected, actual)
        )
        for due, there in zip(left, right, strict=True):
            if not all(same(a, b, k) for a, b, k in zip(due, there, kinds, strict=True)):
                return f"[values] {there} instead of {due}"
        return ""

    # --- targets that keep one row of several

    def _kept_rows(self, boxes: Sequence[tuple[Any, Any]]) -> str:
        if boxes:
            raise NotComparable
        engine, keys, written = self.target.engine, self.keys, self.written()
        if not set(keys) <= set(written):
            raise NotComparable
        columns = [c for c in self.columns if c.name in written]
        if any(isinstance(c.type, AggregateFunction) for c in columns):
            raise NotComparable
        by = ", ".join(keys)
        cast = ", ".join(f"CAST({k} AS {self._type(k)}) AS c_{k}" for k in keys)
        cs = ", ".join(f"c_{k}" for k in keys)
        if engine.sign is not None:
            if engine.sign not in written:
                raise NotComparable
            due = self.rows(
                f"SELECT {cast}, sum({engine.sign}) FROM ({self.union()}) GROUP BY {cs}{self.settings()}"
            )
            there = self.rows(
                f"SELECT {by}, sum({engine.sign}) FROM {self.target.name} FINAL GROUP BY {by}"
            )
            found = [
                {tuple(map(hashable, r[:-1])): r[-1] for r in side if r[-1]}
                for side in (due, there)
            ]
            return "" if found[0] == found[1] else f"{found[1]} instead of {found[0]}"
        due = self.rows(f"SELECT DISTINCT {cast} FROM ({self.union()}){self.settings()}")
        there = self.rows(f"SELECT DISTINCT {by} FROM {self.target.name}")
        left, right = ({tuple(map(hashable, r)) for r in side} for side in (due, there))
        if engine.version is None or engine.version not in written:
            return (
                ""
                if left == right
                else f"keys {sorted(right, key=repr)} instead of {sorted(left, key=repr)}"
            )
        due = self.rows(
            f"SELECT {cast}, max({engine.version}) FROM ({self.union()}) GROUP BY {cs}{self.settings()}"
        )
        there = self.rows(
            f"SELECT {by}, max({engine.version}) FROM {self.target.name} GROUP BY {by}"
        )
        found = [{tuple(map(hashable, r[:-1])): r[-1] for r in side} for side in (due, there)]
        return "" if found[0] == found[1] else f"{found[1]} instead of {found[0]}"

    def _type(self, name: str) -> str:
        column = self.target.column(name)
        assert column is not None
        return column.type.name


def _compared_as(value: str, kind: DataType) -> str:
    """Return an expression of the type that is the same for values that merges take for one key."""
    if "Float" not in kind.name:
        return value
    match plain(kind):
        case Float():
            return f"if(isNaN({value}), nan, {value} + 0)"
        case Array(inner=element):
            return f"arrayMap(z -> {_compared_as('z', element)}, {value})"
        case Tuple(elements=elements):
            items = (
                _compared_as(f"tupleElement({value}, {at + 1})", element)
                for at, element in enumerate(elements)
            )
            return f"tuple({', '.join(items)})"
        case _:
            raise NotComparable


def _keeps_values(data_type: DataType) -> bool:
    """Return whether merges of such states choose or collect values, and add none up."""
    is_state = isinstance(data_type, AggregateFunction | SimpleAggregateFunction)
    return is_state and not merges_by_adding(data_type)


def _within(key: Any, box: tuple[Any, Any]) -> bool:
    low, high = box
    try:
        return all(a is None or k is None or a <= k <= b for a, k, b in zip(low, key, high))
    except TypeError:
        return True  # bounds of another type: make no claim about the key

"""Hand-made plans for tests of operators: expressions, sources and stored tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from olapdb.engine.layout import TableLayout
from olapdb.execute import ExecutionContext, run
from olapdb.functions import constant, resolve_aggregate, resolve_scalar
from olapdb.functions.base import Argument
from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import Column, Engine, KeyItem, Table
from olapdb.plan import nodes
from olapdb.plan.expressions import AggregateCall, Call, ColumnRef, Constant, Expression, InValues
from olapdb.storage.part_plan import PartPlan
from olapdb.storage.store import MemoryStore
from olapdb.storage.writer import write_part
from olapdb.types import STRING, UINT8, UINT64, DataType
from tests.harness.fake_snapshot import FakeSnapshot

VIRTUAL = {"_part": STRING, "_partition_id": STRING, "_part_offset": UINT64}


def col(name: str, data_type: DataType) -> ColumnRef:
    return ColumnRef(data_type, name)


def const(value: object, data_type: DataType) -> Constant:
    return Constant(data_type, constant(value, data_type))


def call(name: str, *arguments: Expression) -> Call:
    function = resolve_scalar(
        name, [Argument(a.type, a.value if isinstance(a, Constant) else None) for a in arguments]
    )
    return Call(function.type, name, arguments, function)


def aggregate(
    name: str, *arguments: Expression, parameters: Sequence[object] = ()
) -> AggregateCall:
    resolved = resolve_aggregate(name, parameters, [a.type for a in arguments])
    return AggregateCall(resolved, name, arguments)


def in_values(argument: Expression, values: Sequence[object], negated: bool = False) -> InValues:
    array = pa.array(values, argument.type.arrow)
    return InValues(UINT8, argument, array, tuple(values), negated)


def values(columns: Mapping[str, tuple[DataType, Sequence[object]]]) -> nodes.Values:
    """Return a node of constant rows: `{"x": (INT64, [1, 2])}`."""
    fields = tuple(nodes.Field(name, t) for name, (t, _) in columns.items())
    table = pa.table([pa.array(v, t.arrow) for t, v in columns.values()], names=list(columns))
    return nodes.Values(fields, table)


def rows_of(
    node: nodes.Node, context: ExecutionContext | None = None, **settings: object
) -> list[tuple[object, ...]]:
    """Run a node as the session does; return its rows."""
    plan = nodes.Plan(node, tuple((f.name, f.name) for f in node.schema))
    return run(plan, context or ExecutionContext(settings=settings)).to_rows()


@dataclass
class Stored(FakeSnapshot):
    """A table with parts in a memory store, and a snapshot that has them."""

    table: Table
    store: MemoryStore = field(default_factory=MemoryStore)
    held: list[Part] = field(default_factory=list)
    inline: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        FakeSnapshot.__init__(self, self.table)

    def insert(
        self, columns: Mapping[str, Sequence[object]] | pa.Table, *, inline_bytes_max: int = 0
    ) -> None:
        """Write one block: sort it, split it, add its parts."""
        if not isinstance(columns, pa.Table):
            columns = pa.table(
                {c.name: pa.array(columns[c.name], c.type.arrow) for c in self.table.columns}
            )
        layout = TableLayout(self.table)
        number = 1 + max((p.block_range.last for p in self.held), default=0)
        for identity, value, rows in layout.split(columns):
            staged = write_part(
                self.store,
                self.table,
                layout.sort(rows),
                PartPlan(
                    identity, value, BlockRange(number, number), inline_bytes_max=inline_bytes_max
                ),
                lease_id="lease",
            )
            self.held.append(staged.part)
            if staged.inline_rows is not None:
                self.inline[staged.part.id] = staged.inline_rows

    def parts(self, table_id: str) -> tuple[Part, ...]:
        return tuple(self.held) if table_id == self.table.id else ()

    def inline_rows(self, part: Part) -> bytes:
        return self.inline[part.id]

    def context(self, **settings: object) -> ExecutionContext:
        return ExecutionContext(snapshot=self, store=self.store, settings=settings)

    def scan(self, *names: str, where: Expression | None = None, final: bool = False) -> nodes.Scan:
        """Return a scan of the columns, by default all; unique names are the columns' own."""
        types = {c.name: c.type for c in self.table.columns} | VIRTUAL
        chosen = names or tuple(c.name for c in self.table.columns)
        only = (
            () if where is None else tuple((n, n, t) for n, t in types.items() if n not in chosen)
        )
        return nodes.Scan(
            self.table,
            tuple((n, n) for n in chosen),
            tuple(types[n] for n in chosen),
            where,
            only,
            final,
        )


def stored(
    columns: Mapping[str, DataType],
    *,
    engine: str = "MergeTree",
    engine_arguments: Sequence[str] = (),
    order_by: Sequence[str] = (),
    partition_by: str = "",
    granularity: int | None = None,
) -> Stored:
    settings = () if granularity is None else (("index_granularity", granularity),)
    return Stored(
        Table(
            id="t-id",
            database="default",
            name="t",
            engine=Engine(engine, tuple(engine_arguments)),
            columns=tuple(Column(i, n, t) for i, (n, t) in enumerate(columns.items(), 1)),
            sorting_key=tuple(KeyItem(k) for k in order_by),
            primary_key=len(order_by),
            partition_key=partition_by,
            settings=settings,
        )
    )

"""The scan of a stored table in FROM: the columns that are read, ALIAS columns, SAMPLE."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from olapdb.bind import constants
from olapdb.bind.contracts import BindContext, QueryBinder
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.relation import Relation, RelationColumn
from olapdb.bind.sampling import SampleShare
from olapdb.bind.session_zone import computed_columns, unlike_stored
from olapdb.errors import InternalError
from olapdb.model.schema import Column, Table
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Expression
from olapdb.sql.parser import parse_expression
from olapdb.types import DataType


class TableScan:
    """The scan of one table: it collects the columns that are read, then builds the node."""

    def __init__(
        self, queries: QueryBinder, table: Table, final: bool, context: BindContext
    ) -> None:
        self.queries, self.table, self.final, self.context = queries, table, final, context
        self.used: dict[str, ColumnRef] = {}
        self.aliases: list[tuple[str, Expression]] = []
        self.sampled: Expression | None = None

    def take(self, sample: SampleShare) -> None:
        """Add the condition of SAMPLE, over the table's sampling key, to the scan."""
        if sample.of_rows:
            self.queries.momentary = "SAMPLE of a number of rows, whose share follows from all rows"
        key = parse_expression(self.table.sampling_key)
        relation = Relation(
            [RelationColumn(c.name, c.type, self.stored(c)) for c in self.table.stored_columns],
            _no_rows,
            f"{self.table.database}.{self.table.name}",
        )
        binder = ExpressionBinder(self.queries, relation, self.context.nested())
        condition = sample.condition(key, binder.bind(key).type)
        self.sampled = None if condition is None else binder.bind(condition)

    def constant(self, name: str, value: Expression) -> Callable[[], Expression]:
        """Return a function that adds a column of one value above the scan."""

        def make() -> Expression:
            """Add the constant column and return the reference to it."""
            unique = self.queries.names.unique(name)
            self.aliases.append((unique, value))
            return ColumnRef(value.type, unique)

        return make

    def stored(self, column: Column) -> Callable[[], Expression]:
        """Return a function that makes the reference to a stored column."""
        return self.read(column.name, column.type)

    def read(self, name: str, data_type: DataType) -> Callable[[], Expression]:
        """Return a function that adds a column to the scan at its first call.

        The function returns the reference, the same at each call."""

        def make() -> Expression:
            """Return the reference to the column; add it to the scan at the first call."""
            if name not in self.used:
                self.used[name] = ColumnRef(data_type, self.queries.names.unique(name))
            return self.used[name]

        return make

    def computed(self, column: Column) -> Callable[[], Expression]:
        """Return a function that adds an ALIAS column's expression above the scan."""

        def make() -> Expression:
            """Bind the ALIAS column's expression, add it and return the reference to it."""
            expression = default_expression(
                self.queries, self.table, column, self.context, self._lookup
            )
            unique = self.queries.names.unique(column.name)
            self.aliases.append((unique, expression))
            return ColumnRef(column.type, unique)

        return make

    def _lookup(self, column: Column) -> Expression:
        """Return the reference to a column that an ALIAS expression reads, adding it."""
        return self.read(column.name, column.type)()

    def _unlike_stored(self) -> dict[str, ColumnRef]:
        """Return by column the new reference under which the scan's `identity` of it is read, for columns within the
        table's keys, indexes and projections; empty if the query has the zone of the warehouse. See `session_zone`."""
        if self.queries.scope.environment.stored_zone is None:
            return {}
        computed = computed_columns(self.table)
        return {
            name: ColumnRef(reference.type, self.queries.names.unique(name))
            for name, reference in self.used.items()
            if name in computed
        }

    def build(self) -> plan.Node:
        """Return the scan of the columns read so far, in table order; above it, where there are any, the conversions of
        columns that are stored in another form, the filter of SAMPLE and the ALIAS columns."""
        order = {c.name: i for i, c in enumerate(self.table.columns)}
        used = sorted(self.used.items(), key=lambda item: order.get(item[0], len(order)))
        unlike = self._unlike_stored()
        node: plan.Node = plan.Scan(
            self.table,
            tuple((unlike.get(name, reference).name, name) for name, reference in used),
            tuple(reference.type for _, reference in used),
            final=self.final,
        )
        if unlike:
            read = ((r, unlike_stored(unlike[n]) if n in unlike else r) for n, r in used)
            node = plan.Project(node, tuple((r.name, expression) for r, expression in read))
        if self.sampled is not None:
            node = plan.Filter(node, self.sampled)
        if self.aliases:
            columns = tuple((r.name, r) for _, r in used)
            node = plan.Project(node, (*columns, *self.aliases))
        return node


def default_expression(
    queries: QueryBinder,
    table: Table,
    column: Column,
    context: BindContext,
    lookup: Callable[[Column], Expression],
) -> Expression:
    """Return a column's DEFAULT or ALIAS expression, cast to the column's type.

    `lookup` returns the expression of a stored column; other ALIAS columns are expanded."""
    columns = []
    for other in table.columns:
        if other.name == column.name:
            continue
        if other.default_kind == "ALIAS":
            make = partial(default_expression, queries, table, other, context.nested(), lookup)
        else:
            make = partial(lookup, other)
        columns.append(RelationColumn(other.name, other.type, make))
    relation = Relation(columns, _no_rows, f"{table.database}.{table.name}")
    binder = ExpressionBinder(queries, relation, context.nested())
    bound = binder.bind(parse_expression(column.default))
    return constants.cast(bound, column.type, queries.scope.environment)


def _no_rows() -> plan.Node:
    """Raise InternalError: the relation of a table's own expressions only resolves names."""
    raise InternalError("The expressions of a table read nothing but its own columns.")

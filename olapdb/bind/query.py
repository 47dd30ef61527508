"""Queries to plan nodes: SELECT, UNION and the like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from olapdb import errors, functions
from olapdb.bind.added_filters import filtered_result
from olapdb.bind.aliases import with_expressions
from olapdb.bind.contracts import BindContext, BoundQuery, OutputColumn, QueryBinder
from olapdb.bind.projection import ROWS_MAX
from olapdb.bind.select import bind_select, with_clause
from olapdb.bind.subqueries import with_types
from olapdb.config import FUNCTION_SETTINGS, Settings, lookup
from olapdb.plan import nodes as plan
from olapdb.sql import nodes as sql
from olapdb.types import DataType, plain

MEANING = frozenset(
    {
        "join_use_nulls",
        "window_use_nulls",
        "final",
        "union_default_mode",
        "except_default_mode",
        "intersect_default_mode",
        "enable_positional_arguments",
        "prefer_column_name_to_alias",
        "cast_keep_nullable",
        "allow_deprecated_error_prone_window_functions",
        "enable_time_series_aggregate_functions",
        "transform_null_in",
        "aggregate_functions_null_for_empty",
        "empty_result_for_aggregation_by_empty_set",
        "empty_result_for_aggregation_by_constant_keys_on_empty_set",
        "join_default_strictness",
        "single_join_prefer_left_table",
        "count_distinct_implementation",
        "asterisk_include_materialized_columns",
        "asterisk_include_alias_columns",
        "totals_mode",
        "least_greatest_legacy_null_behavior",
        "joined_subquery_requires_alias",
        "use_variant_as_common_type",
        "allow_suspicious_variant_types",
        "allow_suspicious_low_cardinality_types",
        "allow_suspicious_fixed_string_types",
        "allow_suspicious_types_in_group_by",
        "allow_suspicious_types_in_order_by",
        "enable_named_columns_in_function_tuple",
        "function_locate_has_mysql_compatible_argument_order",
        "force_grouping_standard_compatibility",
        "group_by_use_nulls",
        "enable_unaligned_array_join",
        "use_with_fill_by_sorting_prefix",
        *FUNCTION_SETTINGS,
    }
)
"""The settings that the binder reads: they change what a query means."""


class StatementBinder(QueryBinder):
    """The binder of one statement's queries: it chooses by the kind of query."""

    def statement(self, query: sql.Query, context: BindContext) -> BoundQuery:
        """Bind the query of a statement, with additional_result_filter."""
        return filtered_result(
            self, query, self.query(query, context), _with_settings(query, context)
        )

    def query(self, query: sql.Query, context: BindContext) -> BoundQuery:
        """Bind a SELECT or a set operation; its own SETTINGS hold within it. Those of a subquery may name `limit` and
        `offset`, which cut its rows; the statement's result is cut elsewhere."""
        context = _with_settings(query, context)
        match query:
            case sql.Select():
                bound = bind_select(self, query, context)
            case sql.SetOperation():
                bound = self._set_operation(query, context)
            case _:
                raise errors.InternalError(f"The binder does not know {type(query).__name__}.")
        return _cut(bound, query.settings) if context.depth and query.settings else bound

    def _set_operation(self, query: sql.SetOperation, context: BindContext) -> BoundQuery:
        """Bind UNION, EXCEPT or INTERSECT; columns are matched by position."""
        context = with_clause(self, query, context)
        inner = context.nested()
        mode = self._mode(query, context)
        if query.operator == "UNION":
            branches = self._union_branches(query, mode, context)
            bound = [self.query(with_expressions(b, query), inner) for b in branches]
            return self._union(bound, mode, query)
        left = self.query(with_expressions(query.left, query), inner)
        right = self.query(with_expressions(query.right, query), inner)
        types = self._common_types((left, right), query)
        compared = _compared_types((left, right), types)
        fields = self._fields(left, compared)
        node = plan.SetDifference(
            with_types(left, compared, self.names),
            with_types(right, compared, self.names),
            query.operator,
            mode == "DISTINCT",
            fields,
        )
        return self._cast(BoundQuery(node, _outputs(left, fields)), types)

    def _mode(self, query: sql.SetOperation, context: BindContext) -> str:
        """Return ALL or DISTINCT as written, else as the setting `…_default_mode` says.

        Raises ExpectedUnionMode for a UNION if neither says it."""
        if query.mode:
            return query.mode
        if query.operator != "UNION":
            return context.text(f"{query.operator.lower()}_default_mode").upper()
        mode = context.text("union_default_mode").upper()
        if mode not in ("ALL", "DISTINCT"):
            raise errors.ExpectedUnionMode(
                "Expected ALL or DISTINCT after UNION.",
                hint="Write UNION ALL to keep duplicates, UNION DISTINCT to remove them, or set "
                "union_default_mode.",
                position=query.position,
            )
        return mode

    def _union_branches(
        self, query: sql.SetOperation, mode: str, context: BindContext
    ) -> list[sql.Query]:
        """Return the branches of nested UNIONs of one mode, left to right, to bind as one.

        A nested UNION with WITH or SETTINGS of its own stays one branch."""
        branches: list[sql.Query] = [query.right]
        left: sql.Query = query.left
        while (
            isinstance(left, sql.SetOperation)
            and left.operator == "UNION"
            and not left.with_items
            and not left.settings
            and self._mode(left, context) == mode
        ):
            branches.append(left.right)
            left = left.left
        branches.append(left)
        return branches[::-1]

    def _union(
        self, branches: Sequence[BoundQuery], mode: str, query: sql.SetOperation
    ) -> BoundQuery:
        """Return the UNION of bound branches, with the names of the first."""
        types = self._common_types(branches, query)
        compared = _compared_types(branches, types) if mode == "DISTINCT" else types
        fields = self._fields(branches[0], compared)
        node: plan.Node = plan.Union(
            tuple(with_types(b, compared, self.names) for b in branches), fields
        )
        if mode == "DISTINCT":
            node = plan.Distinct(node)
        return self._cast(BoundQuery(node, _outputs(branches[0], fields)), types)

    def _cast(self, query: BoundQuery, types: Sequence[DataType]) -> BoundQuery:
        """Return the query with its columns cast to these types."""
        node = with_types(query, types, self.names)
        if node is query.node:
            return query
        columns = zip(node.schema, query.columns, strict=True)
        return BoundQuery(node, tuple(OutputColumn(f.name, c.name, f.type) for f, c in columns))

    def _common_types(
        self, branches: Sequence[BoundQuery], query: sql.SetOperation
    ) -> list[DataType]:
        """Return the common type of each column of the branches, in column order.

        Raises UnionStructuresMismatch or IntersectOrExceptMismatch for different numbers of columns, and an error that names the
        column if its types have no common type."""
        counts = [len(b.columns) for b in branches]
        if len(set(counts)) > 1:
            error = (
                errors.UnionStructuresMismatch
                if query.operator == "UNION"
                else errors.IntersectOrExceptMismatch
            )
            raise error(
                f"The queries of {query.operator} have different numbers of columns: "
                f"{', '.join(map(str, counts))}.",
                position=query.position,
            )
        types: list[DataType] = []
        for columns in zip(*(b.columns for b in branches), strict=True):
            distinct = list(dict.fromkeys(c.type for c in columns))
            try:
                types.append(self._common_type(distinct))
            except errors.Error as cause:
                cause.message = f"Column {columns[0].name!r} of {query.operator}: {cause.message}"
                raise cause.at(query.position) from None
        return types

    def _common_type(self, types: Sequence[DataType]) -> DataType:
        """Return the common type of a column, a Variant if there is none and the setting allows it."""
        if len(types) == 1:
            return types[0]
        settings = Settings.of(self.scope.settings)
        if settings.boolean("use_variant_as_common_type"):
            return functions.common_type_or_variant(types)
        return functions.common_type(types)

    def _fields(self, first: BoundQuery, types: Sequence[DataType]) -> plan.Schema:
        """Return fields of these types with unique names based on those of `first`."""
        return tuple(
            plan.Field(self.names.unique(c.name), t)
            for c, t in zip(first.columns, types, strict=True)
        )


def _compared_types(branches: Sequence[BoundQuery], types: Sequence[DataType]) -> list[DataType]:
    """Return the types at which rows of the branches are compared: `types`, but UInt8 for a Bool beside other types."""
    columns = zip(*(b.columns for b in branches), strict=True)
    return [
        functions.without_bool(common) if len({plain(c.type) for c in column}) > 1 else common
        for column, common in zip(columns, types, strict=True)
    ]


_OF_THE_RESULT = frozenset({"max_result_rows", "max_result_bytes", "result_overflow_mode"})
"""Limits of what a statement returns, which a subquery does not: there they say nothing."""

_OF_THREADS = frozenset({"max_threads", "max_block_size"})
"""Settings of how a statement is computed, which change no answer: a subquery is computed as its statement is."""

_OF_ROWS = frozenset({"limit", "offset"})
"""The settings that cut the rows of the query which names them, and of none inside it."""


def _cut(bound: BoundQuery, settings: Sequence[sql.Setting]) -> BoundQuery:
    """Return the subquery with its rows cut as its own SETTINGS `limit` and `offset` say."""
    named = {setting.name: setting.value for setting in settings if setting.name in _OF_ROWS}
    own = Settings(named)
    count, offset = own.integer("limit"), own.integer("offset")
    if not count and not offset:
        return bound
    return replace(
        bound, node=plan.Limit(bound.node, min(count, ROWS_MAX) or None, min(offset, ROWS_MAX))
    )


def _with_settings(query: sql.Query, context: BindContext) -> BindContext:
    """Return the context with the query's own SETTINGS.

    Raises NotSupportedError for a setting of the whole statement (a limit, for example) in a
    subquery: there, only settings that change the meaning of a query are allowed."""
    assert isinstance(query, sql.Select | sql.SetOperation)
    if not query.settings:
        return context
    changed = Settings({s.name: s.value for s in query.settings}).changed
    Settings.refuse_engine(changed)
    for setting in query.settings:
        of_statement = (
            setting.name not in MEANING | _OF_THE_RESULT | _OF_ROWS | _OF_THREADS
            and not lookup(setting.name).neutral
        )
        if context.depth and of_statement:
            raise errors.NotSupportedError(
                f"The setting {setting.name} is of the whole statement, not of a subquery.",
                hint="Move it to the end of the statement.",
                position=setting.position or query.position,
            )
    return replace(context, settings=Settings.of(context.settings).with_changes(changed))


def _outputs(first: BoundQuery, fields: plan.Schema) -> tuple[OutputColumn, ...]:
    """Return the fields as output columns with the result names of the first branch."""
    return tuple(
        OutputColumn(f.name, c.name, f.type) for f, c in zip(fields, first.columns, strict=True)
    )

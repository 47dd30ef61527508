"""The rows of a dictionary: in FROM, and as what its functions look up."""

from __future__ import annotations

from olapdb import errors, functions, types
from olapdb.bind import constants
from olapdb.bind.contracts import BindContext, Binder, BoundQuery, QueryBinder
from olapdb.bind.dictionary_definition import DictionaryDefinition, definition_of
from olapdb.bind.names import suggestion
from olapdb.bind.subqueries import with_types
from olapdb.bind.view_columns import as_columns
from olapdb.config import Settings
from olapdb.model.schema import View
from olapdb.model.snapshot import Snapshot
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import Constant, DictionaryShape, ScalarSubquery
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.sql.parser import parse_query


@dataclass(frozen=True)
class BoundDictionary:
    """A dictionary that a query reads: the plan of its rows, and the number that names them."""

    definition: DictionaryDefinition
    plan: plan.Node
    shape: DictionaryShape
    number: int

    def position(self, attribute: str) -> int:
        """Return the position of an attribute among the plan's columns; -1 if there is none."""
        names = [column.name for column, _ in self.definition.columns]
        known = attribute in (a.name for a in self.definition.attributes)
        return names.index(attribute) if known else -1


def find_dictionary(snapshot: Snapshot, database: str, name: str) -> View:
    """Return the dictionary of the name. Raise BadArguments if there is none."""
    item = snapshot.find(database, name)
    if isinstance(item, View) and item.dictionary:
        return item
    names = [o.name for o in snapshot.objects(database) if isinstance(o, View) and o.dictionary]
    raise errors.BadArguments(
        f"Dictionary ({database}.{name}) not found.",
        hint=suggestion(name, names) or "SHOW DICTIONARIES lists those there are.",
    )


def bind_dictionary_rows(queries: QueryBinder, view: View, context: BindContext) -> BoundQuery:
    """Bind the rows of a dictionary's source, as the dictionary's columns.

    The settings of the reader have no effect: a dictionary has one content. Raises what binding
    its query raises, NumberOfColumnsDoesntMatch if the query has other columns."""
    own = BindContext(view.database, Settings({}), depth=context.depth)
    bound = queries.subquery(parse_query(view.query), own)
    if len(bound.columns) != len(view.columns):
        raise errors.NumberOfColumnsDoesntMatch(
            f"The source of dictionary {view.database}.{view.name} has {len(bound.columns)}"
            f" columns, the dictionary {len(view.columns)}."
        )
    return as_columns(queries, bound, view.columns)


def distinct_rows(queries: QueryBinder, view: View, bound: BoundQuery) -> BoundQuery:
    """Return a dictionary's rows with one row for each key, the greatest; all if it has ranges or polygons."""
    definition = definition_of(view)
    if definition.bounds or definition.has_polygons:
        return bound
    count = len(definition.keys)
    order = tuple(
        plan.SortKey(c.reference, descending=at >= count) for at, c in enumerate(bound.columns)
    )
    by_key = tuple(c.reference for c in bound.columns[:count])
    return BoundQuery(plan.LimitBy(plan.Sort(bound.node, order), 1, 0, by_key), bound.columns)


def bound_dictionary(binder: Binder, view: View) -> BoundDictionary:
    """Return the dictionary bound for the statement, once for all its calls."""
    queries = binder.queries
    known = queries.dictionaries.get(view.id)
    if isinstance(known, BoundDictionary):
        return known
    before, queries.tables = queries.tables, {view.id: view.revision}
    try:
        bound = bind_dictionary_rows(queries, view, binder.subquery_context())
        depends = tuple(sorted(queries.tables.items()))
    finally:
        queries.tables = {**before, **queries.tables}
    definition = definition_of(view)
    node = with_types(bound, [c.type for c in view.columns], queries.names)
    parent = definition.parent
    names = [column.name for column in view.columns]
    shape = DictionaryShape(
        f"{view.database}.{view.name}",
        len(definition.keys),
        bool(definition.bounds),
        definition.latest,
        names.index(parent.name) if parent is not None else -1,
        None if parent is None else default_of(parent, binder).value.as_py(),
        depends,
        definition.has_prefixes,
        definition.has_polygons,
    )
    number = ScalarSubquery(types.UINT8, node).number
    made = BoundDictionary(definition, node, shape, number)
    queries.dictionaries[view.id] = made
    return made


def default_of(attribute: sql.DictionaryAttribute, binder: Binder) -> Constant:
    """Return the value of an attribute for keys that the dictionary lacks. Raises BadArguments."""
    if attribute.default is None:
        return Constant(attribute.type, functions.default_value(attribute.type))
    bound = binder.bind(attribute.default)
    converted = constants.cast(bound, attribute.type, binder.environment, eager=True)
    if not isinstance(converted, Constant):
        raise errors.BadArguments(f"The default of attribute {attribute.name} is no constant.")
    return converted

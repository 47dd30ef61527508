"""The syntax tree of a statement as ClickHouse shows it in EXPLAIN AST, and counts it for
`max_ast_depth` and `max_ast_elements`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from olapdb.errors import NotSupportedError
from olapdb.lazy import LazyModule
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.syntax_literals import literal_label
from olapdb.sql.syntax_nodes import SyntaxNode, list_of, name_parts, table_names, titled

if TYPE_CHECKING:
    from olapdb.sql import definition_tree
else:
    definition_tree = LazyModule("olapdb.sql.definition_tree")


def tree_lines(root: SyntaxNode) -> Iterator[str]:
    """Yield the lines of EXPLAIN AST: a node a line, a space for each level."""
    pending = [(root, 0)]
    while pending:
        node, level = pending.pop()
        count = f" (children {len(node.children)})" if node.children else ""
        yield f"{' ' * level}{node.label}{count}"
        pending.extend((child, level + 1) for child in reversed(node.children))


def measure(root: SyntaxNode) -> tuple[int, int]:
    """Return (levels, nodes) of a tree; a root alone has one level."""
    levels = elements = 0
    pending = [(root, 1)]
    while pending:
        node, level = pending.pop()
        elements, levels = elements + 1, max(levels, level)
        pending.extend((child, level + 1) for child in node.children)
    return levels, elements


def syntax_tree(statement: nodes.Node) -> SyntaxNode:
    """Return the tree of a statement. Raises NotSupportedError for a kind whose tree is not known."""
    match statement:
        case nodes.Query():
            return query_tree(statement)
        case nodes.Insert(function=None, replacing=None):
            names = [SyntaxNode(f"Identifier {name}") for name in statement.columns or ()]
            columns = [list_of(names)] if names else []
            query = [query_tree(statement.query)] if statement.query is not None else []
            return SyntaxNode("InsertQuery  ", (*table_names(statement.table), *columns, *query))
        case nodes.Drop(kind="DATABASE", names=[name]):
            return SyntaxNode(f"DropQuery {name.name} ", table_names(name))
        case nodes.Drop(names=[name]):
            return _of_table("DropQuery", name)
        case nodes.Truncate():
            return _of_table("TruncateQuery", statement.table)
        case nodes.Delete(where=nodes.Expression() as condition):
            below = (expression_tree(condition), *table_names(statement.table))
            return SyntaxNode(titled("DeleteQuery", statement.table), below)
        case nodes.Use():
            database = SyntaxNode(f"Identifier {statement.database}")
            return SyntaxNode(f"UseQuery {statement.database}", (database,))
        case nodes.SetSettings():
            return SyntaxNode("Set")
        case nodes.Optimize() if (tree := definition_tree.optimize_tree(statement)) is not None:
            return tree
        case nodes.Update() if (tree := definition_tree.update_tree(statement)) is not None:
            return tree
        case nodes.Alter() if (tree := definition_tree.alter_tree(statement)) is not None:
            return tree
        case nodes.CreateTable():
            return definition_tree.create_table_tree(statement)
        case nodes.CreateMaterializedView(columns=(), refresh=None):
            return definition_tree.create_materialized_view_tree(statement)
        case nodes.CreateDatabase():
            return definition_tree.create_database_tree(statement)
        case nodes.CreateView(columns=(), temporary=False):
            below = (*table_names(statement.name), query_tree(statement.query))
            return SyntaxNode(f"CreateQuery {' '.join(name_parts(statement.name))}", below)
        case nodes.Rename():
            pairs = [
                part for pair in statement.pairs for name in pair for part in table_names(name)
            ]
            return SyntaxNode("Rename", tuple(pairs))
        case nodes.Explain() if isinstance(statement.statement, nodes.Query):
            word = "EXPLAIN" if statement.kind == "PLAN" else f"EXPLAIN {statement.kind}"
            settings = [SyntaxNode("Set")] if statement.settings else []
            return SyntaxNode(f"Explain {word}", (*settings, query_tree(statement.statement)))
        case _:
            raise NotSupportedError(
                f"EXPLAIN AST of {type(statement).__name__} is not supported.",
                hint="It takes SELECT, INSERT, DELETE, UPDATE, DROP, TRUNCATE, RENAME, CREATE TABLE, VIEW and DATABASE, ALTER TABLE, OPTIMIZE, USE and SET.",
                position=statement.position,
            )


def _of_table(kind: str, name: nodes.TableName) -> SyntaxNode:
    """Return the node of a statement about one table."""
    return SyntaxNode(titled(kind, name), table_names(name))


# --- queries


def query_tree(query: nodes.Query) -> SyntaxNode:
    """Return the tree of a query: the list of its SELECTs, FORMAT and SETTINGS behind it."""
    branches = [_branch(branch) for branch in _branches(query)]
    output = getattr(query, "format", None)
    below = [list_of(branches)]
    if output is not None:
        below.append(SyntaxNode(f"Identifier {output}"))
    if isinstance(query, nodes.SetOperation) and query.settings:
        below.append(SyntaxNode("Set"))
    return SyntaxNode("SelectWithUnionQuery", tuple(below))


def _branches(query: nodes.Query) -> list[nodes.Query]:
    """Return the branches of a UNION from left to right; another query is one branch."""
    if not isinstance(query, nodes.SetOperation) or query.operator != "UNION":
        return [query]
    left = query.left
    same = isinstance(left, nodes.SetOperation) and left.mode == query.mode
    return [*(_branches(left) if same else [left]), query.right]


def _branch(query: nodes.Query) -> SyntaxNode:
    """Return the node of a branch: of a SELECT, or of EXCEPT and INTERSECT."""
    if isinstance(query, nodes.Select):
        return select_tree(query)
    assert isinstance(query, nodes.SetOperation)
    if query.operator == "UNION":
        return query_tree(query)
    return SyntaxNode("SelectIntersectExceptQuery", (query_tree(query.left), _branch(query.right)))


def select_tree(query: nodes.Select) -> SyntaxNode:
    """Return the node of one SELECT, its clauses in ClickHouse's order."""
    below: list[SyntaxNode] = []
    if query.with_items:
        below.append(list_of([_with_item(item) for item in query.with_items]))
    below.append(expressions(query.columns))
    if query.source is not None:
        below.append(SyntaxNode("TablesInSelectQuery", tuple(_tables(query.source))))
    below += _optional(query.prewhere, query.where)
    if isinstance(query.group_by, tuple):
        sets = query.grouping == "SETS"
        below.append(
            list_of([_grouping_set(e) for e in query.group_by])
            if sets
            else expressions(query.group_by)
        )
    below += _optional(query.having)
    if query.windows:
        below.append(
            list_of([SyntaxNode("WindowListElement", (_window(w),)) for _, w in query.windows])
        )
    below += _optional(query.qualify)
    if query.order_by:
        below.append(_order_by(query.order_by))
    below += _limit_by(query)
    below += _optional(query.offset, query.limit)
    if query.settings:
        below.append(SyntaxNode("Set"))
    if query.interpolate is not None:
        below.append(list_of([_interpolated(*item) for item in query.interpolate]))
    return SyntaxNode("SelectQuery", tuple(below))


def _grouping_set(element: nodes.Expression) -> SyntaxNode:
    """Return the list of one grouping set."""
    whole = element.elements if isinstance(element, nodes.TupleLiteral) else (element,)
    return expressions(whole)


def _limit_by(query: nodes.Select) -> list[SyntaxNode]:
    """Return the nodes of LIMIT BY and of DISTINCT ON, which is `LIMIT 1 BY`."""
    if query.distinct_on:
        return [SyntaxNode("Literal UInt64_1"), expressions(query.distinct_on)]
    if query.limit_by is None:
        return []
    by = query.limit_by.by
    lists = [expressions(by)] if isinstance(by, tuple) else []
    return [*_optional(query.limit_by.offset, query.limit_by.count), *lists]


def _interpolated(name: str, expression: nodes.Expression | None) -> SyntaxNode:
    """Return the node of one column of INTERPOLATE."""
    value = SyntaxNode(f"Identifier {name}") if expression is None else expression_tree(expression)
    return SyntaxNode(f"InterpolateElement (column {name})", (value,))


def _with_item(item: nodes.WithItem) -> SyntaxNode:
    """Return the node of a CTE, or of a named expression."""
    if item.query is not None:
        return SyntaxNode("WithElement", (SyntaxNode("Subquery", (query_tree(item.query),)),))
    assert item.expression is not None
    return _named(expression_tree(item.expression), item.name)


def _order_by(items: tuple[nodes.OrderItem, ...] | nodes.OrderByAll) -> SyntaxNode:
    """Return the list of ORDER BY; ALL is an identifier."""
    if isinstance(items, nodes.OrderByAll):
        return list_of([SyntaxNode("OrderByElement", (SyntaxNode("Identifier all"),))])
    return list_of([_order_item(item) for item in items])


def _order_item(item: nodes.OrderItem) -> SyntaxNode:
    """Return the node of one key of ORDER BY, with what WITH FILL says."""
    below = [expression_tree(item.expression)]
    if item.collate is not None:
        below.append(SyntaxNode(f"Literal {literal_label(item.collate, '')}"))
    if item.fill is not None:
        fill = item.fill
        below += _optional(fill.start, fill.stop, fill.step, fill.staleness)
    return SyntaxNode("OrderByElement", tuple(below))


def _tables(relation: nodes.Relation) -> Iterator[SyntaxNode]:
    """Yield an element for each table of FROM, with its join."""
    match relation:
        case nodes.Join():
            yield from _tables(relation.left)
            on: list[SyntaxNode] = _optional(relation.on)
            if relation.using:
                on.append(list_of([SyntaxNode(f"Identifier {name}") for name in relation.using]))
            right = next(_tables(relation.right)).children[0]
            yield SyntaxNode(
                "TablesInSelectQueryElement", (right, SyntaxNode("TableJoin", tuple(on)))
            )
        case nodes.ArrayJoin():
            yield from _tables(relation.source)
            arrays = SyntaxNode("ArrayJoin", (expressions(relation.arrays),))
            yield SyntaxNode("TablesInSelectQueryElement", (arrays,))
        case _:
            table = SyntaxNode("TableExpression", tuple(_table_expression(relation)))
            yield SyntaxNode("TablesInSelectQueryElement", (table,))


def _table_expression(relation: nodes.Relation) -> Iterator[SyntaxNode]:
    """Yield the nodes of a table, a subquery or a table function, and of SAMPLE."""
    match relation:
        case nodes.TableReference():
            yield _named(SyntaxNode(f"TableIdentifier {relation.table}"), relation.alias)
            for share in (relation.sample, relation.sample_offset):
                if share is not None:
                    yield SyntaxNode(f"SampleRatio {to_sql(share)}")
        case nodes.SubqueryRelation(otherwise=None):
            yield _named(SyntaxNode("Subquery", (query_tree(relation.query),)), relation.alias)
        case nodes.TableFunction():
            call = nodes.Function(relation.name, relation.arguments)
            yield _named(expression_tree(call), relation.alias)
        case _:
            raise NotSupportedError(
                "EXPLAIN AST does not know this table.", position=relation.position
            )


# --- expressions


def expression_tree(node: nodes.Expression) -> SyntaxNode:
    """Return the tree of an expression: operators are functions, values of constants are literals."""
    match node:
        case nodes.Alias():
            return _named(expression_tree(node.expression), node.name)
        case nodes.Identifier():
            return SyntaxNode(f"Identifier {'.'.join(node.parts)}")
        case nodes.Literal() | nodes.ArrayLiteral() | nodes.TupleLiteral() if (
            label := _constant(node)
        ) is not None:
            return SyntaxNode(f"Literal {label}")
        case nodes.ArrayLiteral():
            return _call("array", node.elements)
        case nodes.TupleLiteral():
            return _call("tuple", node.elements)
        case nodes.Function():
            return _function(node)
        case nodes.Cast():
            written = SyntaxNode(f"Literal {literal_label(node.written or str(node.type), '')}")
            return called("CAST", (expression_tree(node.expression), written))
        case nodes.IntervalLiteral():
            return _call(f"toInterval{node.unit}", (node.expression,))
        case nodes.Lambda():
            names = [SyntaxNode(f"Identifier {name}") for name in node.arguments]
            return called("lambda", (called("tuple", names), expression_tree(node.body)))
        case nodes.Subquery():
            return SyntaxNode("Subquery", (query_tree(node.query),))
        case nodes.Exists():
            return _call("exists", (nodes.Subquery(node.query),))
        case nodes.In():
            return _call(node.function, (node.left, _withoutlist_of(node.right)))
        case nodes.Parameter():
            return SyntaxNode(f"QueryParameter {node.name}:{node.type}")
        case nodes.Star():
            return _star(node)
        case _:
            raise NotSupportedError(
                f"EXPLAIN AST does not know {type(node).__name__}.", position=node.position
            )


def _withoutlist_of(node: nodes.Expression) -> nodes.Expression:
    """Return the value in `x IN (1)`, whose parentheses are no tuple."""
    is_one = isinstance(node, nodes.TupleLiteral) and len(node.elements) == 1
    return node.elements[0] if isinstance(node, nodes.TupleLiteral) and is_one else node


def _constant(node: nodes.Expression) -> str | None:
    """Return the label of a literal, and of an array or a tuple of literals; None if it has others."""
    if isinstance(node, nodes.Literal):
        return literal_label(node.value, node.text)
    if not isinstance(node, nodes.ArrayLiteral | nodes.TupleLiteral):
        return None
    labels = [_constant(element) for element in node.elements]
    if any(label is None for label in labels):
        return None
    inside = ", ".join(label for label in labels if label is not None)
    return f"Array_[{inside}]" if isinstance(node, nodes.ArrayLiteral) else f"Tuple_({inside})"


def _function(node: nodes.Function) -> SyntaxNode:
    """Return the node of a call: its arguments, then its parameters and its window."""
    name, arguments = node.name, node.arguments
    if node.distinct:
        name += "Distinct"
    if node.filter is not None:
        name, arguments = f"{name}If", (*arguments, node.filter)
    below = [expressions(arguments)]
    if node.parameters:
        below.append(expressions(node.parameters))
    if isinstance(node.over, nodes.WindowSpec):
        below.append(_window(node.over))
    return SyntaxNode(f"Function {name}", tuple(below))


def _window(window: nodes.WindowSpec) -> SyntaxNode:
    """Return the node of a window: PARTITION BY, ORDER BY, the numbers of its frame."""
    below: list[SyntaxNode] = []
    if window.partition_by:
        below.append(expressions(window.partition_by))
    if window.order_by:
        below.append(_order_by(window.order_by))
    for bound in (window.frame_start, window.frame_end):
        below += _optional(None if bound is None else bound.offset)
    return SyntaxNode("WindowDefinition", tuple(below))


def _star(node: nodes.Star) -> SyntaxNode:
    """Return the node of `*`, `t.*` or COLUMNS, with what changes its columns."""
    changes: list[SyntaxNode] = []
    if node.excluded or node.excluded_patterns:
        names = tuple(SyntaxNode(f"Identifier {name}") for name in node.excluded)
        changes.append(SyntaxNode("ColumnsExceptTransformer", names))
    if node.replaced:
        replaced = tuple(
            SyntaxNode("ColumnsReplaceTransformer::Replacement", (expression_tree(r.expression),))
            for r in node.replaced
        )
        changes.append(SyntaxNode("ColumnsReplaceTransformer", replaced))
    changes += [SyntaxNode("ColumnsApplyTransformer") for _ in node.applied]
    below = [SyntaxNode("ColumnsTransformerList", tuple(changes))] if changes else []
    if node.names:
        names = tuple(SyntaxNode(f"Identifier {name}") for name in node.names)
        return SyntaxNode("ColumnsListMatcher", (SyntaxNode("ExpressionList", names), *below))
    if node.pattern is not None:
        return SyntaxNode("ColumnsRegexpMatcher", tuple(below))
    if node.qualifier:
        table = SyntaxNode(f"Identifier {'.'.join(node.qualifier)}")
        return SyntaxNode("QualifiedAsterisk", (table, *below))
    return SyntaxNode("Asterisk", tuple(below))


# --- parts


def _named(node: SyntaxNode, alias: str | None) -> SyntaxNode:
    """Return a node with its alias in its label."""
    return node if alias is None else SyntaxNode(f"{node.label} (alias {alias})", node.children)


def _call(name: str, arguments: Sequence[nodes.Expression]) -> SyntaxNode:
    """Return the node of a call of the function `name`, whose arguments are given as expressions."""
    return called(name, [expression_tree(argument) for argument in arguments])


def called(name: str, arguments: Sequence[SyntaxNode]) -> SyntaxNode:
    """Return the node of a call of the function `name`, whose arguments are given as trees."""
    return SyntaxNode(f"Function {name}", (list_of(arguments),))


def expressions(expressions: Sequence[nodes.Expression]) -> SyntaxNode:
    """Return the list of some expressions."""
    return list_of([expression_tree(expression) for expression in expressions])


def _optional(*expressions: nodes.Expression | None) -> list[SyntaxNode]:
    """Return the trees of the expressions that are not None."""
    return [expression_tree(e) for e in expressions if e is not None]

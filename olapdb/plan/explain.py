"""EXPLAIN: a plan as an indented tree, outermost node first, one fact a line, as in ClickHouse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from olapdb.errors import InternalError
from olapdb.functions import readable
from olapdb.functions.kernels import columns
from olapdb.plan import expressions, nodes
from olapdb.plan.tree import subqueries_of
from olapdb.types import DataType, Date, DateTime, String, Time, Time64, plain

Annotate = Callable[[nodes.Node], Iterable[str]]
_VALUES_SHOWN = 5
_INFIX = {
    "equals": "=",
    "notEquals": "!=",
    "less": "<",
    "greater": ">",
    "lessOrEquals": "<=",
    "greaterOrEquals": ">=",
    "plus": "+",
    "minus": "-",
    "multiply": "*",
    "divide": "/",
    "modulo": "%",
    "and": "AND",
    "or": "OR",
    "like": "LIKE",
}


def explain(plan: nodes.Plan, annotate: Annotate | None = None) -> list[str]:
    """Return the lines of a plan's tree.

    `annotate(node)` returns more lines for a node, such as those of the executor about indexes."""
    return list(_lines(plan.root, 0, annotate or (lambda node: ()), set()))


def _lines(node: nodes.Node, depth: int, annotate: Annotate, shared: set[int]) -> Iterator[str]:
    """Yield the lines of a node, its subqueries and its inputs, indented by `depth`.

    The numbers of `Shared` nodes whose inputs were shown are in `shared`."""
    indent = "  " * depth
    yield indent + title(node)
    for fact in (*facts(node), *annotate(node)):
        yield f"{indent}    {fact}"
    for number, plan in enumerate(subqueries_of(node), start=1):
        yield f"{indent}    Subquery {number}:"
        yield from _lines(plan, depth + 3, annotate, shared)
    if isinstance(node, nodes.Shared):
        if node.number in shared:
            return
        shared.add(node.number)
    for child in node.children():
        yield from _lines(child, depth + 1, annotate, shared)


def title(node: nodes.Node) -> str:
    """Return the first line of a node, such as `Join (LEFT)`."""
    match node:
        case nodes.Scan():
            return f"ReadFromMergeTree ({node.table.database}.{node.table.name})"
        case nodes.SystemScan():
            return f"ReadFromSystem ({node.name})"
        case nodes.Values():
            return f"Values ({node.rows.num_rows} rows)"
        case nodes.FileScan():
            kind = "Text" if node.paths == ("",) else "File"
            return f"ReadFrom{kind} ({node.format})"
        case nodes.Numbers():
            return "ReadFromNumbers"
        case nodes.Primes():
            return "ReadFromPrimes"
        case nodes.Loop():
            return "Loop"
        case nodes.Filter():
            return "Filter"
        case nodes.Project():
            return "Expression"
        case nodes.ArrayJoin():
            return f"ArrayJoin ({'LEFT ' if node.left else ''}ARRAY JOIN)"
        case nodes.Aggregate():
            return "Aggregating" if node.totals is None else "Aggregating (WITH TOTALS)"
        case nodes.TotalsRow():
            return "Totals"
        case nodes.Join():
            strictness = "" if node.strictness == "ALL" else f"{node.strictness} "
            return f"Join ({strictness}{node.kind})"
        case nodes.Paste():
            return "Paste"
        case nodes.Sort():
            return "Sorting"
        case nodes.Fill():
            return "Filling"
        case nodes.Window():
            return "Window"
        case nodes.Limit() | nodes.RelativeLimit():
            return "Limit"
        case nodes.LimitBy():
            return "LimitBy"
        case nodes.Distinct():
            return "Distinct"
        case nodes.RecursiveUnion():
            return f"RecursiveUnion ({node.key})"
        case nodes.WorkingTable():
            return f"ReadFromLastStep ({node.key})"
        case nodes.Shared():
            return f"Shared ({node.number})"
        case nodes.Union():
            return "Union"
        case nodes.SetDifference():
            return f"IntersectOrExcept ({node.operator}{' DISTINCT' if node.distinct else ''})"
        case _:
            raise InternalError(f"Unknown plan node {type(node).__name__}.")


def facts(node: nodes.Node) -> Iterator[str]:
    """Yield the lines below a node's title: columns, keys, conditions, limits."""
    match node:
        case nodes.Scan():
            yield f"Columns: {', '.join(name for _, name in node.columns) or 'none'}"
            if node.final:
                yield "Final: rows of equal sorting key are combined"
            if node.prewhere is not None:
                yield f"Prewhere: {show(node.prewhere)}"
            if node.predicate is not None:
                yield f"Filter: {show(node.predicate)}"
        case nodes.SystemScan():
            yield f"Columns: {', '.join(name for _, name in node.columns) or 'none'}"
            for name, values in node.only:
                yield f"Only: {name} in {', '.join(map(repr, sorted(values))) or 'no value'}"
        case nodes.FileScan():
            yield f"Columns: {', '.join(name for _, name in node.columns) or 'none'}"
            if node.paths != ("",):
                yield f"Files: {len(node.paths)}"
        case nodes.Numbers():
            count = "without end" if node.count is None else f"{node.count} rows"
            yield f"From {node.start}, step {node.step}, {count}"
        case nodes.Primes():
            count = "without end" if node.count is None else f"{node.count} rows"
            yield f"From prime {node.start}, step {node.step}, {count}"
        case nodes.Filter():
            yield f"Condition: {show(node.predicate)}"
        case nodes.Project():
            columns = [_named(n, e) for n, e in node.expressions]
            yield f"Columns: {', '.join(columns) or 'none'}"
        case nodes.ArrayJoin():
            yield f"Arrays: {', '.join(_named(n, e) for n, e in node.arrays)}"
        case nodes.Aggregate():
            yield f"Keys: {', '.join(_named(n, e) for n, e in node.keys) or 'none'}"
            if node.sets:
                sets = (f"({', '.join(names)})" for names in node.sets)
                yield f"Sets: {', '.join(sets)}"
            if node.aggregates:
                yield f"Aggregates: {', '.join(_call(c) for _, c in node.aggregates)}"
            if node.totals is not None and node.totals.having is not None:
                yield f"Totals of groups with: {show(node.totals.having)}"
        case nodes.Join():
            pairs = zip(node.left_keys, node.right_keys, strict=True)
            if node.left_keys:
                yield f"Keys: {', '.join(f'{show(a)} = {show(b)}' for a, b in pairs)}"
            if node.residual is not None:
                yield f"Residual: {show(node.residual)}"
        case nodes.Sort():
            yield f"Sort: {_keys(node.keys)}"
            if node.limit is not None:
                yield f"Limit: {node.limit}"
        case nodes.Fill():
            yield f"Fill: {_fill(node)}"
            if node.interpolated:
                yield f"Interpolate: {', '.join(_named(n, e) for n, e in node.interpolated)}"
        case nodes.Window():
            yield f"Partition by: {', '.join(show(e) for e in node.partition_by) or 'none'}"
            yield f"Order by: {_keys(node.order_by) or 'none'}"
            yield f"Functions: {', '.join(_window_call(c) for _, c in node.calls)}"
        case nodes.Limit() | nodes.RelativeLimit():
            if node.count is not None:
                yield f"Limit: {node.count}{' WITH TIES' if node.ties else ''}"
            if node.offset:
                yield f"Offset: {node.offset}"
        case nodes.LimitBy():
            offset = f" OFFSET {node.offset}" if node.offset else ""
            yield f"Limit: {node.count}{offset} BY {', '.join(show(k) for k in node.keys)}"
        case nodes.Shared():
            yield "Runs once for all places of this number"
        case nodes.Distinct():
            yield f"Columns: {', '.join(show(k) for k in node.keys) or 'all'}"


def _named(name: str, expression: expressions.Expression) -> str:
    """Return `expression AS name`, a column of that name as the name alone."""
    if isinstance(expression, expressions.ColumnRef) and expression.name == name:
        return name
    return f"{show(expression)} AS {name}"


def _keys(keys: Sequence[nodes.SortKey]) -> str:
    """Return sort keys as text: `a ASC, b DESC NULLS FIRST`."""
    return ", ".join(
        f"{show(k.expression)} {'DESC' if k.descending else 'ASC'}"
        f"{' NULLS FIRST' if k.nulls_first else ''}"
        for k in keys
    )


def _fill(node: nodes.Fill) -> str:
    """Return the text of a WITH FILL: FROM, TO, STEP and STALENESS, in the units in which the column is stored."""
    step = f"{node.months} months" if node.months else str(node.step)
    clauses = {"FROM": node.start, "TO": node.stop, "STEP": step, "STALENESS": node.staleness}
    written = (f"{word} {value}" for word, value in clauses.items() if value is not None)
    return " ".join((node.key.name, "DESC" if node.descending else "ASC", *written))


def _call(call: expressions.AggregateCall) -> str:
    """Return an aggregate as text: `sum(a)`."""
    return f"{call.name}({', '.join(show(a) for a in call.arguments)})"


def _window_call(call: expressions.WindowCall) -> str:
    """Return a window function as text, with its frame."""
    frame = call.frame
    arguments = ", ".join(show(a) for a in call.arguments)
    return f"{call.name}({arguments}) {frame.unit} BETWEEN {_bound(frame.start)} AND {_bound(frame.end)}"


def _bound(bound: expressions.FrameBound) -> str:
    """Return an end of a frame as text: `1 PRECEDING`."""
    if bound.kind == "CURRENT":
        return "CURRENT ROW"
    return f"{'UNBOUNDED' if bound.offset is None else _value(bound.offset)} {bound.kind}"


def show(expression: expressions.Expression) -> str:
    """Return the text of an expression, with operators between their arguments: `a + 1 > b`."""
    match expression:
        case expressions.ColumnRef(name=name):
            return name
        case expressions.Constant():
            return _value(expression)
        case expressions.Call(name=name, arguments=arguments) if (
            name in _INFIX and len(arguments) > 1
        ):
            return f" {_INFIX[name]} ".join(_inner(a) for a in arguments)
        case expressions.Call(name="not", arguments=(argument,)):
            return f"NOT {_inner(argument)}"
        case expressions.Call(name=name, arguments=arguments):
            return f"{name}({', '.join(show(a) for a in arguments)})"
        case expressions.LambdaParameter(name=name):
            return _parameter(name)
        case expressions.LambdaFunction(
            name=name, parameters=parameters, body=body, arguments=arguments
        ):
            names = ", ".join(_parameter(p.name) for p in parameters)
            head = names if len(parameters) == 1 else f"({names})"
            return f"{name}({head} -> {show(body)}, {', '.join(show(a) for a in arguments)})"
        case expressions.Cast():
            return f"CAST({show(expression.argument)} AS {expression.type})"
        case expressions.InValues(argument=argument, values=values):
            shown = [str(_python(v, argument.type)) for v in values.slice(0, _VALUES_SHOWN)]
            more = len(values) - len(shown)
            rest = f", … {more} more" if more else ""
            word = "NOT IN" if expression.negated else "IN"
            return f"{_inner(argument)} {word} ({', '.join(shown)}{rest})"
        case expressions.InSubquery(arguments=arguments):
            word = "NOT IN" if expression.negated else "IN"
            sides = ", ".join(show(a) for a in arguments)
            return f"{sides if len(arguments) == 1 else f'({sides})'} {word} (subquery)"
        case expressions.ScalarSubquery():
            return "(subquery)"
        case expressions.DictionaryCall(kind=kind, shape=shape):
            column = () if kind != "get" else (expression.plan.schema[expression.attribute].name,)
            shown = [shape.name, *column, *map(show, expression.children())]
            return f"dictionary {kind}({', '.join(shown)})"
        case _:
            raise InternalError(f"Unknown expression {type(expression).__name__}.")


def _parameter(name: str) -> str:
    """Return a lambda parameter's name in the query, without the lambda's depth."""
    return name.partition("\0")[0] or "t"


def _inner(expression: expressions.Expression) -> str:
    """Return an operand as text, in parentheses if it is an operator of several operands."""
    text = show(expression)
    is_infix = isinstance(expression, expressions.Call) and expression.name in _INFIX
    return f"({text})" if is_infix and len(expression.children()) > 1 else text


def _python(value: pa.Scalar, data_type: DataType) -> Any:
    """Return the Python value; a readable text if a string in it is not UTF-8."""
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return readable(columns.single(value), data_type)[0]


def _value(constant: expressions.Constant) -> str:
    """Return a constant as SQL-like text: strings, dates and times quoted."""
    if not constant.value.is_valid:
        return "NULL"
    value = _python(constant.value, constant.type)
    inner = plain(constant.type)
    if isinstance(inner, String):
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(inner, Date):
        return f"'{value}'"
    if isinstance(inner, DateTime):
        return f"'{value.strftime('%Y-%m-%d %H:%M:%S')}'"
    if isinstance(inner, Time | Time64):
        return f"'{readable(columns.single(constant.value), inner)[0]}'"
    return str(value)

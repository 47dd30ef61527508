"""What is wrong with a dbt-clickhouse materialized view today, by its query and its target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from olapdb.bind.syntax import is_not_query, walk
from olapdb.errors import Error
from olapdb.functions import parse_type, resolve_aggregate
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_expression

from ..incremental_mv.aggregates import is_call
from ..incremental_mv.model_sql import output_name
from ..incremental_mv.query_split import SplitQuery
from .model_text import REF_DATABASE
from .project import ModelFile

_ADDITIVE = frozenset({"sum", "count", "sumif", "countif", "summap", "sumwithoverflow"})
_MERGING = ("SummingMergeTree", "AggregatingMergeTree")


def problems(model: ModelFile, query: nodes.Query, writers: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the view, a sentence each.

    `writers` has, by name of a model, where its target is written directly."""
    findings = [*_writes(model, writers), *_gaps(model)]
    if not isinstance(query, nodes.Select):
        return findings
    return [*_aggregates(model, query), *_grouping(model, query), *_joins(query), *findings]


def engine_of(model: ModelFile) -> str:
    """Return the name of the target's engine; dbt-clickhouse's default is MergeTree."""
    name = str(model.config.get("engine") or "MergeTree").split("(")[0].strip()
    return re.sub(r"^(Replicated|Shared)", "", name)


def _aggregates(model: ModelFile, select: nodes.Select) -> Iterator[str]:
    """Yield the aggregates that merges of the target combine wrongly, or not at all."""
    engine = engine_of(model)
    for column in select.columns:
        name = output_name(column)
        for call in (n for n in walk(column, is_not_query) if is_call(n)):
            assert isinstance(call, nodes.Function)
            lowered, text = call.name.lower(), to_sql(call)
            if lowered.endswith(("state", "merge", "simplestate")):
                if engine == "SummingMergeTree":
                    continue
                if engine != "AggregatingMergeTree" and lowered.endswith("state"):
                    yield (
                        f"{name}: {text} is a state in a {engine}, which keeps the states of each "
                        "INSERT as rows of their own: every reader has to merge them."
                    )
                continue
            if engine == "SummingMergeTree" and lowered not in _ADDITIVE:
                yield (
                    f"{name}: {text} does not add up, and SummingMergeTree adds the values of "
                    "two INSERTs of one key."
                )
            elif engine == "AggregatingMergeTree":
                yield (
                    f"{name}: {text} is stored as a number, and AggregatingMergeTree keeps one of "
                    "two numbers of a key: the other INSERT's is lost."
                )
            elif engine not in _MERGING and lowered not in _ADDITIVE | {"min", "max"}:
                yield (
                    f"{name}: {text} is stored as a number for each INSERT, which readers cannot "
                    "combine to that of a key."
                )
            elif engine == "ReplacingMergeTree":
                yield (
                    f"{name}: {text} is that of one INSERT, and ReplacingMergeTree keeps the newest "
                    "of them: the others are lost."
                )


def ordered_columns(split: SplitQuery) -> list[str]:
    """Return the columns, with their aggregates, that depend on the order in which rows come."""
    calls = ((state.name, state.storage.trigger_call) for state in split.states)
    return [f"{name}: {to_sql(call)}" for name, call in calls if _is_ordered(call)]


def _is_ordered(call: nodes.Function) -> bool:
    """Return whether the result of an aggregate depends on the order of rows. The types of its
    arguments are not known, so numbers and texts are tried; an aggregate that takes neither is not
    ordered."""
    parameters = tuple(p.value for p in call.parameters if isinstance(p, nodes.Literal))
    for name in ("UInt8", "String"):
        with suppress(Error):
            types = (parse_type(name),) * len(call.arguments)
            return resolve_aggregate(call.name, parameters, types).merge_class == "ordered"
    return False


def _grouping(model: ModelFile, select: nodes.Select) -> Iterator[str]:
    """Yield a sentence if merges join rows of different groups, or keep those of one apart."""
    keys = group_names(select)
    order = order_names(model.config.get("order_by"))
    if not keys or engine_of(model) not in (*_MERGING, "ReplacingMergeTree"):
        return
    missing = sorted(set(keys) - set(order))
    surplus = sorted(set(order) - set(keys))
    if missing:
        yield (
            f"ORDER BY ({', '.join(order) or 'tuple()'}) lacks {', '.join(missing)} of GROUP BY "
            f"({', '.join(keys)}): merges join rows of different groups."
        )
    if surplus:
        yield (
            f"ORDER BY has {', '.join(surplus)}, which GROUP BY lacks: rows of one group stay "
            "apart wherever the value differs."
        )


def _joins(select: nodes.Select) -> Iterator[str]:
    """Yield a sentence for each table that the view joins."""
    for relation in walk(select):
        if isinstance(relation, nodes.Join):
            tables = [n for n in walk(relation.right) if isinstance(n, nodes.TableReference)]
            names = ", ".join(_table(t.table) for t in tables) or to_sql(relation.right)
            yield (
                f"it joins {names} as it is at each INSERT: a later change of {names} never "
                "reaches the rows that are there."
            )


def _gaps(model: ModelFile) -> Iterator[str]:
    """Yield a sentence about each kind of rows that the view misses because of how it is filled."""
    if model.config.get("catchup") is False:
        yield "catchup is off: the rows from before the view was made are missing."
    else:
        yield (
            "it is filled by one INSERT … SELECT beside the INSERTs of others: a row that arrives "
            "between the fill and the view is missing, or counted twice."
        )
    if "populate" in model.text.lower():
        yield "POPULATE loses the rows that are inserted while it runs."


def _writes(model: ModelFile, writers: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence if something beside the view writes into its target."""
    if model.name in writers:
        yield (
            f"{writers[model.name]} inserts into it directly: nothing can tell these rows from "
            "those of the view."
        )


def _table(name: nodes.TableName) -> str:
    """Return a table's name for messages, that of a ref without the stand-in's database."""
    return name.name if name.database in (REF_DATABASE, None) else f"{name.database}.{name.name}"


def group_names(select: nodes.Select) -> list[str]:
    """Return the names of the columns by which the SELECT groups, their text if they have none."""
    by_expression = {
        (c.expression if isinstance(c, nodes.Alias) else c): output_name(c) for c in select.columns
    }
    if select.group_by == "ALL":
        return [
            n
            for e, n in by_expression.items()
            if not any(is_call(x) for x in walk(e, is_not_query))
        ]
    names = []
    for element in select.group_by or ():
        if isinstance(element, nodes.Literal) and isinstance(element.value, int):
            names.append(output_name(select.columns[int(element.value) - 1]))
        elif isinstance(element, nodes.Identifier):
            names.append(by_expression.get(element, element.parts[-1]))
        elif isinstance(element, nodes.Expression):
            names.append(by_expression.get(element, to_sql(element)))
    return names


def order_names(order_by: object) -> list[str]:
    """Return the columns of config order_by: a list of names, or the text of an expression."""
    if not order_by:
        return []
    listed = [order_by] if isinstance(order_by, str) else list(order_by)  # type: ignore[call-overload]
    names: list[str] = []
    for item in listed:
        expression = parse_expression(f"({item})")
        elements = (
            expression.elements if isinstance(expression, nodes.TupleLiteral) else (expression,)
        )
        for element in elements:
            if isinstance(element, nodes.Function) and element.name.lower() == "tuple":
                names += [to_sql(argument) for argument in element.arguments]
            else:
                names.append(to_sql(element))
    return names

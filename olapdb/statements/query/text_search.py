"""hasAnyTokens, hasAllTokens and hasPhrase of a column with a text index: they use its tokenizer.

    INDEX i s TYPE text(tokenizer = ngrams(3), preprocessor = lower(s))
    hasAllTokens(s, 'Foo')          hasAllTokens(s, 'Foo', 'ngrams(3)')
    … WHERE hasAllTokens(s, 'Foo')  … WHERE hasAllTokens(lower(s), ['foo'], 'ngrams(3)')

As in ClickHouse, the tokenizer holds wherever the column can be traced to the table, and the
preprocessor where the call, or hasToken, decides about the table's rows: in WHERE and PREWHERE, below
AND, OR and NOT, unless `use_skip_indexes` is off. It does not depend on which parts have the index.
Only SELECT is rewritten: what views, UPDATE and DELETE mean does not change with an index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.bind import constants
from olapdb.engine.layout import TableLayout
from olapdb.engine.text_preprocessing import preprocessed_column, preprocessed_text
from olapdb.functions.kernels import columns
from olapdb.functions.strings.tokenizers import Tokenizer
from olapdb.model.schema import SkipIndex, Table
from olapdb.plan import nodes
from olapdb.plan.conditions import scalar_call
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression, columns_of, transform
from olapdb.plan.nodes import Plan, Scan
from olapdb.plan.tree import all_scans, map_expressions, map_subqueries, with_inputs
from olapdb.records import dataclass
from olapdb.types import STRING, Array

_SEARCHES = ("hasAnyTokens", "hasAllTokens", "hasPhrase")
_IN_PHRASES = ("splitByNonAlpha", "splitByString", "splitByRegexp", "ngrams", "asciiCJK")
_DEFAULT = Tokenizer.of("splitByNonAlpha")


def use_text_indexes(
    plan: Plan, layout_of: Callable[[Table], TableLayout], *, preprocess: bool
) -> Plan:
    """Return the plan with searches over indexed texts changed: those that name no tokenizer get
    the index's, and with `preprocess` those in conditions are over the texts as the index's
    preprocessor makes them. `layout_of` gives the layout of a table."""
    tables = {scan.table for scan in all_scans(plan.root)}
    if not any(index.type == "text" for table in tables for index in table.indexes):
        return plan
    return replace(plan, root=_Rewriting(layout_of, preprocess).node(plan.root)[0])


@dataclass(frozen=True)
class _Origin:
    """The origin of a column of the plan: an expression over the columns of the table that `scan`
    reads. `decides`: a condition on the column keeps or drops rows of the table, as a WHERE does.
    """

    scan: Scan
    expression: Expression
    decides: bool = True


_Origins = Mapping[str, _Origin]


class _Rewriting:
    """The rewriting of one plan."""

    def __init__(self, layout_of: Callable[[Table], TableLayout], preprocess: bool) -> None:
        self._layout_of = layout_of
        self._preprocess = preprocess

    def node(self, node: nodes.Node) -> tuple[nodes.Node, _Origins]:
        """Return the node rewritten, and the origins of its columns."""
        inputs = [self.node(child) for child in node.children()]
        node = with_inputs(node, tuple(child for child, _ in inputs))
        node = map_subqueries(node, lambda subquery: self.node(subquery)[0])
        below: _Origins = {
            name: origin for _, origins in inputs for name, origin in origins.items()
        }
        if isinstance(node, Scan):
            below = _of_scan(node)
        if self._preprocess and isinstance(node, nodes.Filter):
            node = replace(node, predicate=self._condition(node.predicate, below))
        if self._preprocess and isinstance(node, Scan) and node.prewhere is not None:
            node = replace(node, prewhere=self._condition(node.prewhere, below))
        node = map_expressions(node, lambda expression: self._with_tokenizers(expression, below))
        return node, _passed(node, below, [origins for _, origins in inputs])

    def _with_tokenizers(self, expression: Expression, origins: _Origins) -> Expression:
        """Return the expression with the tokenizer of the index over the searched column in each
        search that names none."""

        def changed(part: Expression) -> Expression | None:
            """Return a search with the tokenizer of its index; None for other expressions, without
            an index, and for the default tokenizer."""
            match part:
                case Call(name=name, arguments=(column, needles)) if name in _SEARCHES:
                    index = self._index_of(column, origins)
                    if index is None:
                        return None
                    tokenizer = Tokenizer.parse(index.tokenizer)
                    fits = name != "hasPhrase" or tokenizer.name in _IN_PHRASES
                    if tokenizer == _DEFAULT or not fits:
                        return None
                    return scalar_call(name, (column, needles, constants.string(index.tokenizer)))
            return None

        return transform(expression, changed)

    def _condition(self, condition: Expression, origins: _Origins) -> Expression:
        """Return the condition with searches over preprocessed texts in place of those over a
        column whose text index has a preprocessor; AND, OR and NOT are searched through."""
        match condition:
            case Call(name="and" | "or" | "not" as name, arguments=arguments):
                changed = tuple(self._condition(argument, origins) for argument in arguments)
                if all(new is old for new, old in zip(changed, arguments, strict=True)):
                    return condition
                return scalar_call(name, changed)
            case Call(name="hasToken", arguments=(column, Constant() as needle)):
                index = self._deciding_index(column, origins)
                if index is not None and Tokenizer.parse(index.tokenizer) == _DEFAULT:
                    return _search(index, "hasAllTokens", column, needle)
            case Call(name=name, arguments=(column, Constant() as needle, *rest)) if (
                name in _SEARCHES
            ):
                index = self._deciding_index(column, origins)
                if index is not None and _names_tokenizer(rest, index):
                    return _search(index, name, column, needle)
        return condition

    def _deciding_index(self, column: Expression, origins: _Origins) -> SkipIndex | None:
        """Return the text index over the expression. Return None without one, if it has no
        preprocessor, or if a condition on the expression does not keep or drop rows of the table.
        """
        index = self._index_of(column, origins)
        if index is None or not index.preprocessor:
            return None
        return index if all(origins[name].decides for name in columns_of(column)) else None

    def _index_of(self, column: Expression, origins: _Origins) -> SkipIndex | None:
        """Return the text index over an expression, None without one."""
        origin = _substituted(column, origins)
        if origin is None:
            return None
        indexes = self._layout_of(origin.scan.table).index_expressions
        text = (i for i, over in indexes if i.type == "text" and over == origin.expression)
        return next(text, None)


def _search(index: SkipIndex, name: str, column: Expression, needle: Constant) -> Expression:
    """Return the call of the search `name` over the preprocessed column, with the index's
    tokenizer. A needle that is a text is preprocessed too, and cut into tokens except for
    hasPhrase; an array of needles stays."""
    value = needle.value
    tokenizer = constants.string(index.tokenizer)
    searched = preprocessed_column(index, column)
    if pa.types.is_string(value.type) and value.is_valid:
        text = preprocessed_text(index, value.cast(pa.binary()).as_py())
        if name == "hasPhrase":
            needle = Constant(STRING, _texts([text])[0])
        else:
            tokens = _texts(Tokenizer.parse(index.tokenizer).of_text(text))
            lists = columns.lists_from(np.array([0, len(tokens)]), tokens)
            needle = Constant(Array(STRING), lists[0])
    return scalar_call(name, (searched, needle, tokenizer))


def _texts(values: list[bytes]) -> pa.Array:
    """Return texts, which need not be UTF-8, as a String column."""
    return columns.text(pa.array(values, pa.binary()))


def _names_tokenizer(rest: list[Expression], index: SkipIndex) -> bool:
    """Return whether the arguments behind the needles name no tokenizer, or the index's."""
    if not rest:
        return True
    value = rest[0].value.as_py() if isinstance(rest[0], Constant) else None
    return isinstance(value, str) and Tokenizer.parse(value).text == index.tokenizer


def _of_scan(scan: Scan) -> _Origins:
    """Return the origins of a scan's columns."""
    pairs = [(u, c, t) for (u, c), t in zip(scan.columns, scan.types, strict=True)]
    return {
        unique: _Origin(scan, ColumnRef(data_type, column))
        for unique, column, data_type in (*pairs, *scan.predicate_columns)
    }


def _substituted(expression: Expression, origins: _Origins) -> _Origin | None:
    """Return the origin of an expression; None if it reads no column, a column without an origin,
    or columns of several scans."""
    read = [origins.get(name) for name in columns_of(expression)]
    known = [origin for origin in read if origin is not None]
    if not known or len(known) < len(read) or any(o.scan is not known[0].scan for o in known):
        return None

    def replaced(part: Expression) -> Expression | None:
        """Return the expression over the table that a column is computed by; None for other expressions."""
        return origins[part.name].expression if isinstance(part, ColumnRef) else None

    decides = all(origin.decides for origin in known)
    return _Origin(known[0].scan, transform(expression, replaced), decides)


def _passed(node: nodes.Node, below: _Origins, inputs: list[_Origins]) -> _Origins:
    """Return the origins of the node's output columns. `below` are those of all its inputs
    together, `inputs` those of each."""
    match node:
        case Scan() | nodes.Filter() | nodes.Sort() | nodes.Distinct() | nodes.Shared():
            return below
        case nodes.Project(expressions=pairs) | nodes.Aggregate(keys=pairs):
            substituted = {name: _substituted(expression, below) for name, expression in pairs}
            known = {name: origin for name, origin in substituted.items() if origin is not None}
            return known if isinstance(node, nodes.Project) else _undecided(known)
        case nodes.Join(kind="INNER" | "CROSS"):
            return below
        case nodes.Join(kind="LEFT"):
            return {**inputs[0], **_undecided(inputs[1])}
        case nodes.Join(kind="RIGHT"):
            return {**_undecided(inputs[0]), **inputs[1]}
        case nodes.Join() | nodes.Limit() | nodes.LimitBy() | nodes.RelativeLimit():
            return _undecided(below)
        case nodes.Window() | nodes.Fill() | nodes.ArrayJoin():
            return _undecided(below)
    return {}


def _undecided(origins: _Origins) -> _Origins:
    """Return the origins without `decides`, for a node above which a condition no longer keeps or
    drops rows of a table."""
    return {name: replace(origin, decides=False) for name, origin in origins.items()}

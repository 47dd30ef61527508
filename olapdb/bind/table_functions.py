"""Table functions: numbers, zeros, generate_series, primes, values, null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb import errors
from olapdb.bind import value_rows
from olapdb.bind.contracts import BindContext, QueryBinder
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.file_functions import FILE_FUNCTIONS, bind_file_function, text_arguments
from olapdb.bind.names import located, suggestion
from olapdb.bind.relation import Relation, RelationColumn
from olapdb.bind.structures import parse_structure
from olapdb.formats.registry import find_format
from olapdb.lazy import LazyModule
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Constant
from olapdb.sql import nodes as sql
from olapdb.types import UINT8, UINT64

if TYPE_CHECKING:
    from olapdb.bind import value_expressions
else:
    value_expressions = LazyModule("olapdb.bind.value_expressions")

_SERIES = ("generate_series", "generateseries")
_STEP, _LOWEST = 2, -(1 << 63)
"""The argument of generate_series that may be below 0, and how far."""
_ZEROS = ("zeros", "zeros_mt")
_NUMBERS = ("numbers", "numbers_mt", *_ZEROS)
FUNCTIONS = (
    "numbers",
    "numbers_mt",
    "zeros",
    "zeros_mt",
    "generate_series",
    "generateRandom",
    "primes",
    "loop",
    "null",
    "values",
    "SQLStandardValues",
    "dictionary",
    "merge",
    *FILE_FUNCTIONS,
)
"""The table functions that this module and `file_functions` bind."""
_ELSEWHERE = {
    "url": "Fetch the data, and INSERT them.",
    "view": "Its argument is a query: view(SELECT …).",
    **{
        name: hint
        for hint, names in (
            (
                "Read files with Spark, or with pyarrow, and INSERT them.",
                "s3 gcs oss cosn hdfs filesystem azureblobstorage iceberg icebergs3 icebergazure iceberghdfs iceberglocal deltalake deltalakes3 deltalakeazure deltalakelocal hudi paimon paimons3 paimonazure paimonhdfs paimonlocal",
            ),
            (
                "A warehouse is shared by opening its folder; there are no servers.",
                "remote remotesecure cluster clusterallreplicas s3cluster hdfscluster filecluster urlcluster azureblobstoragecluster icebergcluster icebergs3cluster icebergazurecluster iceberghdfscluster iceberglocalcluster deltalakecluster deltalakes3cluster deltalakeazurecluster hudicluster paimoncluster paimons3cluster paimonazurecluster paimonhdfscluster",
            ),
            (
                "Read it with its driver in Python, and INSERT the Arrow table.",
                "mysql postgresql sqlite mongodb redis jdbc odbc ytsaurus arrowflight bigquery",
            ),
            (
                "Programs are not run by SQL: CREATE FUNCTION … LANGUAGE python, or INSERT what the program gives.",
                "executable",
            ),
            ("The EXPLAIN is a statement of its own.", "viewexplain"),
            (
                "system.parts and EXPLAIN indexes = 1 tell of parts and granules.",
                "mergetreeindex mergetreeprojection mergetreetextindex mergetreeanalyzeindexes mergetreeanalyzeindexesuuid mergetreecodecblockcounts",
            ),
            (
                "There is no engine TimeSeries.",
                "timeseriesdata timeseriessamples timeseriestags timeseriesmetrics timeseriesmetricfamilies timeseriesselector prometheusquery prometheusqueryrange",
            ),
            ("generateRandom('a String') gives random rows.", "fuzzjson fuzzquery"),
            ("Its arguments are queries: viewIfPermitted(SELECT … ELSE f(…)).", "viewifpermitted"),
            ("Write the query itself: SELECT … FROM (SELECT …).", "eval"),
            ("Insert a DataFrame or an Arrow table: connection.insert(…).", "python arrowstream"),
        )
        for name in names.split()
    },
}
"""ClickHouse's table functions that are not here, in lower case, and what to do instead."""


def bind_table_function(
    queries: QueryBinder, source: sql.TableFunction, context: BindContext
) -> Relation:
    """Return the relation of a table function such as `numbers(10)`.

    Raises UnknownFunction, or NotSupportedError for one that ClickHouse has but olapdb has not."""
    name = source.name.lower()
    binder = ExpressionBinder(queries, Relation((), lambda: plan.Values((), pa.table({}))), context)
    with located(source.position):
        if name in _NUMBERS or name in _SERIES:
            lowest = {_STEP: _LOWEST} if name in _SERIES else {}
            arguments = [
                _integer(binder, a, source.name, lowest.get(at, 0))
                for at, a in enumerate(source.arguments)
            ]
            return _numbers(queries, source, name, arguments)
        if name == "primes":
            return _primes(queries, source, [_integer(binder, a, name) for a in source.arguments])
        if name == "values" or source.name == "SQLStandardValues":
            return _relation(*value_rows.bind_value_rows(queries, source, binder), source)
        if name in FILE_FUNCTIONS:
            computed = _value_rows(queries, source, binder) if name == "format" else None
            if computed is not None:
                return computed
            return bind_file_function(queries, source, binder)
        if name == "dictionary":
            several = len(source.arguments) != 1
            kind = errors.NumberOfArgumentsDoesntMatch if several else errors.BadArguments
            raise kind("dictionary takes the name of one dictionary, as a text or as it is.")
        if name == "null":
            return _null(queries, source, binder)
        raise unknown_function(source, FUNCTIONS, "")


def unknown_function(source: sql.TableFunction, known: Sequence[str], refusal: str) -> errors.Error:
    """Return the error about a table function that is none of the `known` ones: NotSupportedError,
    with `refusal` as its hint, for one that ClickHouse has or that is only read."""
    name = source.name.lower()
    if name == "input" and len(source.arguments) > 1:
        return errors.NumberOfArgumentsDoesntMatch(
            "input takes the structure of its rows.", position=source.position
        )
    if name == "input":
        return errors.InvalidUsageOfInput(
            "input() stands for the data of an INSERT, and there are none.",
            hint="Write INSERT INTO t SELECT … FROM input('a UInt8') FORMAT CSV and the data.",
            position=source.position,
        )
    if name in _ELSEWHERE or name in (*FUNCTIONS, "view"):
        clustered = "cluster" in name
        kind = errors.ClusterDoesntExist if clustered else errors.NotSupportedError
        return kind(
            f"The table function {source.name} is not supported here.",
            hint=_ELSEWHERE.get(name, refusal),
            position=source.position,
        )
    of_files = name.startswith(("read_", "parquet_scan", "csv_scan"))
    return errors.UnknownFunction(
        f"Unknown table function {source.name!r}.",
        hint="Write file('path')." if of_files else suggestion(source.name, known),
        position=source.position,
    )


def _integer(binder: ExpressionBinder, node: sql.Expression, function: str, lowest: int = 0) -> int:
    """Return a constant argument as an integer of at least `lowest`.

    Raises IllegalTypeOfArgument for another constant, BadArguments for an argument that is not constant,
    or that zeros() does not take."""
    bound = binder.bind(node)
    value = bound.value.as_py() if isinstance(bound, Constant) else None
    of_zeros = function.lower() in _ZEROS
    if isinstance(value, float) and value.is_integer() and not of_zeros:
        value = int(value)
    if not isinstance(value, int) or value < lowest:
        is_constant = isinstance(bound, Constant) and not of_zeros
        kind = errors.IllegalTypeOfArgument if is_constant else errors.BadArguments
        raise kind(f"The arguments of {function} are constant integers from 0 on.")
    return value


def _numbers(
    queries: QueryBinder, source: sql.TableFunction, name: str, arguments: list[int]
) -> Relation:
    """Return the relation of numbers(), zeros() or generate_series(), by its arguments.

    `name` is in lower case. Raises NumberOfArgumentsDoesntMatch for another count of arguments."""
    shown, data_type = "number", UINT64
    start, count, step = 0, None, 1
    match name, arguments:
        case ("zeros" | "zeros_mt", []):
            shown, data_type, step = "zero", UINT8, 0
        case ("zeros" | "zeros_mt", [length]):
            shown, data_type, count, step = "zero", UINT8, length, 0
        case (("generate_series" | "generateseries"), [first, last, *rest]) if len(rest) < 2:
            shown, start, step = "generate_series", first, rest[0] if rest else 1
            _refuse_zero(step, source)
            count = max(0, (last - first) // step + 1)
        case (("numbers" | "numbers_mt"), []):
            pass
        case (("numbers" | "numbers_mt"), [length]):
            count = length
        case (("numbers" | "numbers_mt"), [first, length]):
            start, count = first, length
        case (("numbers" | "numbers_mt"), [first, length, stride]):
            _refuse_zero(stride, source)
            start, count, step = first, -(-length // stride), stride
        case _:
            raise errors.NumberOfArgumentsDoesntMatch(
                f"{source.name} does not take {len(arguments)} arguments."
            )
    unique = queries.names.unique(shown)
    node = plan.Numbers(unique, data_type, start, count, step)
    return _relation([(shown, ColumnRef(data_type, unique))], node, source)


def _primes(queries: QueryBinder, source: sql.TableFunction, arguments: list[int]) -> Relation:
    """Return the relation of primes(), by its arguments as of numbers(), which count primes.

    Raises NumberOfArgumentsDoesntMatch, BadArguments for a step of 0."""
    start, count, step = 0, None, 1
    match arguments:
        case []:
            pass
        case [length]:
            count = length
        case [first, length, *rest] if len(rest) < 2:
            start, count, step = first, length, rest[0] if rest else 1
            _refuse_zero(step, source)
        case _:
            raise errors.NumberOfArgumentsDoesntMatch(
                f"primes does not take {len(arguments)} arguments."
            )
    unique = queries.names.unique("prime")
    node = plan.Primes(unique, UINT64, start, count, step)
    return _relation([("prime", ColumnRef(UINT64, unique))], node, source)


def _refuse_zero(step: int, source: sql.TableFunction) -> None:
    """Raise BadArguments if the step is 0."""
    if step == 0:
        raise errors.BadArguments(f"The step of {source.name} must not be 0.")


def _value_rows(
    queries: QueryBinder, source: sql.TableFunction, binder: ExpressionBinder
) -> Relation | None:
    """Return the relation of format(Values, 'structure', data) where values of the data are expressions;
    None for anything else."""
    texts = text_arguments(source, binder)
    if len(texts) != 3 or texts[1].strip().lower() == "auto":
        return None
    if find_format(texts[0]).name != "Values":
        return None
    structure = parse_structure(texts[1], with_defaults=True)
    arrays = value_expressions.value_columns(queries, binder, texts[2], structure)
    if arrays is None:
        return None
    parse_structure(texts[1])  # refuses DEFAULT, which expressions of rows do not take
    unique = [queries.names.unique(shown) for shown, _ in structure]
    fields = tuple(plan.Field(u, t) for u, (_, t) in zip(unique, structure, strict=True))
    names = [(n, ColumnRef(t, u)) for u, (n, t) in zip(unique, structure, strict=True)]
    return _relation(names, plan.Values(fields, pa.Table.from_arrays(arrays, unique)), source)


def _null(queries: QueryBinder, source: sql.TableFunction, binder: ExpressionBinder) -> Relation:
    """Return the relation of `null('structure')`, which has no rows; without a structure it has the
    column of system.one.

    Raises NumberOfArgumentsDoesntMatch, BadArguments."""
    if len(source.arguments) > 1:
        raise errors.NumberOfArgumentsDoesntMatch("null takes the structure of its rows.")
    text: str | None = "dummy UInt8"
    if source.arguments:
        text = value_rows.constant_text(binder.bind(source.arguments[0]))
    if text is None:
        raise errors.BadArguments("The structure of null is a constant text.")
    structure = parse_structure(text, with_defaults=True)
    unique = [queries.names.unique(shown) for shown, _ in structure]
    fields = tuple(plan.Field(u, t) for u, (_, t) in zip(unique, structure, strict=True))
    table = pa.Table.from_arrays([pa.nulls(0, f.type.arrow) for f in fields], unique)
    names = [(n, ColumnRef(t, u)) for u, (n, t) in zip(unique, structure, strict=True)]
    return _relation(names, plan.Values(fields, table), source)


def _relation(
    columns: list[tuple[str, ColumnRef]], node: plan.Node, source: sql.TableFunction
) -> Relation:
    """Return the relation of a table function over its plan node.

    `columns` are (name that the query sees, reference to the node's column)."""
    qualifiers = ((source.alias,),) if source.alias else ((source.name,),)
    relation_columns = [
        RelationColumn(shown, reference.type, (lambda r=reference: r), qualifiers)  # type: ignore[misc]
        for shown, reference in columns
    ]
    return Relation(relation_columns, lambda: node, f"{source.name}()")

"""Table functions over data in a format: file() and format()."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial

from olapdb import errors
from olapdb.bind import constants
from olapdb.bind.contracts import QueryBinder
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.relation import Relation, RelationColumn
from olapdb.bind.structures import parse_structure, structure_defaults
from olapdb.config import Settings
from olapdb.formats.base import Input, Reader, Structure
from olapdb.formats.files import codec_of, matching_files
from olapdb.formats.heads import numbered_names
from olapdb.formats.opened import decoding, open_data
from olapdb.formats.registry import find_format, format_of_path, reader_of
from olapdb.functions.base import Environment
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Constant, Expression
from olapdb.sql import nodes as sql
from olapdb.types import (
    INT64,
    STRING,
    UINT64,
    Array,
    DataType,
    DateTime,
    FixedString,
    LowCardinality,
    Map,
    Nullable,
    String,
    Tuple,
    make_nullable,
    plain,
)

FILE_FUNCTIONS = ("file", "format")
VIRTUAL: Structure = (
    ("_path", LowCardinality(STRING)),
    ("_file", LowCardinality(STRING)),
    ("_size", Nullable(UINT64)),
    ("_time", Nullable(DateTime(None))),
    ("_row_number", Nullable(INT64)),
)
"""The columns of file() that say where a row is from; `*` does not show them."""
MOMENTARY = "files, which change without an INSERT"


def bind_file_function(
    queries: QueryBinder, source: sql.TableFunction, binder: ExpressionBinder
) -> Relation:
    """Return the relation of `file(path[, format[, structure[, compression]]])` or of
    `format(format, [structure,] data)`.

    Without a structure the columns are those of the first data that have any. Raises
    PathNotAllowed, CannotStat, UnknownFormat, FormatNotForInput, CannotExtractTableStructure,
    NumberOfArgumentsDoesntMatch, BadArguments."""
    texts = text_arguments(source, binder)
    if source.name.lower() == "format":
        scan = _text_scan(queries, source, texts)
        defaults = structure_defaults(texts[1]) if len(texts) == 3 else {}
        return _FileRelation(queries, scan, source, binder, defaults).relation(())
    queries.momentary = MOMENTARY
    scan = _file_scan(queries, source, texts)
    own = {name for name, _ in scan.structure}
    defaults = structure_defaults(texts[2]) if len(texts) > 2 else {}
    virtual = tuple(v for v in VIRTUAL if v[0] not in own)
    return _FileRelation(queries, scan, source, binder, defaults).relation(virtual)


def text_arguments(source: sql.TableFunction, binder: ExpressionBinder) -> list[str]:
    """Return the arguments of file() or format(). Raises BadArguments for one that is no constant text."""
    return [_text(binder, argument, source.name) for argument in source.arguments]


def _text(binder: ExpressionBinder, argument: sql.Expression, function: str) -> str:
    """Return a constant text, or a bare name such as CSV or data.csv. Raise BadArguments for anything else."""
    if isinstance(argument, sql.Identifier):
        return ".".join(argument.parts)
    bound = binder.bind(argument)
    if (
        not isinstance(bound, Constant)
        or not isinstance(plain(bound.type), String | FixedString)
        or not bound.value.is_valid
    ):
        raise errors.BadArguments(f"The arguments of {function} are constant texts.")
    # data in a binary format are no UTF-8, so that as_py() would fail
    data: bytes = bound.value.as_buffer().to_pybytes()
    return data.decode("utf-8", "surrogateescape")


def _file_scan(queries: QueryBinder, source: sql.TableFunction, texts: list[str]) -> plan.FileScan:
    """Return the scan of all columns of file().

    Raises NumberOfArgumentsDoesntMatch, CannotExtractTableStructure, CannotDetectFormat and
    FileDoesntExist."""
    if not 1 <= len(texts) <= 4:
        raise errors.NumberOfArgumentsDoesntMatch(
            "file takes a path, then perhaps a format, a structure and a compression."
        )
    path, named, structure, compression = [*texts, *["auto"] * (4 - len(texts))]
    settings = Settings.of(queries.scope.settings)
    paths = tuple(matching_files(path, settings))
    known = named.lower() != "auto"
    if not paths and (not known or structure.strip().lower() == "auto"):
        raise errors.CannotExtractTableStructure(
            f"No file matches {path!r}, so that nothing says the columns.",
            hint="Give the format and the structure: file('path', 'format', 'a UInt8, b String').",
        )
    chosen = find_format(named) if known else format_of_path(paths[0])
    if chosen is None:
        raise errors.CannotDetectFormat(
            f"The format of {path} is not known by its ending.",
            hint="Name it: file('path', 'CSV').",
        )
    if structure.strip().lower() != "auto":
        reader_of(chosen.name)
    if settings.boolean("engine_file_empty_if_not_exists") and structure.strip().lower() != "auto":
        paths = tuple(path for path in paths if os.path.isfile(path))
    for missing in (path for path in paths if not os.path.isfile(path)):
        kind = errors.CannotStat if structure.strip().lower() == "auto" else errors.FileDoesntExist
        raise kind(f"There is no file {missing}.")
    compression = "" if compression.lower() == "auto" else compression
    codec_of(compression)
    scan = plan.FileScan(chosen.name, (), (), (), paths, compression)
    return _with_structure(queries, scan, structure)


def _text_scan(queries: QueryBinder, source: sql.TableFunction, texts: list[str]) -> plan.FileScan:
    """Return the scan of all columns of format(). Raises NumberOfArgumentsDoesntMatch."""
    if not 2 <= len(texts) <= 3:
        raise errors.NumberOfArgumentsDoesntMatch(
            "format takes a format, perhaps a structure, and the data."
        )
    chosen = find_format(texts[0])
    if len(texts) == 3 and texts[1].strip().lower() != "auto":
        reader_of(chosen.name)
    data = texts[-1].encode("utf-8", "surrogateescape")
    scan = plan.FileScan(chosen.name, (), (), (), ("",), data=data)
    return _with_structure(queries, scan, texts[1] if len(texts) == 3 else "auto")


def _with_structure(queries: QueryBinder, scan: plan.FileScan, text: str) -> plan.FileScan:
    """Return the scan with the columns of a structure, or with those of the data for 'auto'."""
    if text.strip().lower() != "auto":
        columns = parse_structure(text, with_defaults=True)
        defaults = structure_defaults(text)
        read = ((n, _with_null(n, t) if n in defaults else t) for n, t in columns)
        return _scan_of(scan, tuple(read))
    return _scan_of(scan, _inferred(queries, scan))


def _scan_of(scan: plan.FileScan, structure: Structure) -> plan.FileScan:
    """Return the scan of data of this structure."""
    return plan.FileScan(scan.format, structure, (), (), scan.paths, scan.compression, scan.data)


def _inferred(queries: QueryBinder, scan: plan.FileScan) -> Structure:
    """Return the columns of the first file whose data have any.

    Raises the error of the last one if none has, BadArguments for a format that has no columns."""
    reader = find_format(scan.format).reader
    if reader is None or not reader.infers:
        raise errors.BadArguments(
            f"The data of format {scan.format} do not say their columns.",
            hint=f"Give the structure: format({scan.format}, 'a UInt8, b String', …).",
        )
    settings = Settings.of(queries.scope.settings)
    refused: errors.Error | None = None
    for path in scan.paths:
        stream = open_data(scan.format, path, scan.compression) if path else io.BytesIO(scan.data)
        with closing(stream), decoding(scan.format):
            try:
                source = Input(stream, settings, queries.scope.environment)
                return _hinted(_infer(reader, scan.format, source), settings)
            except errors.CannotExtractTableStructure as error:
                refused = error
    assert refused is not None
    raise refused


def _infer(reader: Reader, name: str, source: Input) -> Structure:
    """Return the columns of data. Raise CannotExtractTableStructure for data that are not of the
    format."""
    try:
        return reader.infer(source)
    except errors.CannotExtractTableStructure:
        raise
    except (errors.DataError, errors.BadArguments) as error:
        raise errors.CannotExtractTableStructure(
            f"The columns of the data of format {name} cannot be found: {error.message}",
            hint=error.hint,
        ) from None


def file_structure(texts: Sequence[str], settings: Settings, environment: Environment) -> Structure:
    """Return the columns of a file that exists, for an INSERT into `file(path[, format, …])`.

    Raises CannotStat if there is no such file."""
    path = matching_files(texts[0], settings)[0]
    named = len(texts) > 1 and texts[1].lower() != "auto"
    chosen = find_format(texts[1]) if named else format_of_path(path)
    if chosen is None or not os.path.isfile(path):
        raise errors.CannotStat(
            f"There is no file {path}, so that nothing says the columns.",
            hint="Give the structure: file('path', 'format', 'a UInt8, b String').",
        )
    stream = open_data(chosen.name, path, "")
    with closing(stream), decoding(chosen.name):
        structure = reader_of(chosen.name).infer(Input(stream, settings, environment))
        return _hinted(structure, settings)


def _hinted(structure: Structure, settings: Settings) -> Structure:
    """Return the columns with the names and the types of the settings column_names_for_schema_inference,
    schema_inference_hints and schema_inference_make_columns_nullable, where they say any."""
    given = settings.text("column_names_for_schema_inference")
    names = [name for name, _ in structure]
    if given.strip() and tuple(names) == numbered_names(len(names)):
        names = [name.strip() for name in given.split(",")]
        if len(names) != len(structure):
            raise errors.CannotExtractTableStructure(
                f"column_names_for_schema_inference has {len(names)} names for {len(structure)} columns."
            )
    kinds = [kind for _, kind in structure]
    if settings.text("schema_inference_make_columns_nullable") == "0":
        kinds = [_without_null(kind) for kind in kinds]
    hints = settings.text("schema_inference_hints")
    known = dict(parse_structure(hints)) if hints.strip() else {}
    return tuple((name, known.get(name, kind)) for name, kind in zip(names, kinds, strict=True))


def _without_null(data_type: DataType) -> DataType:
    """Return the type with no Nullable in it."""
    match data_type:
        case Nullable(inner):
            return _without_null(inner)
        case Array(inner):
            return Array(_without_null(inner))
        case Map(key, value):
            return Map(key, _without_null(value))
        case Tuple(elements=elements, names=names):
            return Tuple(tuple(map(_without_null, elements)), names)
        case _:
            return data_type


def _with_null(name: str, data_type: DataType) -> DataType:
    """Return the type in which a column with DEFAULT is read, where NULL stands for the default.

    Raises NotSupportedError for a type whose NULL is a value, or that has none."""
    if make_nullable(data_type) == data_type:
        raise errors.NotSupportedError(
            f"DEFAULT of column {name}, a {data_type}, in the structure of a table function is not supported.",
            hint="It is for types that are neither Nullable nor arrays, maps or tuples.",
        )
    return make_nullable(data_type)


class _FileRelation:
    """The relation of a scan of data: it reads the columns that the query uses, and computes the
    defaults of those that the data lack."""

    def __init__(
        self,
        queries: QueryBinder,
        scan: plan.FileScan,
        source: sql.TableFunction,
        binder: ExpressionBinder,
        defaults: Mapping[str, sql.Expression],
    ) -> None:
        self._queries, self._scan, self._source = queries, scan, source
        self._binder, self._defaults = binder, defaults
        self._columns: list[RelationColumn] = []
        self._read: list[tuple[str, str, DataType]] = []
        self._being_bound: set[str] = set()

    def relation(self, virtual: Structure) -> Relation:
        """Return the relation, with these further columns that `*` does not show."""
        qualifiers = ((self._source.alias or self._source.name,),)
        for name, data_type in (*self._scan.structure, *virtual):
            unique = self._queries.names.unique(name)
            self._read.append((unique, name, data_type))
            reference = ColumnRef(data_type, unique)
            shown = data_type
            make: Callable[[], Expression] = partial(_reference, reference)
            if name in self._defaults:
                shown = _plain_of(data_type)
                make = partial(self._value_or_default, name, shown, reference)
            starred = len(self._columns) < len(self._scan.structure)
            self._columns.append(RelationColumn(name, shown, make, qualifiers, starred=starred))
        return Relation(self._columns, self._build, f"{self._source.name}()")

    def _value_or_default(self, name: str, data_type: DataType, value: ColumnRef) -> Expression:
        """Return a column's value, or its DEFAULT, which may read other columns, where it is NULL.

        Raises CyclicAliases for a default that needs its own column."""
        if name in self._being_bound:
            raise errors.CyclicAliases(f"The DEFAULT of column {name} needs the column itself.")
        self._being_bound.add(name)
        relation = Relation(self._columns, self._build, f"{self._source.name}()")
        context = self._binder.context.nested()
        bound = ExpressionBinder(self._queries, relation, context).bind(self._defaults[name])
        self._being_bound.remove(name)
        environment = self._queries.scope.environment
        default = constants.cast(bound, data_type, environment)
        known = constants.call("ifNull", (value, default), environment)
        return constants.cast(known, data_type, environment)

    def _build(self) -> plan.Node:
        """Return a FileScan that reads the columns which the query has used."""
        scan = self._scan
        used = [r for r, c in zip(self._read, self._columns, strict=True) if c.used]
        return plan.FileScan(
            scan.format,
            scan.structure,
            tuple((unique, name) for unique, name, _ in used),
            tuple(data_type for _, _, data_type in used),
            scan.paths,
            scan.compression,
            scan.data,
        )


def _plain_of(data_type: DataType) -> DataType:
    """Return the type of `_with_null` without its NULL."""
    if isinstance(data_type, LowCardinality):
        return LowCardinality(_plain_of(data_type.inner))
    return data_type.inner if isinstance(data_type, Nullable) else data_type


def _reference(reference: ColumnRef) -> Expression:
    """Return a reference to a column of the scan."""
    return reference

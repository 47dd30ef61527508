"""structureToProtobufSchema and structureToCapnProtoSchema: the schema of a format for columns."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from olapdb import types
from olapdb.errors import BadArguments, IllegalColumn, IllegalTypeOfArgument, SyntaxError
from olapdb.functions import parse_type, scalar
from olapdb.functions.base import Argument, ScalarCall, Volatility
from olapdb.records import dataclass

_Columns = tuple[tuple[str, types.DataType], ...]
_INDENT = "    "
_PROTOBUF = {
    **dict.fromkeys(("UInt8", "UInt16", "UInt32", "Date", "DateTime", "IPv4"), "uint32"),
    **dict.fromkeys(("Int8", "Int16", "Int32", "Date32"), "int32"),
    "UInt64": "uint64",
    "DateTime64": "uint64",
    "Int64": "int64",
    "Float32": "float",
    "Float64": "double",
    "Bool": "bool",
    **dict.fromkeys(("String", "FixedString", "UUID", "IPv6", "Decimal"), "bytes"),
    **dict.fromkeys(("Int128", "UInt128", "Int256", "UInt256"), "bytes"),
}
_CAPN_PROTO = {
    **{name: name for name in ("UInt8", "UInt16", "UInt32", "UInt64")},
    **{name: name for name in ("Int8", "Int16", "Int32", "Int64", "Float32", "Float64", "Bool")},
    "Date": "UInt16",
    "DateTime": "UInt32",
    "IPv4": "UInt32",
    "Date32": "Int32",
    "DateTime64": "Int64",
    **dict.fromkeys(("String", "FixedString", "UUID", "IPv6", "Decimal"), "Data"),
    **dict.fromkeys(("Int128", "UInt128", "Int256", "UInt256"), "Data"),
}
_SMALL_DECIMALS = ((9, "Int32"), (18, "Int64"))
"""The digits that CapnProto's integers hold."""


def _bare(data_type: types.DataType) -> types.DataType:
    """Return the type without LowCardinality."""
    while isinstance(data_type, types.LowCardinality):
        data_type = data_type.inner
    return data_type


def _capital(name: str) -> str:
    """Return the text with its first letter in upper case: the name of a message or an enum."""
    return name[:1].upper() + name[1:]


def _small(name: str) -> str:
    """Return the text with its first letter in lower case: the name of a field."""
    return name[:1].lower() + name[1:]


def _nested(columns: _Columns, separators: str) -> _Columns:
    """Join columns with a common prefix, such as `a.b` and `a.c`, to one tuple `a`, placed after the other columns."""
    for separator in separators:
        plain_columns: list[tuple[str, types.DataType]] = []
        groups: dict[str, list[tuple[str, types.DataType]]] = {}
        for name, data_type in columns:
            prefix, separated, rest = name.partition(separator)
            if separated and prefix and rest:
                groups.setdefault(prefix, []).append((rest, data_type))
            else:
                plain_columns.append((name, data_type))
        for prefix, inner in groups.items():
            names, kinds = zip(*_nested(tuple(inner), separator), strict=True)
            plain_columns.append((prefix, types.Tuple(tuple(kinds), tuple(names))))
        columns = tuple(plain_columns)
    return columns


def _fields(data_type: types.Tuple) -> _Columns:
    """Return the elements of a tuple. Raise BadArguments if they have no names."""
    if not data_type.names:
        raise BadArguments("Names are specified not for all elements of Tuple type.")
    return tuple(zip(data_type.names, data_type.elements, strict=True))


def _flattened(columns: _Columns) -> Iterator[tuple[str, types.DataType]]:
    """Yield the columns, each Nested replaced by one array for each of its elements."""
    for name, data_type in columns:
        if isinstance(data_type, types.Nested):
            assert isinstance(data_type.inner, types.Tuple)
            for field, inner in _fields(data_type.inner):
                yield f"{name}.{field}", types.Array(inner)
        else:
            yield name, data_type


@dataclass(frozen=True)
class _Field:
    """A type in the schema language: its name, and the lines of the definitions that it needs."""

    type: str
    lines: tuple[str, ...] = ()
    repeated: bool = False


def _block(head: str, lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of a definition: the head, the indented lines in braces."""
    return (head, "{", *(_INDENT + line for line in lines), "}")


def _unsupported(data_type: types.DataType, schema: str) -> BadArguments:
    """Return the error that the schema language has no form of this type."""
    return BadArguments(
        f"Type {data_type} is not supported for conversion into {schema} schema.",
        hint="Convert the column to a String.",
    )


def _enum(name: str, data_type: types.Enum, line: Callable[[str, int], str]) -> _Field:
    """Return an enum definition; its texts are numbered from 0 in order of their Enum numbers."""
    texts = [text for text, _ in sorted(data_type.elements, key=lambda element: element[1])]
    lines = [line(text, number) for number, text in enumerate(texts)]
    return _Field(_capital(name), _block(f"enum {_capital(name)}", lines))


def _protobuf(name: str, data_type: types.DataType) -> _Field:
    """Return the Protobuf type of a field. Raises BadArguments for types without one."""
    data_type = _bare(data_type)
    match data_type:
        case types.Nullable(inner):
            return _protobuf(name, inner)
        case types.Array(inner):
            element = _protobuf(name, inner)
            if element.repeated or isinstance(_bare(inner), types.Map):
                return _Field(_capital(name), _message(_capital(name), ((name, inner),)), True)
            return _Field(element.type, element.lines, True)
        case types.Map(key, value):
            of_key, of_value = _protobuf(name, key), _protobuf(name, value)
            if of_key.type == "bytes":
                of_key = _Field("string")
            wraps = of_value.repeated or isinstance(_bare(value), types.Map)
            if wraps:
                inner_name = _capital(name) + "Value"
                of_value = _Field(inner_name, _message(inner_name, ((name + "Value", value),)))
            return _Field(f"map<{of_key.type}, {of_value.type}>", of_value.lines)
        case types.Tuple():
            return _Field(_capital(name), _message(_capital(name), _fields(data_type)))
        case types.Enum():
            return _enum(name, data_type, lambda text, number: f"{text} = {number};")
    type_name = _PROTOBUF.get(data_type.name.partition("(")[0])
    if type_name is None:
        raise _unsupported(data_type, "Protobuf")
    return _Field(type_name)


def _message(name: str, columns: _Columns) -> tuple[str, ...]:
    """Return the lines of a Protobuf message of the columns."""
    lines: list[str] = []
    for number, (column, data_type) in enumerate(columns, 1):
        field = _protobuf(column, data_type)
        repeated = "repeated " if field.repeated else ""
        lines.extend(field.lines)
        lines.append(f"{repeated}{field.type} {_small(column)} = {number};")
    return _block(f"message {name}", lines)


def _capn_proto(name: str, data_type: types.DataType) -> _Field:
    """Return the CapnProto type of a field. Raises BadArguments for types without one."""
    data_type = _bare(data_type)
    match data_type:
        case types.Nullable(inner):
            field = _capn_proto("value", inner)
            union = _block("union", [f"value @0 : {field.type};", "null @1 : Void;"])
            lines = _block(f"struct {_capital(name)}", [*field.lines, *union])
            return _Field(_capital(name), lines)
        case types.Array(inner):
            element = _capn_proto(name, inner)
            return _Field(f"List({element.type})", element.lines)
        case types.Map(key, value):
            entry = _struct("Entry", (("key", key), ("value", value)))
            lines = _block(f"struct {_capital(name)}", [*entry, "entries @0 : List(Entry);"])
            return _Field(_capital(name), lines)
        case types.Tuple():
            return _Field(_capital(name), _struct(_capital(name), _fields(data_type)))
        case types.Enum():
            return _enum(name, data_type, lambda text, number: f"{text} @{number};")
        case types.Decimal(precision=precision) if not isinstance(data_type, types.WideNumber):
            narrow = (kind for digits, kind in _SMALL_DECIMALS if precision <= digits)
            return _Field(next(narrow, "Data"))
    type_name = _CAPN_PROTO.get(data_type.name.partition("(")[0])
    if type_name is None:
        raise _unsupported(data_type, "CapnProto")
    return _Field(type_name)


def _struct(name: str, columns: _Columns) -> tuple[str, ...]:
    """Return the lines of a CapnProto struct of the columns; definitions stand before the fields that use them."""

    def lines() -> Iterator[str]:
        """Yield the definitions and the field of each column."""
        for number, (column, data_type) in enumerate(columns):
            field = _capn_proto(column, data_type)
            yield from field.lines
            yield f"{_small(column)} @{number} : {field.type};"

    body = list(lines())
    if name == "Entry":  # what the fields need comes before both of them
        own = [line for line in body if " @" in line and not line.startswith(_INDENT)]
        body = [line for line in body if line not in own] + own
    return _block(f"struct {name}", body)


def _protobuf_schema(columns: _Columns, message: str) -> str:
    """Return the Protobuf schema of the columns, as text."""
    lines = _message(_capital(message), _nested(columns, "."))
    return "\n".join(('syntax = "proto3";', "", *lines, ""))


def _capn_proto_schema(columns: _Columns, message: str) -> str:
    """Return the CapnProto schema of the columns, as text. Its 64-bit file identifier is random, with the highest bit
    set."""
    identifier = secrets.randbits(64) | 1 << 63
    lines = _struct(_capital(message), _nested(columns, "_."))
    return "\n".join((f"@0x{identifier:x};", "", *lines, ""))


def _text(name: str, argument: Argument, which: str) -> str:
    """Return the value of an argument that must be a constant text; `which` names it in errors. Raises
    IllegalTypeOfArgument and IllegalColumn."""
    if not isinstance(types.plain(argument.type), types.String):
        raise IllegalTypeOfArgument(
            f"Illegal type {argument.type} of the {which} argument of function {name}, expected"
            " constant string."
        )
    if argument.constant is None:
        raise IllegalColumn(f"The {which} argument of function {name} must be constant.")
    return str(argument.constant.as_py())


def _resolver(write: Callable[[_Columns, str], str]) -> scalar.Resolver:
    """Return the resolver of a function that writes a schema."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call, whose arguments are constants. Raises BadArguments."""
        structure = _text(name, arguments[0], "first")
        if not structure.strip():
            raise SyntaxError("Empty query (columns declaration list).")
        message = _text(name, arguments[1], "second") if len(arguments) > 1 else "Message"
        parsed = parse_type(f"Tuple({structure})")
        assert isinstance(parsed, types.Tuple)
        fields = tuple(_flattened(_fields(parsed)))
        schema = pa.scalar(write(fields, message), types.STRING.arrow)
        volatility: Volatility = "query" if write is _capn_proto_schema else "pure"
        return ScalarCall(name, types.STRING, lambda values, rows, environment: schema, volatility)

    return resolve


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("structureToProtobufSchema", _resolver(_protobuf_schema), count=(1, 2)),
    scalar.custom("structureToCapnProtoSchema", _resolver(_capn_proto_schema), count=(1, 2)),
)

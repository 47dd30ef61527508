"""Paths into values of Dynamic and JSON: `j.a.b`, `j.^a`, `j.@a`, `j.a.:Int64`, `d.Int64`, `j.a[].b`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from olapdb import types
from olapdb.bind import constants
from olapdb.bind.contracts import Binder
from olapdb.errors import UnknownType
from olapdb.functions.base import ScalarCall
from olapdb.lazy import LazyModule
from olapdb.plan.expressions import Call, Expression
from olapdb.sql.json_steps import read_json_step

if TYPE_CHECKING:
    from olapdb.functions.dynamic import calls, parts, stored
else:
    calls = LazyModule("olapdb.functions.dynamic.calls")
    parts = LazyModule("olapdb.functions.dynamic.parts")
    stored = LazyModule("olapdb.functions.dynamic.stored")


def path_part(
    binder: Binder, value: Expression, names: Sequence[str], origin: types.Json | None
) -> tuple[Expression, Sequence[str], types.Json | None] | None:
    """Return (part, names left, origin): the part of a JSON or a Dynamic that the first names take, the names that are
    left, and the JSON that the part belongs to. `origin` is the JSON that the value belongs to. None if the names take
    no part."""
    inner = _innermost(value.type)
    if isinstance(inner, types.Json):
        return _part_of_json(value, inner, names)
    step = read_json_step(names[0])
    if isinstance(inner, types.Dynamic):
        wanted = step[1] if step is not None and step[0] == ":" else names[0]
        part = _of_type(binder, value, wanted, origin)
        return None if part is None else (part, names[1:], origin)
    if step is not None and step[0] == ":" and types.plain(inner).name == step[1]:
        return value, names[1:], origin  # the type that the path has anyway
    return None


def _innermost(data_type: types.DataType) -> types.DataType:
    """Return the plain type of the innermost elements of arrays; a type that is no array as it is."""
    while isinstance(data_type, types.Array):
        data_type = data_type.inner
    return types.plain(data_type)


def _part_of_json(
    value: Expression, kind: types.Json, names: Sequence[str]
) -> tuple[Expression, Sequence[str], types.Json | None] | None:
    """Return the value at the path that the names begin with, or the object below it."""
    step = read_json_step(names[0])
    if step is not None and step[0] == ":":
        return None
    count = 1
    while count < len(names) and read_json_step(names[count]) is None:
        count += 1
    if step is not None:
        path = ".".join((step[1], *names[1:count]))
        if step[0] == "@":
            call = calls.member_call("_jsonMember", value.type, path)
            return _call(value, "_jsonMember", path, call), names[count:], kind
        return (
            _call(value, "_jsonObject", path, parts.object_call(value.type, path)),
            names[count:],
            None,
        )
    typed = dict(kind.typed)
    for size in range(1, count):
        if ".".join(names[:size]) in typed:
            count = size
            break
    path = ".".join(names[:count])
    part = _call(value, "_jsonValue", path, parts.value_call(value.type, path))
    return part, names[count:], kind


def _call(value: Expression, name: str, path: str, call: ScalarCall) -> Expression:
    """Return the call that takes a part of a value."""
    return Call(call.type, name, (value, constants.string(path)), call)


def _of_type(
    binder: Binder, value: Expression, name: str, origin: types.Json | None
) -> Expression | None:
    """Return the values of one type of a Dynamic; None if there is no type of that name.

    Objects in an array at a path of `origin` have the type that it gives them."""
    try:
        wanted = stored.type_named(name)
    except UnknownType:
        return None
    if origin is not None:
        wanted = _nested(wanted, origin)
    return binder.call("dynamicElement", (value, constants.string(wanted.name)))


def _nested(data_type: types.DataType, origin: types.Json) -> types.DataType:
    """Return the type with the JSON in arrays as that of a path of `origin` has it."""
    match data_type:
        case types.Array(types.Json() as inner) if inner == types.Json():
            return types.Array(origin.nested)
        case types.Array(types.Nullable(types.Json() as inner)) if inner == types.Json():
            return types.Array(types.Nullable(origin.nested))
        case types.Array(inner):
            return types.Array(_nested(inner, origin))
        case _:
            return data_type

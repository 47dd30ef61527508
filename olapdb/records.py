"""`dataclass` of the standard library, with methods that are compiled when they are first called.

    from dataclasses import field, replace

    from olapdb.records import dataclass

    @dataclass(frozen=True, slots=True)
    class Limit:
        rows: int

The standard library compiles up to six methods of each class when its module is imported.  The engine
has hundreds of such classes, and a process calls few of their methods.  Here a class gets stand-ins:
one compiles its method, and puts it into the class, when it is first asked for.  Later calls are as
fast as usual.

All else is the same: `fields`, `replace`, `asdict`, patterns, pickles, copies and signatures.  Type
checkers see `dataclasses.dataclass`.  One thing is left out: a class without a docstring gets none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

_FIELDS = "__dataclass_fields__"
_PARAMETERS = "__dataclass_params__"
_IS_FIELD: object = vars(dataclasses)["_FIELD"]
_IS_CLASS_VARIABLE: object = vars(dataclasses)["_FIELD_CLASSVAR"]

_Fields = dict[str, Any]
"""`Field`s by name, whose `_field_type` type checkers do not know."""


class _Parameters:
    """What the standard library asks of a dataclass that another one inherits from."""

    __slots__ = ("frozen",)

    def __init__(self, frozen: bool) -> None:
        self.frozen = frozen


_FROZEN, _MUTABLE = _Parameters(True), _Parameters(False)


class _Factory:
    """What signatures show as the default of a field that has a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Factory()


class _Method:
    """A stand-in for a method of a class. It compiles the method and takes its place at first use."""

    __slots__ = ("_make", "_name", "_owner")

    def __init__(self, make: Callable[[type], Any]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> object:
        function = self._make(self._owner)
        function.__name__, function.__module__ = self._name, self._owner.__module__
        function.__qualname__ = f"{self._owner.__qualname__}.{self._name}"
        setattr(self._owner, self._name, function)
        return function.__get__(instance, owner)


def lazy_dataclass(
    cls: type | None = None,
    /,
    *,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    kw_only: bool = False,
    **others: bool,
) -> Any:
    """Make a class a dataclass. With one of the `others` the standard library does it as usual."""
    if others:
        return dataclasses.dataclass(
            cls, frozen=frozen, slots=slots, eq=eq, kw_only=kw_only, **others
        )

    def decorate(cls: type) -> type:
        fields = _inherited_fields(cls, frozen)
        for name, annotation in cls.__annotations__.items():
            fields[name] = _field(cls, name, annotation, kw_only)
        members = _members(fields, frozen, slots, eq)
        for name in cls.__dict__.keys() & members.keys():
            if name in _UNREPLACED:
                raise TypeError(f"{cls.__qualname__} is frozen and defines {name}")
            if name != "__hash__" or cls.__dict__[name] is not None:
                del members[name]
        return _with_slots(cls, members) if slots else _with_members(cls, members)

    return decorate if cls is None else decorate(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = lazy_dataclass


def _inherited_fields(cls: type, frozen: bool) -> _Fields:
    """Return the fields of the base classes, which must be frozen too, or none of them."""
    inherited: _Fields = {}
    for base in reversed(cls.__mro__[1:-1]):
        fields = base.__dict__.get(_FIELDS)
        if fields is not None:
            if getattr(base, _PARAMETERS).frozen is not frozen:
                raise TypeError(f"{cls.__qualname__} and {base.__qualname__}: only one is frozen")
            inherited.update(fields)
    return inherited


def _field(cls: type, name: str, annotation: object, kw_only: bool) -> Any:
    """Return the field of an annotation. The class keeps the default of a `field(…)` in its place."""
    default = getattr(cls, name, MISSING)
    made: Any
    if isinstance(default, Field):
        made = default
        if made.default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, made.default)
    else:
        made = field(default=MISSING if isinstance(default, MemberDescriptorType) else default)
    text = annotation if isinstance(annotation, str) else str(annotation)
    if "InitVar" in text or "KW_ONLY" in text:
        raise TypeError(f"{cls.__qualname__}.{name}: use dataclasses.dataclass for {text}")
    if type(made.default).__hash__ is None:
        raise ValueError(f"{cls.__qualname__}.{name}: use field(default_factory=…) for its default")
    made.name, made.type = name, annotation
    is_class_variable = text.startswith(("ClassVar", "typing.ClassVar"))
    made._field_type = _IS_CLASS_VARIABLE if is_class_variable else _IS_FIELD
    if made.kw_only is MISSING:
        made.kw_only = kw_only
    return made


def _members(fields: _Fields, frozen: bool, slots: bool, eq: bool) -> dict[str, Any]:
    """Return what a dataclass has and its class statement does not say, by name."""
    positional = (f.name for f in _real(fields) if f.init and not f.kw_only)
    members: dict[str, Any] = {
        _FIELDS: fields,
        _PARAMETERS: _FROZEN if frozen else _MUTABLE,
        "__match_args__": tuple(positional),
        "__init__": _Method(_init),
        "__repr__": _Method(_repr),
    }
    if eq:
        members["__eq__"] = _Method(_eq)
        members["__hash__"] = _Method(_hash) if frozen else None
    if frozen:
        members["__setattr__"] = _Method(_setattr)
        members["__delattr__"] = _Method(_delattr)
        if slots:
            members["__getstate__"], members["__setstate__"] = _getstate, _setstate
    return members


_UNREPLACED = ("__setattr__", "__delattr__")


def _with_members(cls: type, members: dict[str, Any]) -> type:
    for name, member in members.items():
        setattr(cls, name, member)
        if isinstance(member, _Method):
            member.__set_name__(cls, name)
    return cls


def _with_slots(cls: type, members: dict[str, Any]) -> type:
    """Return the class made anew: slots cannot be added to one."""
    if "__slots__" in cls.__dict__:
        raise TypeError(f"{cls.__qualname__} has __slots__ already")
    namespace = {**cls.__dict__, **members}
    inherited = {name for base in cls.__mro__[1:-1] for name in base.__dict__.get("__slots__", ())}
    names = [f.name for f in _real(members[_FIELDS])]
    for name in (*names, "__dict__", "__weakref__"):
        namespace.pop(name, None)
    namespace["__slots__"] = tuple(name for name in names if name not in inherited)
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made


def _real(fields: _Fields) -> list[Any]:
    """Return the fields without the class variables."""
    return [f for f in fields.values() if f._field_type is _IS_FIELD]


def _fields_of(cls: type) -> list[Any]:
    return _real(getattr(cls, _FIELDS))


def _compiled(name: str, text: str, scope: dict[str, object]) -> Any:
    exec(text, scope)
    return scope.pop(name)


def _init(cls: type) -> Any:
    """Compile `__init__`: the parameters are the fields, those by name only last."""
    frozen: bool = getattr(cls, _PARAMETERS).frozen
    scope: dict[str, object] = {"_set": object.__setattr__, "_unset": _UNSET}
    parameters: list[str] = []
    keywords: list[str] = []
    lines: list[str] = []
    for f in _fields_of(cls):
        slot: Any = getattr(cls, f.name, None)
        has_slot = isinstance(slot, MemberDescriptorType)
        parameter = value = f.name
        if f.default_factory is not MISSING:
            scope[f"_default_{f.name}"] = f.default_factory
            parameter = f"{f.name}=_unset"
            value = f"_default_{f.name}()"
            if f.init:
                value += f" if {f.name} is _unset else {f.name}"
        elif f.default is not MISSING:
            scope[f"_default_{f.name}"] = f.default
            parameter = f"{f.name}=_default_{f.name}"
            if not f.init:
                value = f"_default_{f.name}"
        if f.init:
            (keywords if f.kw_only else parameters).append(parameter)
        elif value == f.name or (f.default is not MISSING and not has_slot):
            continue  # `__post_init__` sets it, or the class has its default.
        if not frozen:
            lines.append(f"self.{f.name} = {value}")
        elif has_slot:
            scope[f"_set_{f.name}"] = slot.__set__
            lines.append(f"_set_{f.name}(self, {value})")
        else:
            lines.append(f"_set(self, {f.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    listed = ", ".join(["self", *parameters, *(["*"] if keywords else ()), *keywords])
    body = "\n ".join(lines or ["pass"])
    function = _compiled("__init__", f"def __init__({listed}):\n {body}", scope)
    function.__annotations__ = {f.name: f.type for f in _fields_of(cls) if f.init}
    function.__annotations__["return"] = None
    return function


def _values(self: str, names: Iterable[str]) -> str:
    return "(" + "".join(f"{self}.{name}, " for name in names) + ")"


def _eq(cls: type) -> Any:
    names = [f.name for f in _fields_of(cls) if f.compare]
    text = f"""
def __eq__(self, other):
 if other.__class__ is self.__class__:
  return {_values("self", names)} == {_values("other", names)}
 return NotImplemented"""
    return _compiled("__eq__", text, {})


def _hash(cls: type) -> Any:
    names = [f.name for f in _fields_of(cls) if (f.compare if f.hash is None else f.hash)]
    text = f"def __hash__(self): return hash({_values('self', names)})"
    return _compiled("__hash__", text, {})


def _repr(cls: type) -> Any:
    values = ", ".join(f"{f.name}={{self.{f.name}!r}}" for f in _fields_of(cls) if f.repr)
    text = f'def __repr__(self): return f"{{self.__class__.__qualname__}}({values})"'
    return recursive_repr()(_compiled("__repr__", text, {}))


def _setattr(cls: Any) -> Any:
    names = {f.name for f in _fields_of(cls)}

    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    return __setattr__


def _delattr(cls: Any) -> Any:
    names = {f.name for f in _fields_of(cls)}

    def __delattr__(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __delattr__


def _getstate(self: Any) -> list[object]:
    return [getattr(self, f.name) for f in _fields_of(type(self))]


def _setstate(self: object, state: list[object]) -> None:
    for f, value in zip(_fields_of(type(self)), state):
        object.__setattr__(self, f.name, value)

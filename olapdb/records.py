"""`dataclass` of the standard library, with methods that are compiled when they have been called a few times.

    from dataclasses import field, replace

    from olapdb.records import dataclass

    @dataclass(frozen=True, slots=True)
    class Limit:
        rows: int

The standard library compiles up to six methods of each class when its module is imported.  The engine
has hundreds of such classes, and a process calls few of their methods.  Here a class gets stand-ins:
one does the work of its method for a few calls, then compiles it and puts it into the class.  Later calls are as
fast as usual.

All else is the same: `fields`, `replace`, `asdict`, patterns, pickles, copies and signatures.  Type
checkers see `dataclasses.dataclass`.  One thing is left out: a class without a docstring gets none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, field
from functools import cache, partial
from operator import attrgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any

_FIELDS = "__dataclass_fields__"
_PARAMETERS = "__dataclass_params__"
_IS_FIELD: object = vars(dataclasses)["_FIELD"]
_IS_CLASS_VARIABLE: object = vars(dataclasses)["_FIELD_CLASSVAR"]
_REPLACE: object = vars(dataclasses).get("_replace")
"""What `copy.replace` calls, from Python 3.13 on."""

_Fields = dict[str, Any]
"""`Field`s by name, whose `_field_type` type checkers do not know."""


class _Parameters:
    """The parameters of a dataclass. The standard library reads `frozen` of each base class."""

    __slots__ = ("frozen",)

    def __init__(self, frozen: bool) -> None:
        self.frozen = frozen


_FROZEN, _MUTABLE = _Parameters(True), _Parameters(False)


class _Factory:
    """A default that signatures show as <factory>, of a field that has a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Factory()


_FIRST_INIT_CALLS = 12
_FIRST_COMPARISONS = 48
"""Calls of `__init__`, and of `__eq__` or `__hash__`, that do without compiled code: compiling costs more than these
together, and most classes have few objects when a process ends or has answered its first query."""


class _Method:
    """A stand-in for a method of a class. It compiles the method and takes its place, at the first use of a method
    without a form `first`, else after a few calls of that."""

    __slots__ = ("_calls", "_first", "_make", "_name", "_owner", "facts")

    def __init__(
        self,
        make: Callable[[type], Any],
        first: Callable[..., Any] | None = None,
        first_calls: int = 0,
    ) -> None:
        self._make, self._first, self._calls = make, first, first_calls
        self.facts: Any = None
        """The facts about the class that `first` found at its first call: a reader of fields, or `_InitFacts`; None
        before."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> object:
        if instance is not None and self._first is not None and self._calls > 0:
            self._calls -= 1  # a decrement that is lost to a race does no harm
            return partial(self._first, self, instance)
        function = self.compiled()
        setattr(self._owner, self._name, function)
        return function.__get__(instance, owner)

    def compiled(self) -> Any:
        """Return the compiled method of the class."""
        function = self._make(self._owner)
        function.__name__, function.__module__ = self._name, self._owner.__module__
        function.__qualname__ = f"{self._owner.__qualname__}.{self._name}"
        return function

    @property
    def owner(self) -> Any:
        """The class that has the method."""
        return self._owner


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
    """Return the attributes that the decorator adds to a dataclass, by name: fields, and methods that are compiled at the
    first call."""
    positional = (f.name for f in _real(fields) if f.init and not f.kw_only)
    members: dict[str, Any] = {
        _FIELDS: fields,
        _PARAMETERS: _FROZEN if frozen else _MUTABLE,
        "__match_args__": tuple(positional),
        "__init__": _Method(_init, _first_init, _FIRST_INIT_CALLS),
        "__repr__": _Method(_repr),
    }
    if _REPLACE is not None:
        members["__replace__"] = _REPLACE
    if eq:
        members["__eq__"] = _Method(_eq, _first_eq, _FIRST_COMPARISONS)
        members["__hash__"] = _Method(_hash, _first_hash, _FIRST_COMPARISONS) if frozen else None
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


@cache
def _code(text: str) -> CodeType:
    """Return the code of a function. Its text has `f0`, `f1` and so on for the names of fields, so that classes of one
    shape share it."""
    scope: dict[str, Any] = {}
    # exec() of a text, but not of code, makes CPython forget that Ctrl-C ended the process: its status would be 1.
    exec(compile(text, "<string>", "exec"), scope)
    (function,) = (value for name, value in scope.items() if name != "__builtins__")
    code: CodeType = function.__code__
    return code


def _function(
    text: str, names: Sequence[str], scope: dict[str, object], defaults: Sequence[object] = ()
) -> Any:
    """Return the function of a text with the names of fields in it."""
    code = _code(text)
    named = {f"f{at}": name for at, name in enumerate(names)}
    code = code.replace(
        co_varnames=tuple(named.get(name, name) for name in code.co_varnames),
        co_names=tuple(named.get(name, name) for name in code.co_names),
    )
    return FunctionType(code, scope, argdefs=tuple(defaults))


def _init(cls: type) -> Any:
    """Compile `__init__`: the parameters are the fields, those by name only last."""
    frozen: bool = getattr(cls, _PARAMETERS).frozen
    fields = _fields_of(cls)
    scope: dict[str, object] = {"_set": object.__setattr__, "_unset": _UNSET}
    parameters: list[str] = []
    keywords: list[str] = []
    defaults: list[object] = []
    keyword_defaults: dict[str, object] = {}
    lines: list[str] = []
    for at, f in enumerate(fields):
        slot: Any = getattr(cls, f.name, None)
        has_slot = isinstance(slot, MemberDescriptorType)
        has_factory = f.default_factory is not MISSING
        has_default = has_factory or f.default is not MISSING
        default = _UNSET if has_factory else f.default
        scope[f"_default{at}"] = f.default_factory if has_factory else default
        made = f"_default{at}()" if has_factory else f"_default{at}"
        value = f"{made} if f{at} is _unset else f{at}" if has_factory else f"f{at}"
        if f.init:
            listed = keywords if f.kw_only else parameters
            # Defaults belong to the function, not to its code, which more classes share without them.
            listed.append(f"f{at}")
            if has_default and f.kw_only:
                keyword_defaults[f.name] = default
            elif has_default:
                defaults.append(default)
            elif defaults and not f.kw_only:
                raise TypeError(f"{cls.__qualname__}: {f.name} has no default, but follows one")
        elif has_factory or (has_default and has_slot):
            value = made
        else:
            continue  # `__post_init__` sets it, or the class has its default.
        if not frozen:
            lines.append(f"self.f{at} = {value}")
        elif has_slot:
            scope[f"_set{at}"] = slot.__set__
            lines.append(f"_set{at}(self, {value})")
        else:
            scope[f"_name{at}"] = f.name
            lines.append(f"_set(self, _name{at}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    signature = ", ".join(["self", *parameters, *(["*"] if keywords else ()), *keywords])
    body = "\n ".join(lines or ["pass"])
    names = [f.name for f in fields]
    function = _function(f"def __init__({signature}):\n {body}", names, scope, defaults)
    function.__kwdefaults__ = keyword_defaults or None
    function.__annotations__ = {f.name: f.type for f in fields if f.init}
    function.__annotations__["return"] = None
    return function


class _InitFacts:
    """The facts about a class by which `_first_init` sets its fields, collected once.

    `defaults` has what each field is set to without an argument: MISSING for the `required` ones, `_UNSET` for those
    that have one of the `factories`. `is_plain`: arguments of all positional fields set all fields."""

    __slots__ = (
        *("defaults", "factories", "has_more", "is_plain", "names", "positional", "put"),
        "required",
    )

    def __init__(self, cls: Any) -> None:
        self.positional: tuple[str, ...] = cls.__match_args__
        self.defaults: dict[str, object] = {}
        self.factories: list[tuple[str, Callable[[], object]]] = []
        self.names: set[str] = set()
        self.required: set[str] = set()
        for f in _fields_of(cls):
            if f.init:
                self.names.add(f.name)
            if f.default_factory is not MISSING:
                self.factories.append((f.name, f.default_factory))
                self.defaults[f.name] = _UNSET
            elif f.init:
                self.defaults[f.name] = f.default
                if f.default is MISSING:
                    self.required.add(f.name)
            elif f.default is not MISSING and isinstance(
                getattr(cls, f.name, None), MemberDescriptorType
            ):
                self.defaults[f.name] = f.default
        self.put = object.__setattr__ if getattr(cls, _PARAMETERS).frozen else setattr
        self.has_more = hasattr(cls, "__post_init__")
        self.is_plain = not self.factories and self.defaults.keys() == set(self.positional)


def _first_init(method: _Method, self: Any, /, *arguments: object, **named: object) -> None:
    """Do what the compiled `__init__` does; that says what is wrong with arguments."""
    facts = method.facts
    if facts is None:
        facts = method.facts = _InitFacts(method.owner)
    put = facts.put
    if facts.is_plain and not named and len(arguments) == len(facts.positional):
        for name, value in zip(facts.positional, arguments):
            put(self, name, value)
        if facts.has_more:
            self.__post_init__()
        return
    given = dict(zip(facts.positional, arguments))
    is_usual = len(arguments) <= len(facts.positional) and given.keys().isdisjoint(named)
    given.update(named)
    if not (is_usual and facts.required <= given.keys() <= facts.names):
        method.compiled()(self, *arguments, **named)
        return
    values = facts.defaults | given
    for name, make in facts.factories:
        if values[name] is _UNSET:
            values[name] = make()
    for name, value in values.items():
        put(self, name, value)
    if facts.has_more:
        self.__post_init__()


def _first_eq(method: _Method, self: object, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    read = method.facts
    if read is None:
        read = method.facts = _reader([f.name for f in _fields_of(method.owner) if f.compare])
    return read(self) == read(other)


def _first_hash(method: _Method, self: object) -> int:
    read = method.facts
    if read is None:
        read = method.facts = _reader(_hashed(method.owner))
    return hash(read(self))


def _reader(names: Sequence[str]) -> Callable[[object], object]:
    """Return a function that reads fields of an object as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple([getattr(record, name) for name in names])


def _hashed(cls: type) -> list[str]:
    """Return the names of the fields that a hash is made of."""
    return [f.name for f in _fields_of(cls) if (f.compare if f.hash is None else f.hash)]


def _values(self: str, names: Sequence[str]) -> str:
    return "(" + "".join(f"{self}.f{at}, " for at in range(len(names))) + ")"


def _eq(cls: type) -> Any:
    names = [f.name for f in _fields_of(cls) if f.compare]
    text = f"""
def __eq__(self, other):
 if other.__class__ is self.__class__:
  return {_values("self", names)} == {_values("other", names)}
 return NotImplemented"""
    return _function(text, names, {})


def _hash(cls: type) -> Any:
    names = _hashed(cls)
    return _function(f"def __hash__(self): return hash({_values('self', names)})", names, {})


def _repr(cls: type) -> Any:
    values = ", ".join(f"{f.name}={{self.{f.name}!r}}" for f in _fields_of(cls) if f.repr)
    text = f'def __repr__(self): return f"{{self.__class__.__qualname__}}({values})"'
    return recursive_repr()(FunctionType(_code.__wrapped__(text), {}))


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

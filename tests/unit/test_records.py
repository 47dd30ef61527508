"""Dataclasses whose methods are compiled after their first calls behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import pytest

from olapdb.records import dataclass, lazy_dataclass

pytestmark = pytest.mark.feature("house")

Decorator = Callable[..., Any]


def classes(dataclass: Decorator, **options: bool) -> tuple[Any, Any]:
    """Return a base class and one that inherits from it, made by the decorator."""

    @dataclass(**options)
    class Base:
        """A base."""

        a: int
        b: str = "b"
        count: ClassVar[int] = 7

    @dataclass(**options)
    class Derived(Base):
        """One with every kind of field."""

        b: str = "other"
        c: list[int] = field(default_factory=list)
        hidden: int = field(default=3, repr=False, compare=False)
        named: float = field(default=0.5, kw_only=True)
        later: dict[str, int] = field(default_factory=dict, init=False)
        fixed: int = field(default=9, init=False)
        unhashed: int = field(default=1, hash=False)

    return Base, Derived


OPTIONS: list[dict[str, bool]] = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"eq": False},
    {"frozen": True, "kw_only": True},
    {"order": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_values_equal_those_of_the_standard_library(options: dict[str, bool]) -> None:
    facts = []
    for decorator in (dataclasses.dataclass, lazy_dataclass):
        base, derived = classes(decorator, **options)
        plain = base(a=1)
        full = derived(a=1, b="x", c=[2], named=1.5, hidden=5)
        facts.append(
            (
                [(f.name, f.type, f.init, f.repr, f.kw_only) for f in dataclasses.fields(derived)],
                dataclasses.asdict(full),
                dataclasses.astuple(plain),
                repr(full),
                str(inspect.signature(derived)),
                derived.__match_args__,
                base.count,
                plain == base(a=1),
                plain == base(a=2),
                plain == 1,
                full == derived(a=1, b="x", c=[2], named=1.5),
                dataclasses.asdict(dataclasses.replace(plain, b="y")),
                dataclasses.asdict(copy.deepcopy(full)),
                full.later is derived(a=1).later,
                hasattr(plain, "__dict__"),
                derived.__init__.__qualname__,
                dataclasses.is_dataclass(full),
            )
        )
    assert facts[0] == facts[1]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_first_calls_and_later_ones_do_the_same(options: dict[str, bool]) -> None:
    """A method is compiled after some calls: those before it behave as the compiled one does."""
    seen = []
    for decorator in (dataclasses.dataclass, lazy_dataclass):
        base, derived = classes(decorator, **options)
        calls: list[Callable[[], Any]] = [
            lambda derived=derived: derived(a=1, b="x", c=[2], named=1.5, hidden=5),
            lambda derived=derived: derived(a=1),
            lambda derived=derived: derived(a=1) == derived(a=1, hidden=9),
            lambda derived=derived: derived(a=1) == derived(a=2),
            lambda derived=derived, base=base: derived(a=1) == base(a=1),
            lambda base=base: hash(base(a=1)) if options.get("frozen") else None,
            lambda base=base: base(),
            lambda base=base: base(1, 2, 3),
            lambda base=base: base(a=1, z=2),
            lambda base=base: base(1, a=1),
            lambda derived=derived: derived(a=1, later={}),
        ]
        answers: list[list[object]] = []
        for _ in range(12):
            answers.append([])
            for call in calls:
                try:
                    answers[-1].append(repr(call()))
                except TypeError as error:
                    answers[-1].append(str(error))
        assert all(answer == answers[0] for answer in answers)
        seen.append(answers[0])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("slots", [False, True])
def test_frozen_values_hash_by_their_fields_and_refuse_changes(slots: bool) -> None:
    for decorator in (dataclasses.dataclass, lazy_dataclass):
        base, _ = classes(decorator, frozen=True, slots=slots)
        value = base(a=1)
        assert hash(value) == hash(base(a=1)) == hash((1, "b"))
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
            value.a = 2
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'a'"):
            del value.a
        assert value.a == 1


def test_a_class_that_can_change_has_no_hash() -> None:
    base, _ = classes(lazy_dataclass)
    with pytest.raises(TypeError, match="unhashable"):
        hash(base(a=1))


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")


@dataclass(frozen=True)
class Named(Exception):
    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named)


def test_pickles_copies_and_patterns() -> None:
    point = Point(1, 2)
    assert pickle.loads(pickle.dumps(point)) == copy.copy(point) == point
    replaced = getattr(copy, "replace", dataclasses.replace)  # in Python 3.13 and later
    assert replaced(point, x=5) == Point(5, 2)
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_a_class_keeps_the_methods_that_it_defines() -> None:
    with pytest.raises(ValueError, match="x is negative"):
        Point(-1)
    assert repr(Named("a")) == "<a>"
    assert Named("a") == Named("b")
    assert hash(Named("a")) == hash(("a",))


def test_a_method_is_compiled_once_for_a_class_and_those_that_inherit_it() -> None:
    base, derived = classes(lazy_dataclass, frozen=True)
    assert base.__eq__ is base.__eq__
    assert base.__init__ is not derived.__init__
    with pytest.raises(TypeError, match=r"Base.__init__\(\) missing 1 required .* 'a'"):
        base()
    assert derived.__match_args__ == ("a", "b", "c", "hidden", "unhashed")

    class Plain(base):  # type: ignore[misc]
        """One that is no dataclass itself."""

    assert Plain(1).__init__.__func__ is base.__init__
    assert repr(Plain(1)).endswith("Plain(a=1, b='b')")


def test_classes_that_the_standard_library_would_refuse_are_refused() -> None:
    base, _ = classes(lazy_dataclass, frozen=True)
    with pytest.raises(TypeError, match="only one is frozen"):
        lazy_dataclass(type("Changing", (base,), {}))
    with pytest.raises(ValueError, match="default_factory"):
        lazy_dataclass(type("Shared", (), {"__annotations__": {"a": "list"}, "a": []}))
    with pytest.raises(TypeError, match="InitVar"):
        lazy_dataclass(type("Given", (), {"__annotations__": {"a": "InitVar[int]"}}))
    with pytest.raises(TypeError, match="__setattr__"):
        lazy_dataclass(frozen=True)(type("Set", (), {"__setattr__": object.__setattr__}))


def test_a_class_of_the_standard_library_may_inherit() -> None:
    base, _ = classes(lazy_dataclass, frozen=True)

    @dataclasses.dataclass(frozen=True)
    class Other(base):  # type: ignore[misc]
        more: int = 4

    assert repr(Other(1)).endswith("Other(a=1, b='b', more=4)")


def test_a_field_without_a_default_cannot_follow_one() -> None:
    namespace = {"__annotations__": {"first": "int", "second": "str"}, "first": 1}
    wrong = lazy_dataclass(type("Wrong", (), namespace))
    with pytest.raises(TypeError, match="second has no default"):
        inspect.signature(wrong)

"""Type rules of functions whose first argument is an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from olapdb.functions.base import Argument
from olapdb.functions.scalar import TypeRule, illegal
from olapdb.types import Array, DataType, plain


def array_rule(result: Callable[[Array], DataType]) -> TypeRule:
    """Return the type rule of a function of an array; `result` takes the array's type.

    The rule raises IllegalTypeOfArgument unless the first argument is an array."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type; raise IllegalTypeOfArgument unless the first argument is an
        array.
        """
        if not isinstance(types[0], Array):
            raise illegal(name, types[0], "an Array")
        return result(types[0])

    return rule


def same_type(array: Array) -> DataType:
    """Return the array's own type: the result of functions that keep it."""
    return array


def element_type(name: str, data_type: DataType) -> DataType:
    """Return the type of an array's elements; raise IllegalTypeOfArgument for other types."""
    container = plain(data_type)
    if not isinstance(container, Array):
        raise illegal(name, data_type, "an Array")
    return container.inner

"""Python functions as they are called: code that the warehouse stores, and callables of a connection.

Stored code is a program that the warehouse's writers chose, run by each process that calls it. So
it runs only where the setting `allow_python_functions` is on. Callables of a connection are code of
its own process and need no setting.
"""

from __future__ import annotations

import platform
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from olapdb.config import Settings
from olapdb.errors import (
    BadArguments,
    FunctionAlreadyExists,
    PythonFunctionFailed,
    SupportIsDisabled,
)
from olapdb.functions import is_aggregate, parse_type, registry
from olapdb.functions.python_functions import PythonFunction
from olapdb.functions.scalar import ScalarDefinition
from olapdb.model.user_function import FunctionParameter, UserFunction
from olapdb.records import dataclass

_LOADED_MAX = 512
_loaded: dict[str, Callable[..., Any]] = {}
"""The handlers of stored functions by the function's id. A replaced function has another id."""
_LOADING = threading.Lock()


@dataclass(frozen=True)
class LocalFunction:
    """A Python function of one connection: how it is called, and its code."""

    function: UserFunction
    handler: Callable[..., Any]

    def definition(self) -> ScalarDefinition:
        """Return the function as one that the binder can call."""
        return _definition(self.function, self.handler)


@dataclass(frozen=True)
class PythonOptions:
    """How a callable of a connection is called, see `Connection.create_function`."""

    vectorized: bool = True
    aggregate: bool = False
    deterministic: bool = True


PYTHON_OPTIONS = PythonOptions()


def local_function(
    name: str,
    handler: Callable[..., Any],
    arguments: Mapping[str, str],
    returns: str,
    options: PythonOptions,
) -> LocalFunction:
    """Return the function of a connection. `arguments` are the types of its parameters by name.

    Raises FunctionAlreadyExists for a name of the engine, BadArguments for a vectorized aggregate or
    what cannot be called, UnknownType."""
    if registry.is_scalar(name) or is_aggregate(name):
        raise FunctionAlreadyExists(
            f"The function {name} already exists.", hint="Choose a name that the engine lacks."
        )
    if not callable(handler):
        raise BadArguments(f"The function {name} needs a callable, not {handler!r}.")
    if not isinstance(arguments, Mapping):
        raise BadArguments(
            f"The arguments of the function {name} are a mapping of names to types, not {arguments!r}.",
            hint='For example {"x": "Int64"}.',
        )
    if options.vectorized and options.aggregate:
        raise BadArguments(
            f"The aggregate {name} gets one value at a time.", hint="Say vectorized=False."
        )
    function = UserFunction(
        id="",
        database="",
        name=name,
        parameters=tuple(
            FunctionParameter(parameter, str(parse_type(type_name)))
            for parameter, type_name in arguments.items()
        ),
        body="",
        returns=str(parse_type(returns)),
        typed=True,
        aggregate=options.aggregate,
        language="python",
        volatility="IMMUTABLE" if options.deterministic else "VOLATILE",
        vectorized=options.vectorized,
    )
    return LocalFunction(function, handler)


def stored_definition(function: UserFunction) -> ScalarDefinition:
    """Return a stored function as one that the binder can call. Its code is run at the first use.

    Raises PythonFunctionFailed if the code fails or does not define its handler."""
    with _LOADING:
        handler = _loaded.get(function.id)
        if handler is None:
            handler = _load(function)
            if len(_loaded) >= _LOADED_MAX:
                _loaded.clear()
            _loaded[function.id] = handler
    return _definition(function, handler)


def refuse_python(name: str, settings: Settings) -> None:
    """Raise SupportIsDisabled if the setting allow_python_functions is off."""
    if not settings.boolean("allow_python_functions"):
        raise SupportIsDisabled(
            f"The Python function {name} is code stored in the warehouse, which the setting "
            "allow_python_functions = 0 does not run.",
            hint="If you trust all who write to the warehouse: SET allow_python_functions = 1.",
        )


def refuse_missing(packages: Sequence[str], runtime_version: str, name: str) -> None:
    """Raise BadArguments for a package that is not installed, or a newer Python than this one."""
    for package in packages:
        module = re.split(r"[\s=<>!~;\[]", package, maxsplit=1)[0].replace("-", "_")
        if find_spec(module) is None:
            raise BadArguments(
                f"The Python function {name} needs the package {package}, which is not installed.",
                hint=f"Run: pip install {package!r}.",
            )
    wanted = tuple(map(int, re.findall(r"\d+", runtime_version)[:2]))
    running = tuple(map(int, platform.python_version_tuple()[:2]))
    if wanted > running:
        raise BadArguments(
            f"The Python function {name} needs Python {runtime_version}; this process has "
            f"{platform.python_version()}.",
            hint="Functions run in the process of the query.",
        )


def _definition(function: UserFunction, handler: Callable[..., Any]) -> ScalarDefinition:
    """Return the definition of a Python function over its code."""
    return PythonFunction(
        function.full_name,
        handler,
        parse_type(function.returns),
        len(function.parameters),
        function.vectorized,
        function.aggregate,
        function.volatility == "IMMUTABLE",
    ).definition()


def _load(function: UserFunction) -> Callable[..., Any]:
    """Run the code of a stored function as a module; return its handler.

    Raises PythonFunctionFailed."""
    module = ModuleType(f"olapdb_function_{function.name}")
    try:
        code = compile(function.body, f"<function {function.full_name}>", "exec")
        exec(code, module.__dict__)
    except Exception as error:
        raise PythonFunctionFailed(
            f"The code of the Python function {function.full_name} failed: "
            f"{type(error).__name__}: {error}."
        ) from error
    handler = module.__dict__.get(function.handler)
    if not callable(handler):
        raise PythonFunctionFailed(
            f"The code of the Python function {function.full_name} defines no {function.handler}."
        )
    return handler  # type: ignore[no-any-return]

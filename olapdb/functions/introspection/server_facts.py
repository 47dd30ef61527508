"""Functions of ClickHouse's server, as they answer where nothing is configured and no client is
connected: macros, regions, lists of suffixes, handlers, and what MySQL's and PostgreSQL's clients ask.

Here nothing can be configured, so that each answer, or each error, is always the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pyarrow as pa

from olapdb.errors import (
    BadArguments,
    ClusterDoesntExist,
    DatabaseError,
    DictionariesWasNotLoaded,
    NoElementsInConfig,
    NotSupportedError,
    TldListNotFound,
)
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels.constants import default_value
from olapdb.types import (
    INT32,
    STRING,
    UINT8,
    UINT64,
    UUID,
    DataType,
    FixedString,
    String,
    Tuple,
    plain,
)

_LOG = logging.getLogger("olapdb.logTrace")

_REGIONS = (
    *("regionHierarchy", "regionIn", "regionToArea", "regionToCity", "regionToContinent"),
    *("regionToCountry", "regionToDistrict", "regionToName", "regionToPopulation"),
    "regionToTopContinent",
)
_WITH_LISTS = (
    *("cutToFirstSignificantSubdomainCustom", "cutToFirstSignificantSubdomainCustomRFC"),
    *("cutToFirstSignificantSubdomainCustomWithWWW",),
    *("cutToFirstSignificantSubdomainCustomWithWWWRFC",),
    *("firstSignificantSubdomainCustom", "firstSignificantSubdomainCustomRFC"),
)


def _always(data_type: DataType, value: object) -> scalar.Resolver:
    """Return the resolver of a function that always gives `value`, of type `data_type`."""
    constant = pa.scalar(value, data_type.arrow)
    return lambda name, arguments: ScalarCall(name, data_type, lambda v, r, e: constant)


def _failing(error: Callable[[str, Sequence[Argument]], DatabaseError]) -> scalar.Resolver:
    """Return the resolver of a function that always raises the error that `error` makes."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Raise the error that `error` makes for this call."""
        raise error(name, arguments)

    return resolve


def _no_regions(name: str, arguments: Sequence[Argument]) -> DatabaseError:
    """Return the error of a function that reads the hierarchy of regions."""
    return DictionariesWasNotLoaded(f"There is no hierarchy of regions, which {name} reads.")


def _no_list(name: str, arguments: Sequence[Argument]) -> DatabaseError:
    """Return the error that the named list of domain suffixes does not exist. Raises IllegalTypeOfArgument for
    arguments that are not texts."""
    texts = (String, FixedString)
    scalar.require(name, [plain(a.type) for a in arguments], texts, "a String")
    wanted = scalar.constant_text(name, arguments, 1, "the name of a list")
    return TldListNotFound(
        f"There is no list of suffixes {wanted!r}.",
        hint=f"{name.replace('Custom', '')} knows the public suffixes.",
    )


def _no_macro(name: str, arguments: Sequence[Argument]) -> DatabaseError:
    """Return the error that getMacro finds no macro. Raises IllegalTypeOfArgument for a bad argument."""
    scalar.require(name, [plain(arguments[0].type)], (String,), "a String")
    return NoElementsInConfig("There are no macros.")


def _no_keeper(name: str, arguments: Sequence[Argument]) -> DatabaseError:
    """Return the error that generateSerialID needs ClickHouse Keeper."""
    return NoElementsInConfig(f"There is no ClickHouse Keeper, which {name} asks.")


def _no_port(name: str, arguments: Sequence[Argument]) -> DatabaseError:
    """Return the error of getServerPort, which finds no port here. Raises IllegalTypeOfArgument unless the argument is
    a constant text."""
    wanted = scalar.constant_text(name, arguments, 0, "the name of a port")
    return ClusterDoesntExist(f"There is no port named {wanted}: nothing listens here.")


def _no_transaction(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve transactionID(): zeros, as outside of a transaction."""
    data_type = Tuple((UINT64, UINT64, UUID()))
    return _always(data_type, default_value(data_type).as_py())(name, arguments)


def _no_snapshots(name: str, arguments: Sequence[Argument]) -> DatabaseError:
    """Return the error that no transaction snapshot exists, for the functions that name one."""
    return NotSupportedError("Transactions of several statements are not supported.")


_VARIABLES: dict[str, tuple[DataType, object]] = {
    "max_allowed_packet": (INT32, 67108864),
    "version": (STRING, "5.7.30"),
    "version_comment": (STRING, ""),
    "transaction_isolation": (STRING, "READ-UNCOMMITTED"),
}


def _global_variable(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve globalVariable('name'), a variable that MySQL's clients ask for; 0 if it is unknown.

    Raises BadArguments unless the name is a constant text."""
    constant = arguments[0].constant
    wanted = constant.as_py() if constant is not None else None
    if not isinstance(wanted, str):
        raise BadArguments(f"The argument of {name} must be a constant text.")
    data_type, value = _VARIABLES.get(wanted.lower(), (INT32, 0))
    return _always(data_type, value)(name, arguments)


def _log_trace(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve logTrace('text'): log the text at level DEBUG once a block; the result is 0."""
    scalar.require(name, [plain(arguments[0].type)], (String,), "a String")
    if arguments[0].constant is None:
        raise scalar.illegal(name, arguments[0].type, "a constant String")
    text = arguments[0].constant.as_py()

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Log the text and return 0."""
        _LOG.debug("%s", text)
        return pa.scalar(0, pa.uint8())

    return ScalarCall(name, UINT8, kernel, "row")


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(scalar.custom(name, _failing(_no_regions), count=(0, None)) for name in _REGIONS),
    *(scalar.custom(name, _failing(_no_list), count=2) for name in _WITH_LISTS),
    scalar.custom("getServerPort", _failing(_no_port)),
    *(
        scalar.custom(name, _failing(_no_snapshots), count=0)
        for name in ("transactionLatestSnapshot", "transactionOldestSnapshot")
    ),
    scalar.custom("transactionID", _no_transaction, count=0),
    scalar.custom("getMacro", _failing(_no_macro)),
    scalar.custom("generateSerialID", _failing(_no_keeper), count=(1, 2)),
    scalar.custom("globalVariable", _global_variable),
    scalar.custom("logTrace", _log_trace),
    scalar.custom("currentHandler", _always(STRING, ""), count=0),
    scalar.custom("currentRequestURL", _always(STRING, ""), count=0),
    scalar.custom(
        "pgTableIsVisible", _always(UINT8, 1), aliases=("pg_table_is_visible",), insensitive=True
    ),
    scalar.custom(
        "pgGetUserById", _always(STRING, "default"), aliases=("pg_get_userbyid",), insensitive=True
    ),
)

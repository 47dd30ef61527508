"""Leaves of ProgrammingError about names: what does not exist, exists already, or is ambiguous."""

from __future__ import annotations

from olapdb.errors.tree import NotSupportedError, ProgrammingError


class UnknownTable(ProgrammingError, name="UNKNOWN_TABLE", code=60):
    """A table name that does not exist."""


class CannotGetCreateTableQuery(ProgrammingError, name="CANNOT_GET_CREATE_TABLE_QUERY", code=390):
    """A table that SHOW CREATE does not find."""


class UnknownDatabaseEngine(ProgrammingError, name="UNKNOWN_DATABASE_ENGINE", code=336):
    """An engine of databases that does not exist."""


class UnknownDatabase(ProgrammingError, name="UNKNOWN_DATABASE", code=81):
    """A database name that does not exist."""


class UnknownIdentifier(ProgrammingError, name="UNKNOWN_IDENTIFIER", code=47):
    """A column or alias name that the query does not define."""


class AmbiguousIdentifier(ProgrammingError, name="AMBIGUOUS_IDENTIFIER", code=207):
    """A name that several tables of the query define."""


class NoSuchColumn(ProgrammingError, name="NO_SUCH_COLUMN_IN_TABLE", code=16):
    """A column name that the table of an INSERT or of a reference does not have."""


class ThereIsNoColumn(ProgrammingError, name="THERE_IS_NO_COLUMN", code=8):
    """A column that one side has and the other lacks, such as a view and its target."""


class DuplicateColumn(ProgrammingError, name="DUPLICATE_COLUMN", code=15):
    """A column name that appears twice."""


class UnknownFunction(ProgrammingError, name="UNKNOWN_FUNCTION", code=46):
    """A function name that does not exist."""


class UnknownAggregateFunction(ProgrammingError, name="UNKNOWN_AGGREGATE_FUNCTION", code=63):
    """An aggregate function name that does not exist."""


class UnknownType(ProgrammingError, name="UNKNOWN_TYPE", code=50):
    """A data type name that does not exist."""


class UnknownSetting(ProgrammingError, name="UNKNOWN_SETTING", code=115):
    """A setting name that does not exist."""


class UnknownStorage(ProgrammingError, name="UNKNOWN_STORAGE", code=56):
    """A table engine that does not exist."""


class TableAlreadyExists(ProgrammingError, name="TABLE_ALREADY_EXISTS", code=57):
    """A table name that is already taken."""


class DictionaryAlreadyExists(ProgrammingError, name="DICTIONARY_ALREADY_EXISTS", code=387):
    """A name that a dictionary has."""


class UnknownElementInConfig(ProgrammingError, name="UNKNOWN_ELEMENT_IN_CONFIG", code=137):
    """A layout of dictionaries that does not exist."""


class DatabaseAlreadyExists(ProgrammingError, name="DATABASE_ALREADY_EXISTS", code=82):
    """A database name that is already taken."""


class UnknownQueryParameter(ProgrammingError, name="UNKNOWN_QUERY_PARAMETER", code=456):
    """A query parameter without a value."""


class UnknownJoin(ProgrammingError, name="UNKNOWN_JOIN", code=418):
    """A setting that names no algorithm, or no strictness, of joins."""


class UnknownLoadBalancing(ProgrammingError, name="UNKNOWN_LOAD_BALANCING", code=212):
    """A setting that names no way to choose a replica."""


class UnknownTotalsMode(ProgrammingError, name="UNKNOWN_TOTALS_MODE", code=213):
    """A setting that names no meaning of WITH TOTALS."""


class UnknownOverflowMode(ProgrammingError, name="UNKNOWN_OVERFLOW_MODE", code=145):
    """A setting that says neither throw nor break."""


class UnknownDistributedProductMode(
    ProgrammingError, name="UNKNOWN_DISTRIBUTED_PRODUCT_MODE", code=283
):
    """A setting that names no way of distributed subqueries."""


class UnknownUnion(ProgrammingError, name="UNKNOWN_UNION", code=557):
    """A setting that says neither ALL nor DISTINCT."""


class UnknownUser(ProgrammingError, name="UNKNOWN_USER", code=192):
    """A user that does not exist: there is one, default."""


class NotFoundColumnInBlock(ProgrammingError, name="NOT_FOUND_COLUMN_IN_BLOCK", code=10):
    """A column that an ALTER names, but that the table lacks."""


class UnknownCodec(ProgrammingError, name="UNKNOWN_CODEC", code=432):
    """A compression codec that does not exist."""


class UnknownRole(ProgrammingError, name="UNKNOWN_ROLE", code=511):
    """A user or role that does not exist."""


class NoSuchProjection(ProgrammingError, name="NO_SUCH_PROJECTION_IN_TABLE", code=582):
    """A projection that the table does not have."""


class NamedCollectionDoesNotExist(ProgrammingError, name="NAMED_COLLECTION_DOESNT_EXIST", code=669):
    """A named collection that is altered or dropped does not exist."""


class NamedCollectionAlreadyExists(
    ProgrammingError, name="NAMED_COLLECTION_ALREADY_EXISTS", code=670
):
    """CREATE NAMED COLLECTION of a name that a collection has."""


class FunctionAlreadyExists(ProgrammingError, name="FUNCTION_ALREADY_EXISTS", code=609):
    """CREATE FUNCTION of a name that a function has."""


class BadDataPartName(ProgrammingError, name="BAD_DATA_PART_NAME", code=233):
    """A text that is not the name of a part."""


class NoSuchDataPart(ProgrammingError, name="NO_SUCH_DATA_PART", code=232):
    """A part name that does not exist."""


class UnknownFormat(ProgrammingError, name="UNKNOWN_FORMAT", code=73):
    """A format that does not exist."""


class ClusterDoesntExist(NotSupportedError, name="CLUSTER_DOESNT_EXIST", code=701):
    """A cluster of servers: there is none."""


class UnknownDisk(ProgrammingError, name="UNKNOWN_DISK", code=479):
    """A disk that does not exist, or that has all of the parts already."""


class UnknownVolume(ProgrammingError, name="UNKNOWN_VOLUME", code=548):
    """A volume of disks that does not exist."""


class UnknownPolicy(ProgrammingError, name="UNKNOWN_POLICY", code=478):
    """A storage policy that does not exist."""


class TldListNotFound(ProgrammingError, name="TLD_LIST_NOT_FOUND", code=562):
    """A list of suffixes of domains that does not exist."""


class NoTuple(ProgrammingError, name="UNSUPPORTED_METHOD", code=1):
    """An untuple of something else than one tuple."""

"""Names, types, contracts, and the macros for all databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available

from .. import cross_database, seeds
from ..column import OlapdbColumn
from ..constraints import Contract
from ..limited_query import with_limit
from ..packages import STANDARD, query_of_test
from ..query_settings import has_outer_join, with_settings
from ..relation import OlapdbRelation, quote
from .base import AdapterBase

if TYPE_CHECKING:
    import agate


class TypeMethods(AdapterBase):
    """Methods about names, types of columns, contracts and expressions."""

    @classmethod
    def date_function(cls) -> str:
        """Return the SQL of the current time."""
        return "now()"

    @classmethod
    def quote(cls, identifier: str) -> str:
        """Return an identifier in quotes."""
        return quote(identifier)

    @classmethod
    def convert_text_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return String as the type of a seed's column, Nullable if it has NULLs."""
        return seeds.with_nulls("String", agate_table, col_idx)

    convert_time_type = convert_text_type  # there is no type for a time of day

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return the type of a seed's column of numbers, from its values."""
        return seeds.with_nulls(seeds.number_type(agate_table, col_idx), agate_table, col_idx)

    convert_integer_type = convert_number_type

    @classmethod
    def convert_boolean_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return Bool as the type of a seed's column, Nullable if it has NULLs."""
        return seeds.with_nulls("Bool", agate_table, col_idx)

    @classmethod
    def convert_datetime_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return the type of a seed's column of times, from its values."""
        return seeds.with_nulls(seeds.datetime_type(agate_table, col_idx), agate_table, col_idx)

    @classmethod
    def convert_date_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return the type of a seed's column of dates, from its values."""
        return seeds.with_nulls(seeds.date_type(agate_table, col_idx), agate_table, col_idx)

    def expand_column_types(self, goal: OlapdbRelation, current: OlapdbRelation) -> None:
        """Do nothing: strings have no length, so no column needs to grow."""

    @available.parse(lambda *a, **k: [])
    def get_column_schema_from_query(self, sql: str) -> list[OlapdbColumn]:
        """Return the names and types of a query's columns without running it."""
        with self.connections.exception_handler(sql):
            described = self._handle().connection.describe(sql)
        return [OlapdbColumn(name, str(data_type)) for name, data_type in described]

    def debug_query(self) -> None:
        """Run `select 1`, for dbt debug."""
        self.execute("select 1 as id")

    @available.parse(lambda *a, **k: ([], []))
    def compare_contract(
        self, model: Mapping[str, Any], described: Sequence[OlapdbColumn]
    ) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        """Return the columns that a model promises and those of its query; see `Contract.compare`."""
        return Contract.of(model).compare(described)

    @available.parse(lambda *a, **k: [])
    def contract_elements(self, model: Mapping[str, Any]) -> list[str]:
        """Return the columns and constraints of a CREATE TABLE; dbt warns of those left out."""
        return Contract.of(model).elements(self.process_parsed_constraint)

    @available.parse(lambda *a, **k: {})
    def contract_storage(self, model: Mapping[str, Any]) -> dict[str, Any]:
        """Return the model's config; without `order_by` and `primary_key` it gets the contract's
        primary key as `order_by`."""
        config = dict(model["config"])
        key = Contract.of(model).primary_key()
        if key and not config.get("order_by") and not config.get("primary_key"):
            config["order_by"] = [quote(name) for name in key]
        return config

    @available
    def dated(self, expression: str) -> str:
        """Return the expression, or a date or time if it is a string literal of one."""
        return cross_database.dated(expression)

    @available
    def listagg(self, measure: str, delimiter: str, order_by: str | None, limit: int | None) -> str:
        """Return SQL that joins the values of a group; see `cross_database.listagg`."""
        return cross_database.listagg(measure, delimiter, order_by, limit)

    @available.parse(lambda sql, limit: sql)
    def with_limit(self, sql: str, limit: int) -> str:
        """Return a query with a LIMIT, for dbt show: before its SETTINGS, if it ends in some."""
        return with_limit(sql, limit)

    @available.parse(lambda sql, node: sql)
    def query_of_test(self, sql: str, node: Mapping[str, Any]) -> str:
        """Return the query of a data test; see `packages.query_of_test`."""
        return query_of_test(sql, node)

    @available.parse(lambda sql: sql)
    def with_standard_nulls(self, sql: str) -> str:
        """Return the query under the settings of `packages.STANDARD`."""
        return with_settings(sql, STANDARD)

    @available.parse(lambda sql: sql)
    def view_query(self, sql: str) -> str:
        """Return the query of a view, with `join_use_nulls` of the profile if it has an outer join.

        The setting decides the types of the columns that the view stores: a reader with another one
        would get an error, and each test of a package whose own joins need it is such a reader."""
        nulls = self.config.credentials.settings.get("join_use_nulls", 0)
        return with_settings(sql, {"join_use_nulls": int(nulls)}) if has_outer_join(sql) else sql

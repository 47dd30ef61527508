"""Hooks: PostgreSQL's VACUUM and UPDATE without WHERE, and facts of a PostgreSQL profile."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from dbt.tests.adapter.hooks.test_model_hooks import (
    BaseHookRefs,
    BasePrePostModelHooks,
    BasePrePostModelHooksInConfig,
    BasePrePostModelHooksInConfigKwargs,
    BasePrePostModelHooksInConfigWithCount,
    BasePrePostModelHooksOnSeeds,
    BasePrePostModelHooksOnSeedsPlusPrefixed,
    BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace,
    BasePrePostModelHooksOnSnapshots,
    BasePrePostSnapshotHooksInConfigKwargs,
)
from dbt.tests.adapter.hooks.test_run_hooks import BasePrePostRunHooks

from tests.contract.dbt.suite.translation import Rules

pytestmark = pytest.mark.feature("dbt")

HOOK_SQL: Rules = (
    (r"vacuum (\{\{ this.schema \}\}.on_model_hook)", r"optimize table \1"),
    (r"(update .*? set \w+ = \d+)", r"\1 where true"),
    (r"null::(\{\{ dbt.type_int\(\) \}\})", r"cast(null as Nullable(\1))"),
)
OUR_FACTS = {"target_dbname": "", "target_host": "", "target_type": "olapdb", "target_user": ""}
POSTGRES_FACTS = {"target_dbname": "dbt", "target_type": "postgres", "target_user": "root"}


def as_postgres(facts: dict[str, Any], host: object) -> dict[str, Any]:
    """Compare what names the profile with ours, and return what the test's profile would have."""
    assert {name: facts[name] for name in OUR_FACTS} == OUR_FACTS
    return {**facts, **POSTGRES_FACTS, "target_host": host}


class FourThreads:
    """A profile as PostgreSQL's in the one thing that the two share, the number of threads."""

    rules: ClassVar[Rules] = HOOK_SQL

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "threads": 4}


class OfModels(FourThreads):
    """Facts of `on_model_hook`."""

    def get_ctx_vars(self, state: str, count: int, project: Any) -> list[dict[str, Any]]:
        rows = super().get_ctx_vars(state, count, project)  # type: ignore[misc]
        return [as_postgres(row, None) for row in rows]


class TestModelHooks(OfModels, BasePrePostModelHooks):
    pass


class TestModelHooksInConfig(OfModels, BasePrePostModelHooksInConfig):
    pass


class TestModelHooksInConfigKwargs(OfModels, BasePrePostModelHooksInConfigKwargs):
    pass


class TestModelHooksInConfigWithCount(OfModels, BasePrePostModelHooksInConfigWithCount):
    pass


class TestHookRefs(OfModels, BaseHookRefs):
    pass


class TestRunHooks(FourThreads, BasePrePostRunHooks):
    def get_ctx_vars(self, state: str, project: Any) -> dict[str, Any]:
        return as_postgres(super().get_ctx_vars(state, project), None)


class TestHooksOnSeeds(BasePrePostModelHooksOnSeeds):
    rules: ClassVar[Rules] = HOOK_SQL


class TestHooksOnSeedsPlusPrefixed(BasePrePostModelHooksOnSeedsPlusPrefixed):
    rules: ClassVar[Rules] = HOOK_SQL


class TestHooksOnSeedsPlusPrefixedWhitespace(BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace):
    rules: ClassVar[Rules] = HOOK_SQL


class TestHooksOnSnapshots(BasePrePostModelHooksOnSnapshots):
    rules: ClassVar[Rules] = HOOK_SQL


class TestSnapshotHooksInConfigKwargs(BasePrePostSnapshotHooksInConfigKwargs):
    rules: ClassVar[Rules] = HOOK_SQL

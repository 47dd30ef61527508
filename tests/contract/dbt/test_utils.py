"""dbt's cross-database macros, where dbt's own tests leave something out."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt

pytestmark = pytest.mark.feature("dbt")


class TestOthers:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "parts.sql": """
                select {{ dbt.split_part("'a,b,c'", "','", 2) }} as second,
                    {{ dbt.split_part("'a,b,c'", "','", -1) }} as last,
                    {{ dbt.split_part("nullIf('x', 'x')", "','", 1) }} as nothing,
                    {{ dbt.safe_cast("'12x'", "Int64") }} as number,
                    {{ dbt.right("'abc'", "length('abc') - coalesce(nullIf(1, 1), toInt64(1))") }} as bc,
                    {{ dbt.right("'abc'", "nullIf(1, 1)") }} as no_length,
                    toString({{ dbt.date(2024, 2, 5) }}) as day,
                    toString({{ dbt.last_day("toDate('2024-02-05')", "month") }}) as last_day""",
            "joined.sql": """
                select {{ dbt.listagg("toString(number)", "'-'") }} as items,
                    {{ dbt.listagg("toString(number)", "'-'", limit_num=2) }} as two
                from numbers(3)""",
            "over.sql": """
                select {{ dbt.bool_or("number = 1") }} over (partition by number % 2) as any_one,
                    {{ dbt.bool_or("nullIf(number, number) = 1") }} over () as nothing
                from numbers(4)""",
            "ordered.sql": """
                select {{ dbt.listagg("toString(number)", "'-'", "order by number desc") }} as items
                from numbers(3)""",
        }

    def test_values(self, project: object) -> None:
        run_dbt(["run"])
        parts = project.run_sql("select * from {schema}.parts", fetch="one")  # type: ignore[attr-defined]
        assert tuple(parts) == ("b", "c", None, None, "bc", None, "2024-02-05", "2024-02-29")
        joined = project.run_sql("select * from {schema}.joined", fetch="one")  # type: ignore[attr-defined]
        assert tuple(joined) == ("0-1-2", "0-1")
        over = project.run_sql(  # type: ignore[attr-defined]
            "select countIf(any_one), any(toTypeName(any_one)), count(nothing) from {schema}.over",
            fetch="one",
        )
        assert tuple(over) == (2, "Bool", 0)
        ordered = project.run_sql("select * from {schema}.ordered", fetch="one")  # type: ignore[attr-defined]
        assert tuple(ordered) == ("2-1-0",)

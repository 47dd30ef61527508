"""The operations of `dbt run-operation`: what an `incremental_mv` model needs, has, and gets."""

"""Python models: code of a dbt project that computes a table, in process or by Spark."""

"""Moves a dbt-clickhouse project to olapdb: says what each model becomes, and writes the project.

    python -m dbt.adapters.olapdb.migrate PROJECT [--out FOLDER]

`project` reads the models, `model_text` separates SQL, Jinja and config, `diagnose` names what is
wrong with a view today, `decide` says what a model becomes, `write` writes the changed project.
"""

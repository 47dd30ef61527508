"""The catalog's tables and statements in SQLAlchemy Core, from which their SQL texts are generated.

A process that opens a warehouse never imports this package: SQLAlchemy takes longer to load than a
first query takes to run. It runs the texts in `olapdb.catalog.sqlite.statements`, which
`python -m olapdb.catalog.core.generate` writes; a test compares the two.
"""

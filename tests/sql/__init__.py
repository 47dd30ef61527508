"""SQL logic tests: statements with the answers that ClickHouse gave, run under six configurations.

`*.slt` are the tests, a feature a file; `logic.py` reads them, `configurations.py` has the six ways
to run them, `record.py` asks ClickHouse for the answers, `test_sql.py` runs all.
"""

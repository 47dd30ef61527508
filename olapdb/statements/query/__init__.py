"""SELECT and EXPLAIN."""

"""The execution of each kind of statement, one family a file; `olapdb.session` dispatches to
them."""

"""What each kind of statement does, one family a file; `olapdb.session` chooses among them."""

"""How a statement changes a warehouse: stage files, commit once, retry after a conflict."""

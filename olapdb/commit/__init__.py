"""The commit of a statement: stage files, commit once, retry after a concurrent commit."""

"""Walking and rewriting syntax trees: the functions of `olapdb.sql.trees`, for the binder."""

from olapdb.sql.trees import children, is_not_query, rewrite, rewrite_children, walk

__all__ = ["children", "is_not_query", "rewrite", "rewrite_children", "walk"]

"""Syntax tree to SQL text, in the same chain as the parser: expressions, queries, definitions."""

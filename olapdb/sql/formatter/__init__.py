"""Syntax tree to SQL text: expressions, queries and definitions, a module of functions each."""

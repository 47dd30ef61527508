"""Evaluation of expressions, grouping, hashing and ordering over Arrow batches."""

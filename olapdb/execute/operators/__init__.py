"""Query operators, one a file: generators over Arrow batches."""

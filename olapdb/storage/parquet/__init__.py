"""A Parquet writer that encodes row groups on several threads, by kernels or by Arrow's writer."""

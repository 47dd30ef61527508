"""Rows on disk, for operators that need more memory than they may use.

`files`       temporary files of a query: batches are appended, and read back by their extent
`partitions`  rows on disk, partitioned by a hash of their key
`budget`      when an operator must begin to spill
"""

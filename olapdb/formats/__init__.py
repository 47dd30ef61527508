"""Output and input formats: results as bytes, and bytes as columns.

One module a format, its writer and its reader side by side; `registry` finds a format by its name
or by the ending of a file's name. Rows are written a batch at a time, by text arrays that Arrow
joins, without a loop over rows.
"""

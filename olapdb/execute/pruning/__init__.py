"""Choice of the parts and granules that a condition can match."""

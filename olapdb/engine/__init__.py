"""What the MergeTree engines mean: layout, default values, combining rows by sorting key."""

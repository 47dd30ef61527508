"""A parallel Parquet writer, until Arrow has one (apache/arrow#50866): then both modules go."""

"""Many threads or processes at once, for a given time."""

"""Background and administrative work: merges, vacuum, checks, backup, rebuilding the catalog."""

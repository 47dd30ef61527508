"""What can be said of a view: coverage, verdicts, reconciliation."""

"""Proof of a view: coverage, verdicts, reconciliation, status."""

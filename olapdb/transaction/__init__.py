"""Stage, commit once, classify the outcome, retry, clean up."""

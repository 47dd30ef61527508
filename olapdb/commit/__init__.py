"""How a statement changes a warehouse: stage files, commit once, retry when another commit came first."""

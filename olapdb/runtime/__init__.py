"""What the statements of one open warehouse share: services, caches, activity, logs, failpoints."""

"""Services of one open warehouse in one process: caches, activity, logs, deferred work,
failpoints."""

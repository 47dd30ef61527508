"""Jobs that compute a view's rows from its source: backfill, replay, adopt."""

"""Truth: what there is, as of which commit. Sees no SQL of ours."""

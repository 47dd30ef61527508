"""Random definitions of views, random histories, and the truth of what `system.views` says."""

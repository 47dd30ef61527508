"""Many threads at once, for as long as they are let."""

"""The flights pipeline: what it reads, what it makes of it, and what the demo shows and checks."""

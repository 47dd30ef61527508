"""The flights pipeline: sources, ingestion, live blocks, and the demo's output and checks."""

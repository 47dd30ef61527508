"""Random schedules on the engine, and beside it a model in plain Python that says what must hold."""

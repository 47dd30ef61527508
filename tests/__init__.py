"""The tests. A failing one shows the engine's frames above an error, which users do not see."""

import os

os.environ.setdefault("OLAPDB_TRACEBACK", "full")

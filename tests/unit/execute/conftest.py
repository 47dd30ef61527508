"""Property tests here are about answers, not about how long a shared machine takes for one."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("answers", deadline=None)
settings.load_profile("answers")

"""What all tests share: one deterministic Hypothesis profile, and ``tests`` as a package."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

ROOT = str(Path(__file__).parent.parent)
if ROOT not in sys.path:  # so that `from tests.property.strategies import …` works everywhere
    sys.path.insert(0, ROOT)

settings.register_profile(
    "tamis",
    derandomize=True,
    deadline=None,
    max_examples=100,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("tamis-long", settings.get_profile("tamis"), max_examples=5_000)
settings.load_profile("tamis")

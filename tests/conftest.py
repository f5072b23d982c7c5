"""Helpers that several test files share live beside this file (`jobs.py`, `strategies.py`) and are imported by name."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# Runs are repeatable and never fail by the clock: the machine that tests may be busy.
settings.register_profile(
    "lynceus", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("lynceus")

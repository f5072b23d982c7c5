"""The replay jobs that ship with Lynceus, one YAML file each. Measured tables are published elsewhere; a made-up one ships, too."""

from __future__ import annotations

from pathlib import Path

_JOBS = Path(__file__).parent / "jobs"


def shipped_jobs() -> dict[str, Path]:
    """Job files by name, such as `tensorflow/cnn`."""
    return {path.relative_to(_JOBS).with_suffix("").as_posix(): path for path in sorted(_JOBS.rglob("*.yaml"))}

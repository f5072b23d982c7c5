"""What trials wrote, while they run and afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lynceus.supervisor.output import read_output


@dataclass
class Tail:
    """A stream of a trial, read piece by piece."""

    path: Path
    seen: int = 0

    def read(self) -> str:
        """What is new since the last call."""
        data = read_output(str(self.path))
        new, self.seen = data[self.seen :], max(self.seen, len(data))
        return new.decode("utf-8", "replace")

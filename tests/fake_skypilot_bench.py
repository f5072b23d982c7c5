"""Starts the fake SkyPilot of `fake_skypilot`, injects errors, and inspects its clusters."""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SDK = Path(__file__).parent / "fake_skypilot"


@dataclass
class FakeSkyPilot:
    """Its state is in a folder; `python` is the interpreter of its environment."""

    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.python = self.folder / "python"
        # The bridge starts Python in isolated mode (-I); this script removes the option so that Python finds the fake package.
        self.python.write_text(f'#!/bin/sh\nshift\nPYTHONPATH={_SDK} exec {sys.executable} -S "$@"\n')
        self.python.chmod(0o755)

    def fail(self, **errors: tuple[str, str, int]) -> None:
        """Let calls fail: function → class of the error, its text, how often. Without arguments, no call fails any more."""
        (self.folder / "errors.json").write_text(json.dumps(errors))

    @contextlib.contextmanager
    def fault(self, kind: str) -> Iterator[None]:
        """The API server `hangs`, `refuses`, or answers with `garbage`."""
        (self.folder / "fault.new").write_text(kind)
        (self.folder / "fault.new").rename(self.folder / "fault")
        try:
            yield
        finally:
            (self.folder / "fault").unlink()

    def clusters(self) -> list[str]:
        """Names of the clusters that exist."""
        return sorted(one.parent.name for one in (self.folder / "clusters").glob("*/record.json"))

    def records(self) -> list[dict[str, Any]]:
        """The requests of the clusters that exist."""
        return [json.loads(one.read_text()) for one in sorted((self.folder / "clusters").glob("*/record.json"))]

    def launches(self) -> list[str]:
        """The names of all clusters that were launched."""
        return (self.folder / "launches").read_text().split()

    def lose_clusters(self) -> None:
        """Kill all machines, as if the cloud had preempted them."""
        for record in (self.folder / "clusters").glob("*/record.json"):
            record.unlink()
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):  # it ended with another one
                os.kill(process, 9)
        shutil.rmtree(self.folder / "clusters")

    def processes(self) -> list[int]:
        """All processes on its clusters."""
        found = []
        for name in os.listdir("/proc"):
            try:
                environ = Path("/proc", name, "environ").read_bytes() if name.isdigit() else b""
                state = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[0] if environ else "Z"
            except OSError:
                continue
            mine = f"FAKE_SKYPILOT={self.folder}".encode() in environ.split(b"\0")
            if state not in "ZX" and mine and b"FAKE_SKYPILOT_CLUSTER=" in environ:
                found.append(int(name))
        return found

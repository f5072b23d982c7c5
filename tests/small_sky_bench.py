"""Starts the SkyPilot of processes in `small_sky`, makes trouble there, and looks at what is left."""

import contextlib
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SDK = Path(__file__).parent / "small_sky"


@dataclass
class SmallSky:
    """Its state is in a folder; `python` is the interpreter of its "environment"."""

    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.python = self.folder / "python"
        # The bridge starts its Python isolated (-I); this one finds our SkyPilot all the same.
        self.python.write_text(f'#!/bin/sh\nshift\nPYTHONPATH={_SDK} exec {sys.executable} -S "$@"\n')
        self.python.chmod(0o755)

    def trouble(self, **orders: tuple[str, str, int]) -> None:
        """Let calls fail: word → kind of error, its text, how often. Nothing: no more trouble."""
        (self.folder / "trouble.json").write_text(json.dumps(orders))

    def clusters(self) -> list[str]:
        """Names of the clusters that exist."""
        return sorted(one.parent.name for one in (self.folder / "clusters").glob("*/record.json"))

    def records(self) -> list[dict[str, Any]]:
        """What they were asked for with."""
        return [json.loads(one.read_text()) for one in sorted((self.folder / "clusters").glob("*/record.json"))]

    def history(self) -> list[str]:
        """Every launch of a cluster, by its name."""
        return (self.folder / "history").read_text().split()

    def vanish(self) -> None:
        """All machines are gone, as if the cloud had taken them."""
        for record in (self.folder / "clusters").glob("*/record.json"):
            record.unlink()
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):  # it died with another one
                os.kill(process, 9)
        shutil.rmtree(self.folder / "clusters")

    def processes(self) -> list[int]:
        """Everything that runs on one of its clusters."""
        found = []
        for name in os.listdir("/proc"):
            try:
                environ = Path("/proc", name, "environ").read_bytes() if name.isdigit() else b""
                state = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[0] if environ else "Z"
            except OSError:
                continue
            mine = f"SMALL_SKY={self.folder}".encode() in environ.split(b"\0")
            if state not in "ZX" and mine and b"SMALL_SKY_CLUSTER=" in environ:
                found.append(int(name))
        return found

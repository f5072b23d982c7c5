"""Environments of their own in which tests install Lynceus as users do."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from readers import ROOT, user_environment


@dataclass(frozen=True)
class Installed:
    """An environment with Lynceus and nothing that it does not need."""

    programs: Path

    @property
    def environment(self) -> dict[str, str]:
        return user_environment(self.programs) | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}

    def run(self, *command: str, folder: Path, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.programs / command[0], *command[1:]],
            cwd=folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )


def source_tree(folder: Path) -> Path:
    """A copy of the files that a clone has."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def must(done: subprocess.CompletedProcess[str]) -> str:
    """The output of a command that succeeds; the test is skipped where no package index answers."""
    said = done.stdout + done.stderr
    if done.returncode and re.search(r"NewConnectionError|NameResolutionError|Network is unreachable", said):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, said
    return said

"""What trials print, while they run and afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lynceus.executors.supervisor.output import read_output
from lynceus.jobfile.run_folder import study_folder
from lynceus.jobfile.secrets import hidden, known_secrets
from lynceus.library.open_study import OpenStudyView

STREAMS = ("stdout", "stderr")


@dataclass
class OutputStream:
    """A stream of a trial, read piece by piece."""

    path: Path
    position: int = 0
    """Bytes that were read."""

    def read(self) -> str:
        """What is new since the last call."""
        data = read_output(str(self.path))
        new, self.position = data[self.position :], max(self.position, len(data))
        return new.decode("utf-8", "replace")


def trial_folder(one: OpenStudyView, number: int) -> Path:
    """The folder on this machine with the output of a trial; it may not exist."""
    return study_folder(one.prepared.job, one.study) / str(number)


def trial_output(one: OpenStudyView, number: int) -> dict[str, str] | None:
    """The output of a trial by stream, with secrets hidden; None when it is not on this machine."""
    folder = trial_folder(one, number)
    if not folder.is_dir():
        return None
    secrets = known_secrets(one.prepared.job)
    return {name: hidden(OutputStream(folder / name).read(), secrets) for name in STREAMS}

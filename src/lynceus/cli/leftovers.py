"""What trials left behind: processes that should have ended, directories that belong to nothing."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from lynceus.cli.opened import Opened
from lynceus.job.execution import study_folder
from lynceus.supervisor import files, limits, tree


@dataclass(frozen=True)
class Leftover:
    """One thing to end or remove."""

    kind: str
    """`processes` or `directory`."""
    where: str
    """Process numbers, or a path."""
    why: str
    run: str = ""
    """The name of the run whose processes are left."""


def find_leftovers(one: Opened, *, outputs: bool = False) -> list[Leftover]:
    """Processes of settled trials, directories of trials that the study does not know; with `outputs`, those of settled trials too."""
    one.study.refresh()
    pending = {order.number for order in one.study.pending}
    settled = {seen.order.number for seen in one.study.history}
    found: list[Leftover] = []
    folder = study_folder(one.prepared.job, one.study)
    for directory in sorted(folder.iterdir(), key=lambda path: path.name) if folder.is_dir() else ():
        if not directory.name.isdigit():
            continue
        number = int(directory.name)
        if number in pending:
            continue
        state = "has settled" if number in settled else "is not part of the study"
        request = files.read_whole(str(directory / files.REQUEST)) or {}
        run = str(request.get("run", ""))
        processes = tree.of_run(run) if run else set()
        if processes:
            numbers = ", ".join(map(str, sorted(processes)))
            found.append(Leftover("processes", numbers, f"of trial {number}, which {state}", run))
        if number not in settled or outputs:
            found.append(Leftover("directory", str(directory), f"of trial {number}, which {state}"))
    return found


def remove_leftovers(leftovers: list[Leftover]) -> None:
    """End the processes, remove the directories with their control groups."""
    for left in leftovers:
        if left.kind == "processes":
            tree.end_run(left.run, set())
        else:
            started = files.read_whole(str(Path(left.where) / files.STARTED)) or {}
            limits.remove_groups(list(started.get("groups", ())))
            shutil.rmtree(left.where, ignore_errors=True)

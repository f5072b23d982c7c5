"""Ending a run from outside, also one whose supervisor does not answer or whose directory is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable

from lynceus.executors.supervisor import files, limits, process_tree
from lynceus.executors.supervisor.guard import GUARD_NAME, SUPERVISOR_NAME


def supervisors_of(directory: str) -> set[int]:
    """The guard and the supervisor of a run on this machine: processes of these names that hold its lock."""
    lock = os.path.join(os.path.realpath(directory), files.LOCK)
    named = process_tree.named((GUARD_NAME, SUPERVISOR_NAME))
    return {process for process in named if lock in process_tree.open_files(process)}


def running_runs() -> dict[str, set[int]]:
    """Run directory → the living processes of its run with its supervisors, of all runs on this machine that we may see."""
    found: dict[str, set[int]] = {}
    prefix, suffix = b"LYNCEUS_RESULT=", f"/{files.RESULT}".encode()
    for process in process_tree.all_processes():
        for entry in process_tree.environment_of(process):
            if entry.startswith(prefix) and entry.endswith(suffix):
                found.setdefault(os.fsdecode(entry[len(prefix) : -len(suffix)]), set()).add(process)
    for process in process_tree.named((GUARD_NAME, SUPERVISOR_NAME)):
        for path in process_tree.open_files(process):
            if path.endswith(f"/{files.LOCK}"):
                found.setdefault(os.path.dirname(path), set()).update({process}, process_tree.descendants(process))
    return found


def wake_supervisors(directory: str) -> None:
    """Let the guard and the supervisor go on, in case something stopped them."""
    process_tree.signal_all(supervisors_of(directory), signal.SIGCONT)


def job_processes(directory: str, run: str = "", groups: Iterable[str] = ()) -> set[int]:
    """The processes of the job itself: below its supervisors, by their environment, and in its control groups."""
    found = process_tree.processes_with(f"LYNCEUS_RESULT={os.path.join(directory, files.RESULT)}")
    found |= process_tree.processes_of(run) if run else set()
    found |= limits.processes_in(list(groups))
    supervisors = supervisors_of(directory)
    for one in supervisors:
        found |= process_tree.descendants(one)
    return {process for process in found - supervisors if not process_tree.is_dead(process)}


def end_processes(directory: str, run: str = "", groups: Iterable[str] = ()) -> bool:
    """Kill all processes of the job; true if nothing is left."""
    groups = [*groups, *(limits.groups_of(run) if run else ())]
    all_killed = process_tree.kill_all(lambda: job_processes(directory, run, groups))
    with contextlib.suppress(OSError):
        limits.remove_groups(groups)
    return all_killed


def end_run(directory: str, run: str = "", groups: Iterable[str] = ()) -> bool:
    """Kill all processes of the job, then its supervisor and its guard; true if nothing is left.

    In this order, because a daemon that has no environment and no control group is found below its supervisor only.
    """
    all_killed = end_processes(directory, run, groups)
    return process_tree.kill_all(lambda: supervisors_of(directory)) and all_killed


def end_by_force(directory: str) -> bool:
    """End a run whose supervisor need not, or does not, answer; true if nothing is left. How long it lasted is noted for its outcome."""
    request = files.read_json(os.path.join(directory, files.REQUEST)) or {}
    started = files.read_json(os.path.join(directory, files.STARTED)) or {}
    run, groups = str(request.get("run", "")), started.get("groups", ())
    if started.get("boot") == files.boot_id() and job_processes(directory, run, groups):
        with contextlib.suppress(OSError):
            alive = files.open_regular(os.path.join(directory, files.ALIVE), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            with open(alive, "w", encoding="utf-8") as file:
                file.write(f"{time.monotonic() - started['monotonic_s']:.3f}")
    return end_run(directory, run, groups)


def end_lost_run(directory: str) -> float | None:
    """End a run whose directory is gone; returns for how many seconds its oldest process had run, None if there was none."""
    found = job_processes(directory)
    runs = {
        entry.partition(b"=")[2].decode("ascii", "replace")
        for process in found
        for entry in process_tree.environment_of(process)
        if entry.startswith(process_tree.RUN_VARIABLE.encode() + b"=")
    }
    ages = [age for one in found if (age := process_tree.age_s(one)) is not None]
    for run in runs or {""}:
        end_run(directory, run)
    return max(ages, default=None)

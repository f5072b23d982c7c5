"""Checks of scratch directories: what `copy` and `link` name exists, trials find their files, and parallel trials do not share any."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from lynceus.errors import InputError
from lynceus.executors.run_directory import not_brought_in
from lynceus.executors.supervisor.scratch import NoMatchError, ScratchError, matches
from lynceus.jobfile.executor import job_command
from lynceus.jobfile.job import Job
from lynceus.jobfile.run_folder import run_root
from lynceus.jobfile.variables import SHELLS
from lynceus.jobfile.written_files import written_files

_KEPT_BY = ("local", "slurm")
"""Executors whose run directories stay where the trials ran."""
_WORD = re.compile(r"[\w./\-]+", re.ASCII)


def check_scratch(job: Job) -> None:
    """Refuse patterns that match nothing or lead out of the working directory, and directories that cannot be kept."""
    trial = job.spec.trial
    with job.at("trial", "keep_scratch"):
        if trial.keep_scratch and job.spec.executor.kind not in _KEPT_BY:
            raise InputError(
                f"the nodes of {job.spec.executor.kind} are left clean, so nothing can be kept there; "
                "let the job copy what you need to a place of your own."
            )
    for (field, index), problem in _problems(job):
        missing = isinstance(problem, NoMatchError)
        if not missing or job.spec.setup is None:
            advice = (
                "correct the pattern, or create the file." if missing else "take it out, or let the job use its path."
            )
            with job.at("trial", field, index):
                raise InputError(f"{problem}; {advice}")


def scratch_notes(job: Job) -> list[str]:
    """Sentences about trials that would lack files, or disturb each other."""
    trial = job.spec.trial
    notes = [
        f"trial.{field}: {problem}; setup has to create it."
        for (field, _), problem in _problems(job)
        if job.spec.setup is not None
    ]
    return [*notes, *(_missing_files(job) if trial.scratch == "cwd" else ()), *_shared_files(job)]


def _problems(job: Job) -> Iterator[tuple[tuple[str, int], ScratchError]]:
    """(field, index) of each pattern that brings in nothing, and why."""
    trial = job.spec.trial
    if not (trial.copy_ or trial.link) or not job.has_command:
        return
    without = not_brought_in(job_command(job, {}), run_root(job))
    for field, patterns in (("copy", trial.copy_), ("link", trial.link)):
        for index, pattern in enumerate(patterns):
            try:
                matches(str(job.workdir), pattern, without)
            except ScratchError as error:
                yield (field, index), error


def _missing_files(job: Job) -> list[str]:
    """Notes about files of the working directory that the command names, but that trials do not find in their own."""
    if not job.has_command:
        return []
    trial, run = job.spec.trial, job.command
    brought: set[str] = set()
    for pattern in (*trial.copy_, *trial.link):
        try:
            brought |= set(matches(str(job.workdir), pattern))
        except ScratchError:
            continue
    words = _WORD.findall(run) if isinstance(run, str) else list(run)
    notes = []
    for word in dict.fromkeys(os.path.normpath(one) for one in words if one):
        if word in (".", "..") or os.path.isabs(word) or not (job.workdir / word).is_file():
            continue
        if not any(word == one or word.startswith(f"{one}/") for one in brought):
            notes.append(
                f"run: {word} is in the working directory, but trials are started in directories of their own (scratch: cwd), "
                f"where it is missing; add it to trial.copy or trial.link."
            )
    return notes


def _shared_files(job: Job) -> list[str]:
    """Notes about files that parallel trials would overwrite for each other."""
    trial = job.spec.trial
    if trial.parallel == 1 or not job.has_command:
        return []
    own = trial.scratch == "cwd"
    shared = [one for one in written_files(job.command, SHELLS) if not own or one.startswith(("/", "~"))]
    if shared:
        names = ", ".join(shared)
        advice = "write it below $LYNCEUS_SCRATCH, which differs from trial to trial"
        advice += "" if own else ", or add trial.scratch: cwd, which starts every trial in a directory of its own"
        return [f"run: {trial.parallel} trials at a time would all write {names} and overwrite each other; {advice}."]
    uses_scratch = "LYNCEUS_SCRATCH" in (job.command if isinstance(job.command, str) else " ".join(job.command))
    if own or uses_scratch or "scratch" in trial.model_fields_set:
        return []
    return [
        f"trial: {trial.parallel} trials at a time share one working directory; with trial.scratch: cwd each is started in one of its own "
        "(trial.copy and trial.link bring files in), so that none can overwrite what another writes."
    ]

"""The probe of a job: small samples of its input on this machine before its study begins. Nothing of it is charged.

A study never fails because of its probe: what cannot be run or fitted is left out, and one sentence says so.
"""

from __future__ import annotations

import contextlib
import secrets as random_names
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from lynceus.errors import LynceusError
from lynceus.executors.interface import Request
from lynceus.executors.local import LocalExecutor
from lynceus.jobfile.executor import job_command
from lynceus.jobfile.prepared_study import PreparedStudy
from lynceus.jobfile.run_folder import owner_folder, run_root
from lynceus.jobfile.secrets import secrets_of
from lynceus.jobfile.setup_command import run_setup_in
from lynceus.models.memory_need import MemoryNeed, memory_need, need_as_history
from lynceus.policy.informed import can_learn, informed
from lynceus.trial.outcome import End, Outcome

_POLL_S = 0.05


def with_probe(prepared: PreparedStudy) -> tuple[PreparedStudy, tuple[str, ...]]:
    """The study with what its probe says as a part of its history, and a sentence about it; unchanged without `probe`."""
    section = prepared.job.spec.probe
    if section is None or prepared.problem.fraction is None:
        return prepared, ()
    try:
        need, reason = _probed(prepared, section.shares, section.timeout)
    except LynceusError as error:
        need, reason = None, str(error)
    if need is None:
        return prepared, (f"probe: {reason.rstrip('.')}; it is not used",)
    past = need_as_history(prepared.problem.space, need, prepared.problem.fraction)
    if past is None:
        why = (
            ""
            if need.kind != "linear"
            else "; no column of the space says how much memory that leaves, or most have it"
        )
        return prepared, (f"probe: {need}{why}; it is not used",)
    history = (*prepared.problem.history, past)
    problem = replace(prepared.problem, history=history)
    policy = informed(prepared.policy) if can_learn(prepared.policy, problem) else prepared.policy
    job = replace(prepared.job, past=history)
    return replace(prepared, job=job, problem=problem, policy=policy), (f"probe: {need}",)


def _probed(prepared: PreparedStudy, shares: list[float], timeout_s: float) -> tuple[MemoryNeed | None, str]:
    """Run the samples one after the other; None, and why, where fewer than two finished."""
    used: list[tuple[float, float, float]] = []
    last = "no sample was measured"
    with _samples(prepared, timeout_s) as run:
        for number, share in enumerate(shares):
            outcome = run.outcome(number, share)
            if outcome.end is End.FINISHED and outcome.usage is not None:
                used.append((share, outcome.usage.peak_memory_bytes, outcome.seconds))
            else:
                last = f"the sample of {share:g} of the input did not finish: {outcome.detail or outcome.end}"
    if len(used) < 2:
        return None, last
    return memory_need(*zip(*used, strict=True)), ""


class _Samples:
    """Runs of the job on this machine, in the cheapest configuration."""

    def __init__(
        self, prepared: PreparedStudy, executor: LocalExecutor, name: str, identity: str, timeout_s: float
    ) -> None:
        self._problem, self._executor, self._timeout_s = prepared.problem, executor, timeout_s
        self._name, self._identity = name, identity
        self._row = int(np.argmin(prepared.problem.price))

    def outcome(self, number: int, share: float) -> Outcome:
        """How a sample ended; an interrupted caller leaves nothing running."""
        params: Mapping[str, object] = {**self._problem.space.point(self._row), str(self._problem.fraction): share}
        request = Request(self._name, number, self._row, params, self._timeout_s, False, self._identity)
        ticket = self._executor.launch(request)
        try:
            while (found := self._executor.collect(ticket)) is None:
                time.sleep(_POLL_S)
            return found
        except BaseException:
            self._executor.cancel(ticket)
            raise


@contextlib.contextmanager
def _samples(prepared: PreparedStudy, timeout_s: float) -> Iterator[_Samples]:
    """What runs samples, after `setup`; its files are removed afterwards."""
    job, identity = prepared.job, random_names.token_hex(4)
    name = f"{job.name}-probe"
    folder, secrets = owner_folder(job, name, identity), secrets_of(job)
    executor = LocalExecutor(prepared.problem, job_command(job, secrets), run_root(job).resolve())
    try:
        run_setup_in(folder, name, job, secrets, lambda said: None)
        yield _Samples(prepared, executor, name, identity, timeout_s)
    finally:
        executor.close()
        _remove(folder)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # other studies have runs there
        folder.parent.rmdir()

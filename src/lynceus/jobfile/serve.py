"""Checks of the section `serve`: the server is told its port, and what the load names exists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from lynceus.errors import InputError, hint
from lynceus.executors.placeholders import names_in
from lynceus.executors.serve import NAMES, Requests, serve_record
from lynceus.jobfile.checks import check_placeholders
from lynceus.jobfile.job import Job
from lynceus.space.parameter import Categorical
from lynceus.space.table import Space


def check_serve(job: Job, space: Space) -> None:
    """Refuse a server that cannot know its port, and a load that would fail in every trial."""
    section = job.spec.serve
    if section is None:
        return
    parameters = {parameter.name: parameter for parameter in space.parameters}
    with job.at("serve", "command"):
        words = section.command if isinstance(section.command, list) else [section.command]
        told = any(name in word for word in words for name in ("${port}", "$port", "LYNCEUS_PORT"))
        if not told and section.port is None:
            raise InputError(
                "the server is not told on which port to listen; write ${port} among its arguments, such as [--port, '${port}'], "
                "or give its own port as serve.port."
            )
        if section.port is not None and told:
            raise InputError("it uses ${port}, so it needs no serve.port; remove one of them.")
    with job.at("serve", "port"):
        if section.port is not None and job.spec.trial.parallel > 1 and job.spec.executor.kind == "local":
            raise InputError(
                f"{job.spec.trial.parallel} trials at a time cannot all listen on port {section.port}; let the server listen on "
                "${port}, or set trial.parallel to 1."
            )
    for name in ("rate", "concurrency", "prompt_tokens", "output_tokens", "prompts", "model", "results"):
        value = getattr(section.load, name)
        if isinstance(value, str):
            with job.at("serve", "load", name):
                check_placeholders(value, parameters, (*NAMES, "LYNCEUS_SCRATCH") if name == "results" else ())
    _check_ramp(job, space)
    serve = section.serve(job.spec.seed)
    load = serve.load
    if isinstance(load, Requests) and any(
        isinstance(value, str) for value in (load.rate, load.concurrency, load.prompt_tokens, load.output_tokens)
    ):
        with job.at("serve", "load"):
            for row in range(len(space)):
                serve_record(serve, space.point(row), shell=job.spec.shell)


def _check_ramp(job: Job, space: Space) -> None:
    """Refuse a ramp over a parameter that is no load: the server reads it, its values have no order, or it changes the price."""
    section = job.spec.serve
    if section is None or section.ramp is None:
        return
    name = section.ramp.parameter
    with job.at("serve", "ramp"):
        place = next((place for place, one in enumerate(space.parameters) if one.name == name), None)
        if place is None:
            raise InputError(f"there is no parameter {name!r}{hint(name, [one.name for one in space.parameters])}")
        if isinstance(space.parameters[place], Categorical):
            raise InputError(
                f"the values of {name!r} have no order, so none is a higher load; make it ordinal or integer."
            )
        read = [section.command] if isinstance(section.command, str) else section.command
        if any(f"${{{name}}}" in word or f"${name}" in word for word in read):
            raise InputError(
                f"the server's command reads {name!r}, so another value of it needs another server; use it in the load alone."
            )
        loads = (
            section.load.command,
            section.load.rate,
            section.load.concurrency,
            section.load.prompt_tokens,
            section.load.output_tokens,
        )
        if not any(name in names_in(one) for one in _texts(loads)):
            raise InputError(f"the load does not read {name!r}; write it there, such as concurrency: '${{{name}}}'.")
        keys = np.delete(space.codes, place, axis=1)
        _, group = np.unique(keys, axis=0, return_inverse=True)
        group = group.reshape(-1)
        highest, lowest = np.full(group.max() + 1, -np.inf), np.full(group.max() + 1, np.inf)
        np.maximum.at(highest, group, space.price_per_second)
        np.minimum.at(lowest, group, space.price_per_second)
        if not np.allclose(highest, lowest):
            raise InputError(
                f"the price depends on {name!r}, so its values are no loads of one server; take it out of the price."
            )


def _texts(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from value


def check_prompts(job: Job) -> None:
    """Refuse a file of prompts that does not exist, where trials run here."""
    section = job.spec.serve
    if section is None or not section.load.prompts or "${" in section.load.prompts:
        return
    if job.spec.executor.kind != "local" or job.spec.setup is not None or job.spec.trial.scratch == "cwd":
        return
    with job.at("serve", "load", "prompts"):
        if not (job.workdir / section.load.prompts).is_file():
            raise InputError(
                f"there is no file {section.load.prompts!r} in {job.workdir}; create it, or correct its name."
            )

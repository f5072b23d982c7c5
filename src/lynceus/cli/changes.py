"""A job file that was edited after its study began: what the study takes over, what it refuses, and what it only mentions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import typer

from lynceus.errors import InputError
from lynceus.job import Job
from lynceus.ledger.sql import Storage, StudyRecord, fingerprint
from lynceus.problem import Goal

_FREE = frozenset({"run", "shell", "setup", "workdir", "envs", "secrets", "metrics", "baseline", "notify", "trial"})
"""What later trials may do otherwise: it says how the job runs, not which question the study answers."""
_OF_THE_POLICY = frozenset({("trial", "timeout"), ("trial", "max_duration")})
_PRICES = frozenset({"price", "prices"})
_ELSEWHERE = frozenset({"version", "name", "storage"})
"""What found the study, rather than belongs to it."""
_SHOWN = 60
"""Characters of a value that a message repeats."""


@dataclass(frozen=True)
class Change:
    """One field of a job file that is not what the study keeps."""

    path: tuple[str, ...]
    before: str
    """In the study, as its job file had it."""
    after: str
    adoptable: bool
    """Whether trials from now on may follow the file."""

    @property
    def field(self) -> str:
        """Where it stands: `budget.cost`."""
        return ".".join(self.path)

    def __str__(self) -> str:
        return f"{self.field}: {self.before} → {self.after}"


def changes(job: Job, record: StudyRecord) -> tuple[Change, ...]:
    """Every field in which a job file differs from the job that a study keeps; spellings of the same value do not count."""
    stored = Job.from_stored(record.document)
    # Both as the storage gives them back: keys of mappings are texts there.
    before, after = stored.spec.model_dump(), Job.from_stored(job.stored()).spec.model_dump()
    catalog = stored.spec.resources.from_catalog or job.spec.resources.from_catalog
    found = []
    for path in _differing(before, after):
        if path[0] in _ELSEWHERE or _is_so_already(path, job, stored, record):
            continue
        free = (path[0] in _FREE and path not in _OF_THE_POLICY) or (path[0] == "resources" and not catalog)
        found.append(Change(path, _shown(stored, before, path), _shown(job, after, path), free))
    if stored.folder != job.folder:
        found.append(Change(("folder",), str(stored.folder), str(job.folder), adoptable=True))
    return tuple(found)


def tell_changes(storage: Storage, record: StudyRecord, job: Job) -> StudyRecord:
    """For those who only look: say that the answer is about the study's own job, where the file says something else."""
    if "job" not in record.document:
        _say(f"{job.document.name}: study {record.name!r} was made by a program, not from this file.")
    elif found := changes(job, record):
        _say(
            f"{job.document.name} has changed since ({_fields(found)}); this is about the job as study {record.name!r} keeps it."
        )
    return record


def adopt_changes(storage: Storage, record: StudyRecord, job: Job) -> StudyRecord:
    """For those who go on: take over how trials run, for good; refuse what would make the study another one."""
    from lynceus.job.prepare import prepare
    from lynceus.job.problem import problem_of

    if "job" not in record.document:
        raise InputError(
            f"{job.document.name}: study {record.name!r} in {storage.shown_url} was made by a program, not from this file; "
            "give the job another name."
        )
    found = changes(job, record)
    refuse_changes(job, record, [one for one in found if not one.adoptable])
    if not found:
        return record
    stored = Job.from_stored(record.document)
    kept = replace(job, machines=stored.machines, table=stored.table)
    prepare(kept)  # its mistakes are told with the file's own lines
    document = _merged(record.document, kept.stored(), {one.path[0] for one in found})
    if fingerprint(problem_of(Job.from_stored(document))) != record.fingerprint:
        raise InputError(
            f"{job.document.name}: a table that it reads differs from the one of study {record.name!r} in {storage.shown_url}; "
            "restore it, or give the job another name."
        )
    record = storage.revise(record.name, document=document, changes=[str(one) for one in found])
    _say(
        f"{record.name}: trials from now on follow the changed file ({_fields(found)}); earlier ones ran as it was before."
    )
    return record


def _merged(mine: Mapping[str, Any], theirs: Mapping[str, Any], fields: set[str]) -> dict[str, Any]:
    """The stored job with these fields of another one, so that nothing else slips in."""
    job = {name: value for name, value in mine["job"].items() if name not in fields}
    job |= {name: value for name, value in theirs["job"].items() if name in fields}
    return {**mine, "job": job, "folder": theirs["folder"]}


def refuse_changes(job: Job, record: StudyRecord, refused: Sequence[Change]) -> None:
    """Say which fields a study keeps for its whole life, if these are any."""
    if not refused:
        return
    said = ", ".join(f"{one.field} is {one.after} here and {one.before} in the study" for one in refused)
    ways = "restore the file, or give the job another name"
    if any(one.path == ("budget", "cost") for one in refused):
        ways += f"; for more money leave it and say: lynceus resume {record.name} --add-budget '5 USD'"
    if any(one.path[0] in _PRICES for one in refused):
        ways += f"; if only prices differ: lynceus prices apply {job.document.name}"
    raise InputError(f"{job.document.name}: {said}, and {record.name!r} keeps it for its whole life; {ways}.")


def beside_prices(job: Job, record: StudyRecord) -> list[Change]:
    """What would slip into a study together with its new prices."""
    return [one for one in changes(job, record) if one.path[0] not in _PRICES and not one.adoptable]


def _is_so_already(path: tuple[str, ...], job: Job, stored: Job, record: StudyRecord) -> bool:
    """Whether the file has caught up with what the study was told by options: its policy, its seed, more money."""
    if path[0] == "seed":
        return job.spec.seed == record.seed
    if path[0] == "objective":
        return Goal.parse(job.spec.objective) == Goal.parse(stored.spec.objective)
    if path == ("budget", "cost"):
        before, after = stored.spec.budget.cost, job.spec.budget.cost
        return before is not None and after is not None and abs(before + record.added_usd - after) < 1e-9
    if path[0] == "policy":
        from lynceus.job.prepare import policy_of
        from lynceus.policy.compose import describe

        return describe(policy_of(job)) == dict(record.policy)
    return False


def _differing(one: Any, other: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if one == other:
        return
    # A policy or a parameter is read as a whole.
    if isinstance(one, Mapping) and isinstance(other, Mapping) and (not path or path[0] != "policy") and len(path) < 2:
        for name in dict.fromkeys([*one, *other]):
            yield from _differing(one.get(name), other.get(name), (*path, str(name)))
    else:
        yield path


def _shown(job: Job, dumped: Any, path: tuple[str, ...]) -> str:
    """A value in the words of its file, or the value that counts where the file says it in another way or not at all."""
    counting, written = _within(dumped, path), _within(job.document.tree.value, path)
    if counting is None:
        return "not given"
    text = " ".join(str(counting if written is None else written).split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _within(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _fields(found: Sequence[Change]) -> str:
    return ", ".join(one.field for one in found)


def _say(text: str) -> None:
    typer.echo(text, err=True)

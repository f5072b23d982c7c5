"""A job file that was edited after its study began: what the study adopts, what it refuses, and what it only mentions."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.problem.objective import Constraint, Objective
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage, fingerprint

_ADOPTABLE = frozenset(
    {
        "run",
        "shell",
        "setup",
        "workdir",
        "envs",
        "secrets",
        "metrics",
        "baseline",
        "family",
        "future",
        "input",
        "notify",
        "owner",
        "project",
        "tracking",
        "trial",
    }
)
"""Sections that later trials may follow: they say how the job runs, not which question the study answers."""
_OF_THE_POLICY = frozenset({("trial", "timeout"), ("trial", "max_duration")})
_PRICES = frozenset({"price", "prices"})
_IGNORED = frozenset({"version", "name", "storage"})
"""Fields that find the study and are not part of it."""
_LONGEST_VALUE = 60
"""Characters of a value in a message."""


@dataclass(frozen=True)
class Change:
    """One field in which a job file differs from the job of its study."""

    path: tuple[str, ...]
    before: str
    """In the study, as its job file had it."""
    after: str
    adoptable: bool
    """Whether later trials may follow the file."""

    @property
    def field(self) -> str:
        """The path with dots: `budget.cost`."""
        return ".".join(self.path)

    def __str__(self) -> str:
        return f"{self.field}: {self.before} → {self.after}"


def changes(job: Job, record: StudyRecord) -> tuple[Change, ...]:
    """Every field in which a job file differs from the job of a study; other spellings of the same value do not count."""
    stored = Job.from_stored(record.document)
    # Both as the storage returns them: keys of mappings are strings there.
    before, after = stored.spec.model_dump(), Job.from_stored(job.stored()).spec.model_dump()
    catalog = stored.spec.resources.from_catalog or job.spec.resources.from_catalog
    found = []
    for path in _differing(before, after):
        if path[0] in _IGNORED or _already_so(path, job, stored, record):
            continue
        adoptable = (path[0] in _ADOPTABLE and path not in _OF_THE_POLICY) or (path[0] == "resources" and not catalog)
        found.append(Change(path, _shown(stored, before, path), _shown(job, after, path), adoptable))
    if stored.folder != job.folder:
        found.append(Change(("folder",), str(stored.folder), str(job.folder), adoptable=True))
    return tuple(found)


def changes_note(record: StudyRecord, job: Job) -> str | None:
    """What to tell a reader whose job file differs from the job of the study; None when they agree."""
    if "job" not in record.document:
        return f"{job.document.name}: study {record.name!r} was created by a program, not from this file."
    found = changes(job, record)
    if not found:
        return None
    return f"{job.document.name} has changed since ({_fields(found)}); this is about the stored job of study {record.name!r}."


def adopt_changes(storage: Storage, record: StudyRecord, job: Job) -> tuple[StudyRecord, str | None]:
    """Let later trials follow an edited job file, for good, and refuse edits that would make it another study.

    Returns the record from now on, and what to tell the user.
    """
    from lynceus.jobfile.prepared_study import prepare  # loads policies, which readers of this module do without
    from lynceus.jobfile.problem import problem_of

    if "job" not in record.document:
        raise InputError(
            f"{job.document.name}: study {record.name!r} in {storage.shown_url} was created by a program, not from this file; "
            "give the job another name."
        )
    found = changes(job, record)
    refuse_changes(job, record, [change for change in found if not change.adoptable])
    if not found:
        return record, None
    stored = Job.from_stored(record.document)
    kept = replace(job, machines=stored.machines, table=stored.table, past=stored.past)
    prepare(kept)  # reports mistakes with the lines of the file
    document = _merged(record.document, kept.stored(), {change.path[0] for change in found})
    if fingerprint(problem_of(Job.from_stored(document))) != record.fingerprint:
        raise InputError(
            f"{job.document.name}: a table that it reads differs from the one of study {record.name!r} in {storage.shown_url}; "
            "restore it, or give the job another name."
        )
    record = storage.revise(record.name, document=document, changes=[str(change) for change in found])
    note = f"{record.name}: trials from now on follow the changed file ({_fields(found)}); earlier ones ran as it was before."
    return record, note


def refuse_changes(job: Job, record: StudyRecord, refused: Sequence[Change]) -> None:
    """Raise an error that names the changed fields which a study keeps for its whole life; does nothing without any."""
    if not refused:
        return
    said = ", ".join(f"{change.field} is {change.after} here and {change.before} in the study" for change in refused)
    found = {change.path: _resume_options(change, job, record) for change in refused}
    options = " ".join(dict.fromkeys(option for text in found.values() for option in text))
    command = f"lynceus resume {record.name} {options}"
    other = "restore the file, or give the job another name"
    kept = [change.field for change in refused if not found[change.path] or _drops_limits(change, job, record)]
    if not kept:
        raise InputError(f"{job.document.name}: {said}; to go on so, run: {command}; otherwise {other}.")
    fixes = other + (f"; the other changes can be made with: {command}" if options else "")
    if any(change.path[0] in _PRICES for change in refused):
        fixes += f"; if only prices differ: lynceus prices apply {job.document.name}"
    raise InputError(
        f"{job.document.name}: {said}, and {record.name!r} keeps {' and '.join(kept)} for its whole life; {fixes}."
    )


def _drops_limits(change: Change, job: Job, record: StudyRecord) -> bool:
    """Whether the file lacks a limit that the study has: `resume` changes and adds limits, and removes none."""
    wanted = {(one.metric, one.at_least) for one in _limits(job)}
    return change.path[0] == "constraints" and any(
        (one.metric, one.at_least) not in wanted for one in _present_limits(record)
    )


def _present_limits(record: StudyRecord) -> tuple[Constraint, ...]:
    return record.limit_changes[-1].after if record.limit_changes else _limits(Job.from_stored(record.document))


def _resume_options(change: Change, job: Job, record: StudyRecord) -> list[str]:
    """The options of `lynceus resume` with which a study gets what the file says; empty where none does."""
    if change.path[0] == "constraints":
        present = _present_limits(record)
        return [
            f"--constraint {shlex.quote(text)}"
            for text in job.spec.constraints
            if Constraint.parse(text) not in present
        ]
    before, after = Job.from_stored(record.document).spec.budget, job.spec.budget
    if change.path == ("budget", "cost") and before.cost is not None and after.cost is not None:
        more = after.cost - before.cost - record.added_usd
        return [f"--add-budget '{more:.9f}".rstrip("0").rstrip(".") + " USD'"] if more > 0 else []
    if change.path == ("budget", "max_trials") and before.max_trials is not None and after.max_trials is not None:
        trials = after.max_trials - before.max_trials - record.added_trials
        return [f"--add-trials {trials}"] if trials > 0 else []
    return []


def changes_besides_prices(job: Job, record: StudyRecord) -> list[Change]:
    """Changes that a study must refuse, other than those of prices."""
    return [change for change in changes(job, record) if change.path[0] not in _PRICES and not change.adoptable]


def _merged(mine: Mapping[str, Any], theirs: Mapping[str, Any], fields: set[str]) -> dict[str, Any]:
    """The stored job with only these fields of another one."""
    job = {name: value for name, value in mine["job"].items() if name not in fields}
    job |= {name: value for name, value in theirs["job"].items() if name in fields}
    return {**mine, "job": job, "folder": theirs["folder"]}


def _already_so(path: tuple[str, ...], job: Job, stored: Job, record: StudyRecord) -> bool:
    """Whether the file only says what options have already made true: another policy or seed, added money."""
    if path[0] == "seed":
        return job.spec.seed == record.seed
    if path[0] == "constraints":
        own, present = _limits(job), record.limit_changes[-1].after if record.limit_changes else _limits(stored)
        return own == present
    if path[0] == "objective":
        return Objective.parse(job.spec.objective) == Objective.parse(stored.spec.objective)
    if path == ("budget", "cost"):
        before, after = stored.spec.budget.cost, job.spec.budget.cost
        return before is not None and after is not None and abs(before + record.added_usd - after) < 1e-9
    if path == ("budget", "max_trials"):
        trials, wanted = stored.spec.budget.max_trials, job.spec.budget.max_trials
        return trials is not None and trials + record.added_trials == wanted
    if path[0] == "policy":
        from lynceus.jobfile.prepared_study import policy_of
        from lynceus.policy.policy_file import describe

        return describe(policy_of(job)) == dict(record.policy)
    return False


def _limits(job: Job) -> tuple[Constraint, ...]:
    return tuple(map(Constraint.parse, job.spec.constraints))


def _differing(one: Any, other: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if one == other:
        return
    # A policy or a parameter is compared as a whole.
    if isinstance(one, Mapping) and isinstance(other, Mapping) and (not path or path[0] != "policy") and len(path) < 2:
        for name in dict.fromkeys([*one, *other]):
            yield from _differing(one.get(name), other.get(name), (*path, str(name)))
    else:
        yield path


def _shown(job: Job, dumped: Any, path: tuple[str, ...]) -> str:
    """A value as its file writes it, or as it counts where the file writes it elsewhere or not at all."""
    effective, written = _within(dumped, path), _within(job.document.tree.value, path)
    if effective is None:
        return "not given"
    text = " ".join(str(effective if written is None else written).split())
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _within(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _fields(found: Sequence[Change]) -> str:
    return ", ".join(change.field for change in found)

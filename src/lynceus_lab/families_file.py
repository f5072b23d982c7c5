"""The YAML file of `lynceus lab families`: families of jobs, and the variants of a policy to compare on them.

A variant is a preset, a policy made of parts, or a preset with some values set. In a value, `$PATH` stands for what the preset has at
PATH: `choose: {kind: not-far-behind, chooser: $choose}` puts a part around another one, `choose: $choose.chooser` takes it off.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from lynceus.errors import InputError, hint
from lynceus.jobfile.yaml.document import Document
from lynceus.policy.policy_file import compose, describe
from lynceus.policy.presets import preset
from lynceus.problem.fields import Section
from lynceus.replay.job_file import DeadlineSpec
from lynceus.replay.run import Until
from lynceus.replay.tables import data_folder
from lynceus_lab.cell import Setting
from lynceus_lab.experiment import policy_text, resolve_jobs
from lynceus_lab.experiment_file import ArmSpec, OptionsSpec

SHIPPED = Path(__file__).parent / "families.yaml"
AS_GIVEN = "as given"
"""The deadline of a job whose own limits are kept."""
_DIGITS = 12


class FamilySpec(Section):
    """Jobs of one kind; together they count once."""

    jobs: str
    """A pattern of shipped jobs such as `scout/*`, or of job files (`….yaml`) beside the document or in the data folder."""
    deadlines: list[Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=list)
    """Quantiles of the measured times, each a case of its own; none: the limits of the job files."""


class VariantSpec(ArmSpec):
    """A policy of an experiment, or a preset with some values set."""

    set: dict[str, Any] = Field(default_factory=dict)
    """Path in the preset's policy file (`surrogate.slope`, `choose.1.ample`) → the new value."""


class FamiliesSpec(Section):
    """Families × deadlines × policies."""

    families: dict[str, FamilySpec] = Field(min_length=1)
    baseline: str | VariantSpec = "sweep"
    """The policy that all ratios are relative to."""
    rivals: dict[str, str | VariantSpec] = Field(default_factory=dict)
    """Label → further policies that a variant must not lose to; they are never chosen."""
    variants: dict[str, str | VariantSpec] = Field(min_length=1)
    """Label → preset or details."""


@dataclass(frozen=True, order=True)
class Case:
    """A job under one deadline."""

    family: str
    job: str
    """Such as `scout/join_bigdata_spark`; the same on every machine."""
    deadline: str
    """The quantile of the times, or `as given`."""
    rows: float = 1.0
    """The share of the table's rows that each seed draws."""


@dataclass(frozen=True)
class Source:
    """Where the job of a case is read from."""

    job: str
    """The name of a shipped job, or the path of its file."""
    options: OptionsSpec

    def with_rows(self, share: float) -> Source:
        """The same job, of whose rows each seed draws a share."""
        return Source(self.job, self.options.model_copy(update={"rows": share}))


@dataclass(frozen=True)
class Families:
    """A declared comparison with all names resolved."""

    cases: Mapping[Case, Source]
    baseline: str
    rivals: tuple[str, ...]
    variants: tuple[str, ...]
    policies: Mapping[str, str]
    """Label → the policy as settings hold it; the baseline comes first, then rivals, then variants."""

    @cached_property
    def families(self) -> list[str]:
        """Names of the families, in order."""
        return list(dict.fromkeys(case.family for case in self.cases))

    def setting(self, case: Case, label: str, until: Until) -> Setting:
        """What is replayed for a case and a policy."""
        source = self.cases[case]
        return Setting(source.job, self.policies[label], source.options, until=until)


def load_families(
    path: Path = SHIPPED,
    families: Sequence[str] = (),
    policies: Sequence[str] = (),
    *,
    variants_only: bool = False,
    rows: float = 1.0,
) -> Families:
    """Families and policies from a file, by default the one that ships with the lab; all of them, or those that are named.

    The baseline is always among the policies, unless only variants are wanted: stopping rules are compared with each other.
    With `rows` below 1, each seed replays a random share of the rows of a table.
    """
    document = Document.read(path)
    spec = document.check(FamiliesSpec)
    arms = _arms(document, spec)
    baseline = next(iter(arms))
    _check_known("--families", families, list(spec.families))
    _check_known("--policies", policies, list(spec.variants if variants_only else arms))
    cases: dict[Case, Source] = {}
    for name, family in spec.families.items():
        if not families or name in families:
            cases |= _cases(name, family, path.parent, document.at("families", name, "jobs"))
    if rows < 1.0:
        cases = {replace(case, rows=rows): source.with_rows(rows) for case, source in cases.items()}
    wanted = set(policies or (spec.variants if variants_only else arms)) | (set() if variants_only else {baseline})
    texts = {label: variant_text(arm, where) for label, (arm, where) in arms.items() if label in wanted}
    rivals, variants = (tuple(label for label in group if label in texts) for group in (spec.rivals, spec.variants))
    return Families(cases, baseline, rivals, variants, texts)


def _arms(document: Document, spec: FamiliesSpec) -> dict[str, tuple[str | VariantSpec, str]]:
    """Label → policy and its place in the document; the baseline comes first."""
    baseline = "baseline" if isinstance(spec.baseline, VariantSpec) else spec.baseline
    arms: dict[str, tuple[str | VariantSpec, str]] = {baseline: (spec.baseline, document.at("baseline"))}
    for field, group in (("rivals", spec.rivals), ("variants", spec.variants)):
        for label, arm in group.items():
            if label in arms:
                raise InputError(f"{document.at(field, label)}: there are two policies {label!r}; rename one of them.")
            arms[label] = (arm, document.at(field, label))
    return arms


def variant_text(arm: str | VariantSpec, where: str) -> str:
    """A variant as the text that its settings hold."""
    if isinstance(arm, str) or not arm.set:
        return policy_text(arm, where)
    try:
        if arm.preset is None:
            raise InputError("'set' changes a preset, and none is given; add 'preset'.")
        before = describe(preset(arm.preset, arm.lookahead, arm.timeout))
        return json.dumps(describe(compose(changed(before, arm.set))))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def changed(policy: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A policy in plain data with some values replaced; `$PATH` in a value is what the policy had at PATH.

    >>> changed({"surrogate": {"slope": -0.5}, "choose": "by-price"}, {"surrogate.slope": -0.6, "choose": ["uniform", "$choose"]})
    {'surrogate': {'slope': -0.6}, 'choose': ['uniform', 'by-price']}
    """
    after = copy.deepcopy(dict(policy))
    for path, value in changes.items():
        *above, last = path.split(".")
        parent = _at(after, above, path)
        place = _key(parent, last, path)
        parent[place] = _resolved(value, policy)
    return after


def policy_hash(text: str) -> str:
    """A short hash of what a policy does, whatever its name; policies under two labels share their results."""
    if not text.startswith("peer:"):
        text = json.dumps({**json.loads(text), "name": ""}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _resolved(value: Any, policy: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        path = value.removeprefix("$")
        return copy.deepcopy(_at(policy, path.split("."), path))
    if isinstance(value, list):
        return [_resolved(item, policy) for item in value]
    if isinstance(value, dict):
        return {key: _resolved(item, policy) for key, item in value.items()}
    return value


def _at(tree: Any, steps: Sequence[str], path: str) -> Any:
    for step in steps:
        key = _key(tree, step, path)
        if isinstance(tree, dict) and key not in tree:
            raise InputError(f"{path}: the preset has no {step!r} there{hint(step, tree)}")
        tree = tree[key]
    return tree


def _key(tree: Any, step: str, path: str) -> Any:
    """The key of a mapping, or the position in a list."""
    if isinstance(tree, dict):
        return step
    if isinstance(tree, list) and step.isdigit() and int(step) < len(tree):
        return int(step)
    kind = f"a list of {len(tree)} parts" if isinstance(tree, list) else repr(tree)
    raise InputError(f"{path}: {step!r} does not exist in {kind}; give a path in the preset's policy file.")


def _cases(name: str, family: FamilySpec, beside: Path, where: str) -> dict[Case, Source]:
    jobs = _files(family.jobs, beside, name, where) if family.jobs.endswith(".yaml") else None
    if jobs is None:
        jobs = {job: job for job in resolve_jobs([family.jobs], where)}
    given = {f"{each:g}": OptionsSpec(deadline=DeadlineSpec(quantile=each)) for each in family.deadlines}
    return {
        Case(name, job, deadline): Source(place, options)
        for job, place in jobs.items()
        for deadline, options in (given or {AS_GIVEN: OptionsSpec()}).items()
    }


def _files(pattern: str, beside: Path, family: str, where: str) -> dict[str, str]:
    """Job files by name, beside the document or else in the data folder."""
    folder = data_folder()
    for place in (beside, *([folder] if folder else [])):
        found = sorted(place.glob(pattern))
        if found:
            return {f"{family}/{path.stem}": str(path) for path in found}
    searched = f"neither beside the document nor in {folder}" if folder else "not beside the document"
    raise InputError(
        f"{where}: files {pattern!r} are {searched}; set LYNCEUS_DATA to the folder of the tables, or leave the family out."
    )


def _check_known(option: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"{option}: there is no {name!r}{hint(name, known)}")

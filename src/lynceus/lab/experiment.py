"""Experiments by name: a declared product of jobs, variants, worlds, competitors and seeds."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lynceus.document import Document
from lynceus.document.complaint import hint
from lynceus.errors import InputError
from lynceus.lab.cell import Cell, Setting
from lynceus.lab.peers import peer_named
from lynceus.lab.spec import ArmSpec, ExperimentSpec, OptionsSpec, WorldSpec, chosen
from lynceus.policy import preset
from lynceus.policy.compose import compose, describe
from lynceus.replay import shipped_jobs
from lynceus.replay.job import job_path

_FOLDER = Path(__file__).parent / "experiments"


@dataclass(frozen=True)
class Place:
    """Where a setting stands in its experiment: the coordinates of tables and pictures."""

    job: str
    policy: str
    variant: str = ""
    """Empty where the experiment has none."""


@dataclass(frozen=True)
class Experiment:
    """A declared experiment with every name in it resolved."""

    name: str
    spec: ExperimentSpec
    settings: dict[Place, Setting]
    """Tables' jobs first, then variants, then policies."""

    @property
    def jobs(self) -> list[str]:
        """The jobs' names, patterns resolved."""
        return resolve_jobs(self.spec.jobs, self.name)

    @property
    def variants(self) -> list[str]:
        """Names of variants (and worlds); one empty name where there are none."""
        return list(dict.fromkeys(place.variant for place in self.settings)) or [""]

    @property
    def policies(self) -> list[str]:
        """The competitors' labels in order."""
        return list(self.spec.policies)

    def seeds(self, policy: str, count: int | None = None) -> range:
        """The seeds of a competitor; `count` replaces the experiment's number, not a competitor's smaller own."""
        arm, first = self.spec.policies[policy], self.spec.first_seed
        own = None if isinstance(arm, str) else arm.seeds
        count = self.spec.seeds if count is None else count
        return range(first, first + (count if own is None else min(count, own)))

    def cells(self, seeds: int | None = None, policies: Sequence[str] = ()) -> list[Cell]:
        """Every cell, or those of some policies; seed by seed, so that a campaign which is cut short has all equally far."""
        first, count = self.spec.first_seed, self.spec.seeds if seeds is None else seeds
        return [
            Cell(setting, seed)
            for seed in range(first, first + count)
            for place, setting in self.settings.items()
            if seed in self.seeds(place.policy, seeds) and (not policies or place.policy in policies)
        ]


def shipped_experiments() -> dict[str, Path]:
    """Experiment files by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.yaml"))}


def load_experiment(name: str | Path) -> Experiment:
    """An experiment by the name of one that ships, or from a YAML file."""
    known = shipped_experiments()
    path = known.get(str(name))
    if path is None:
        path = Path(name)
        if path.suffix.lower() not in (".yaml", ".yml"):
            raise InputError(f"lab: there is no experiment {str(name)!r}{hint(str(name), known)}")
    document = Document.read(path)
    spec = document.check(ExperimentSpec)
    settings = dict(_settings(document, spec))
    experiment = Experiment(path.stem, spec, settings)
    _check_names(document, experiment)
    return experiment


def resolve_jobs(patterns: Sequence[str], where: str) -> list[str]:
    """Names of jobs from names and patterns, each once."""
    found: dict[str, None] = {}
    for pattern in patterns:
        matching = fnmatch.filter(shipped_jobs(), pattern)
        if not matching and any(sign in pattern for sign in "*?["):
            raise InputError(f"{where}: no job that ships is like {pattern!r}; 'lynceus replay --list' shows them.")
        if not matching:
            try:
                job_path(pattern)
            except InputError as error:
                raise InputError(f"{where}: {str(error).removeprefix('replay: ')}") from None
            matching = [pattern]
        found.update(dict.fromkeys(matching))
    return list(found)


def _settings(document: Document, spec: ExperimentSpec) -> Iterator[tuple[Place, Setting]]:
    policies = {label: written_policy(arm, document.at("policies", label)) for label, arm in spec.policies.items()}
    variants: dict[str, OptionsSpec] = spec.variants or {"": OptionsSpec()}
    worlds: dict[str, WorldSpec | None] = spec.worlds or {"": spec.world}
    for job in resolve_jobs(spec.jobs, document.at("jobs")):
        for variant, changes in variants.items():
            given = {**spec.options.model_dump(exclude_none=True), **changes.model_dump(exclude_none=True)}
            options = OptionsSpec.model_validate(given)
            for world_name, world in worlds.items():
                for label, policy in policies.items():
                    place = Place(job, label, ", ".join(filter(None, (variant, world_name))))
                    yield place, Setting(job, policy, options, world, spec.until, spec.trials, spec.parallel)


def written_policy(arm: str | ArmSpec, where: str) -> str:
    """A competitor as the text that its cells carry."""
    try:
        if isinstance(arm, str):
            return json.dumps(describe(preset(arm)))
        given = [name for name in ("preset", "policy", "peer") if getattr(arm, name) is not None]
        if len(given) != 1:
            raise InputError(f"{' and '.join(given) or 'nothing'} came; give exactly one of preset, policy and peer.")
        if arm.preset is None and (arm.lookahead is not None or arm.timeout is not None):
            raise InputError("lookahead and timeout belong to a preset; write them into the policy.")
        if arm.peer is not None:
            return f"peer:{peer_named(arm.peer).name}"
        if arm.policy is not None:
            return json.dumps(describe(compose({"name": "policy", **arm.policy})))
        return json.dumps(describe(preset(str(arm.preset), arm.lookahead, arm.timeout)))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _check_names(document: Document, experiment: Experiment) -> None:
    """Claims and pictures may only speak of what is measured."""
    spec, variants = experiment.spec, set(experiment.variants)
    for field, base in (
        *([("baseline", spec.baseline)] if spec.baseline else []),
        *(("also", base) for base in spec.also),
    ):
        if base not in spec.policies:
            raise InputError(f"{document.at(field)}: there is no policy {base!r}{hint(base, spec.policies)}")
    for place, claim in enumerate(spec.claims):
        measure, at = claim.measure, ("claims", place, "measure")
        for field in ("of", "to"):
            label = getattr(measure, field)
            if label is not None and label not in spec.policies:
                raise InputError(
                    f"{document.at(*at, field)}: there is no policy {label!r} in this experiment{hint(label, spec.policies)}"
                )
        for field in ("variant", "to_variant"):
            variant = getattr(measure, field)
            if variant is not None and variant not in variants:
                raise InputError(
                    f"{document.at(*at, field)}: there is no variant {variant!r} in this experiment{hint(variant, variants)}"
                )
        for job in measure.jobs or ():
            if not chosen(experiment.jobs, [job]):
                raise InputError(
                    f"{document.at(*at, 'jobs')}: the experiment has no job {job!r}{hint(job, experiment.jobs)}"
                )

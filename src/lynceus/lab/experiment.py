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
from lynceus.lab.cell import Cell, Setting, made_world
from lynceus.lab.claims import condition
from lynceus.lab.facts import FACTS
from lynceus.lab.peers import peer_named
from lynceus.lab.spec import ArmSpec, ClaimSpec, ExperimentSpec, OptionsSpec, WorldSpec, chosen
from lynceus.policy import preset
from lynceus.policy.compose import compose, describe
from lynceus.replay import shipped_jobs
from lynceus.replay.job import job_path

_FOLDER = Path(__file__).parent / "experiments"
_NEEDED = {"ratio": ("of", "to"), "saving": ("of", "to"), "value": ("of",), "table": ("fact",)}
"""The fields without which a measure of a kind measures nothing."""


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
    _check_peers(document, spec)
    _check_names(document, experiment)
    for place, claim in enumerate(spec.claims):
        _check_claim(document, claim, place)
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


def _check_peers(document: Document, spec: ExperimentSpec) -> None:
    """A peer knows neither misfortunes nor runs side by side; it must not be shown as if it had met them."""
    peers = [label for label, arm in spec.policies.items() if not isinstance(arm, str) and arm.peer is not None]
    given: dict[tuple[str, ...], WorldSpec | None] = {
        ("worlds", name): world for name, world in spec.worlds.items()
    } or {("world",): spec.world}
    harsh = [at for at, world in given.items() if made_world(world) is not None]
    for label in peers:
        if harsh:
            raise InputError(
                f"{document.at(*harsh[0])}: {label!r} is a peer, and peers run in the calm world only, not in {harsh[0][-1]!r}; "
                "leave one of them out."
            )
        if spec.parallel > 1:
            raise InputError(
                f"{document.at('parallel')}: {label!r} is a peer, and peers run one trial at a time, not {spec.parallel}; "
                "leave one of them out."
            )


def _check_names(document: Document, experiment: Experiment) -> None:
    """Claims and pictures may only speak of what is measured."""
    spec, variants = experiment.spec, experiment.variants
    jobs = experiment.jobs

    def known(label: str | None, labels: Sequence[str], kind: str, *at: str | int) -> None:
        if label is not None and label not in labels:
            raise InputError(
                f"{document.at(*at)}: there is no {kind} {label!r} in this experiment{hint(label, labels)}"
            )

    def job_known(job: str, *at: str | int) -> None:
        if not chosen(jobs, [job]):
            raise InputError(f"{document.at(*at)}: the experiment has no job {job!r}{hint(job, jobs)}")

    policies = experiment.policies
    known(spec.baseline, policies, "policy", "baseline")
    for label in spec.also:
        known(label, policies, "policy", "also")
    for place, claim in enumerate(spec.claims):
        at = ("claims", place, "measure")
        for field, labels, kind in (
            *(("of", policies, "policy"), ("to", policies, "policy")),
            *(("variant", variants, "variant"), ("to_variant", variants, "variant")),
        ):
            known(getattr(claim.measure, field), labels, kind, *at, field)
        for job in claim.measure.jobs or ():
            job_known(job, *at, "jobs")
    for place, figure in enumerate(spec.figures):
        for label in figure.policies or ():
            known(label, policies, "policy", "figures", place, "policies")
        for job in figure.jobs or ():
            job_known(job, "figures", place, "jobs")


def _check_claim(document: Document, claim: ClaimSpec, place: int) -> None:
    """A claim that cannot be judged is told before hours of replays, not after."""
    measure, at = claim.measure, ("claims", place)
    for field in _NEEDED[measure.kind]:
        if getattr(measure, field) is None:
            raise InputError(
                f"{document.at(*at, 'measure')}: a {measure.kind} needs the field '{field}', which is missing; add it."
            )
    for field in ("holds", "direction"):
        if (text := getattr(claim, field)) is not None:
            _check_condition(text, document.at(*at, field))
    if measure.fact is not None and measure.fact.removesuffix("-least").removesuffix("-most") not in FACTS:
        raise InputError(
            f"{document.at(*at, 'measure', 'fact')}: there is no fact {measure.fact!r}{hint(measure.fact, FACTS)}"
        )


def _check_condition(text: str, where: str) -> None:
    try:
        read = condition(text)
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix('claims: ')}") from None
    if read.low > read.high:
        raise InputError(f"{where}: no number is in {text!r}; write the smaller end first.")

"""Experiments by name: a declared product of jobs, variants, worlds, policies and seeds."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lynceus.errors import InputError, hint
from lynceus.jobfile.yaml.document import Document
from lynceus.policy.policy_file import compose, describe
from lynceus.policy.presets import preset
from lynceus.replay.job import job_path
from lynceus.replay.shipped import shipped_jobs
from lynceus_lab.cell import Cell, Setting
from lynceus_lab.claims import condition
from lynceus_lab.experiment_file import ArmSpec, ClaimSpec, ExperimentSpec, OptionsSpec, WorldSpec, chosen
from lynceus_lab.peers.catalog import peer_named
from lynceus_lab.table_facts import FACTS

_FOLDER = Path(__file__).parent / "experiments"
_NEEDED = {"ratio": ("of", "to"), "saving": ("of", "to"), "value": ("of",), "table": ("fact",)}
"""Required fields of each kind of measure."""


@dataclass(frozen=True)
class Place:
    """The position of a setting in its experiment: the coordinates of tables and figures."""

    job: str
    policy: str
    variant: str = ""
    """Empty when the experiment has none."""


@dataclass(frozen=True)
class Experiment:
    """A declared experiment with all names resolved."""

    name: str
    spec: ExperimentSpec
    settings: dict[Place, Setting]
    """Ordered by job, then variant, then policy."""

    @property
    def jobs(self) -> list[str]:
        """Names of the jobs, with patterns resolved."""
        return resolve_jobs(self.spec.jobs, self.name)

    @property
    def variants(self) -> list[str]:
        """Names of variants (and worlds); one empty name when there are none."""
        return list(dict.fromkeys(place.variant for place in self.settings)) or [""]

    @property
    def readings(self) -> list[str]:
        """Names of the readings; one empty name when there are none."""
        return list(self.spec.readings) or [""]

    def variants_under(self, reading: str) -> list[str]:
        """Names of the variants under one reading."""
        return [name for name in self.variants if not reading or name.split(", ")[-1] == reading]

    @property
    def policies(self) -> list[str]:
        """Labels of the policies, in order."""
        return list(self.spec.policies)

    def seeds(self, policy: str, count: int | None = None) -> range:
        """The seeds of a policy; `count` replaces the number of the experiment, but not a smaller number of the policy itself."""
        arm, first = self.spec.policies[policy], self.spec.first_seed
        own = None if isinstance(arm, str) else arm.seeds
        count = self.spec.seeds if count is None else count
        return range(first, first + (count if own is None else min(count, own)))

    def cells(self, seeds: int | None = None, policies: Sequence[str] = (), variants: Sequence[str] = ()) -> list[Cell]:
        """All cells, or those of some policies and of variants with these names, whole (`15, n machines`) or the first one (`15`).

        Seed by seed, so that an interrupted campaign has the same seeds of all policies.
        """
        first, count = self.spec.first_seed, self.spec.seeds if seeds is None else seeds
        return [
            Cell(setting, seed)
            for seed in range(first, first + count)
            for place, setting in self.settings.items()
            if seed in self.seeds(place.policy, seeds)
            and (not policies or place.policy in policies)
            and (not variants or place.variant in variants or place.variant.split(", ")[0] in variants)
        ]


def shipped_experiments() -> dict[str, Path]:
    """Experiment files by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.yaml"))}


def load_experiment(name: str | Path) -> Experiment:
    """An experiment from a YAML file, or by the name of a shipped one."""
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
        _check_differs(document, spec, place)
    return experiment


def resolve_jobs(patterns: Sequence[str], where: str) -> list[str]:
    """Names of jobs from names and patterns, without duplicates."""
    found: dict[str, None] = {}
    for pattern in patterns:
        matching = fnmatch.filter(shipped_jobs(), pattern)
        if not matching and any(sign in pattern for sign in "*?["):
            raise InputError(f"{where}: no shipped job matches {pattern!r}; 'lynceus replay --list' shows them.")
        if not matching:
            try:
                job_path(pattern)
            except InputError as error:
                raise InputError(f"{where}: {str(error).removeprefix('replay: ')}") from None
            matching = [pattern]
        found.update(dict.fromkeys(matching))
    return list(found)


def _settings(document: Document, spec: ExperimentSpec) -> Iterator[tuple[Place, Setting]]:
    policies = {label: policy_text(arm, document.at("policies", label)) for label, arm in spec.policies.items()}
    worlds: dict[str, WorldSpec | None] = spec.worlds or {"": spec.world}
    for job in resolve_jobs(spec.jobs, document.at("jobs")):
        for (variant, reading), options in _options(spec).items():
            for world_name, world in worlds.items():
                past = tuple(spec.histories[job]) if job in spec.histories else None
                options = merged(options, OptionsSpec(history=past))
                for label, policy in policies.items():
                    place = Place(job, label, joined(variant, world_name, reading))
                    yield place, Setting(job, policy, options, world, spec.until, spec.trials, spec.parallel)


def joined(*names: str) -> str:
    """The name of a combination of variant, world and reading."""
    return ", ".join(filter(None, names))


def _options(spec: ExperimentSpec) -> dict[tuple[str, str], OptionsSpec]:
    """The options of every variant under every reading."""
    return {
        (variant, reading): merged(spec.options, changes, further)
        for variant, changes in (spec.variants or {"": OptionsSpec()}).items()
        for reading, further in (spec.readings or {"": OptionsSpec()}).items()
    }


def merged(*parts: OptionsSpec) -> OptionsSpec:
    """Options on top of each other; the last one that gives a field wins."""
    given: dict[str, object] = {}
    for part in parts:
        given |= part.model_dump(exclude_none=True)
    return OptionsSpec.model_validate(given)


def policy_text(arm: str | ArmSpec, where: str) -> str:
    """A policy as the text that its settings hold: its parts as JSON, or `peer:NAME`."""
    try:
        if isinstance(arm, str):
            return json.dumps(describe(preset(arm)))
        given = [name for name in ("preset", "policy", "peer") if getattr(arm, name) is not None]
        if len(given) != 1:
            raise InputError(
                f"got {' and '.join(given) or 'none of its fields'}; give exactly one of preset, policy and peer."
            )
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
    """Refuse worlds and parallel trials for peers, which support neither."""
    peers = [label for label, arm in spec.policies.items() if not isinstance(arm, str) and arm.peer is not None]
    given: dict[tuple[str, ...], WorldSpec | None] = {
        ("worlds", name): world for name, world in spec.worlds.items()
    } or {("world",): spec.world}
    harder = [at for at, world in given.items() if world is not None and world.model_dump(exclude_none=True)]
    for label in peers:
        if harder:
            raise InputError(
                f"{document.at(*harder[0])}: {label!r} is a peer, and peers run only without a world, not in {harder[0][-1]!r}; "
                "leave one of them out."
            )
        if spec.parallel > 1:
            raise InputError(
                f"{document.at('parallel')}: {label!r} is a peer, and peers run one trial at a time, not {spec.parallel}; "
                "leave one of them out."
            )


def _check_names(document: Document, experiment: Experiment) -> None:
    """Refuse claims and figures about policies, variants or jobs that the experiment does not have."""
    spec, jobs = experiment.spec, experiment.jobs
    variants = list(dict.fromkeys((*(joined(v, w) for v in spec.variants or ("",) for w in spec.worlds or ("",)), "")))

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
    """Refuse a claim that cannot be evaluated before hours of replays, not after."""
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


def _check_differs(document: Document, spec: ExperimentSpec, place: int) -> None:
    """Refuse a claim that names an aspect in which the set-ups do not differ."""
    known = [aspect for aspect, text in spec.setup.items() if not isinstance(text, str)]
    for aspect in spec.claims[place].differs or ():
        if aspect not in known:
            raise InputError(
                f"{document.at('claims', place, 'differs')}: the set-up has no aspect {aspect!r} that differs{hint(aspect, known)}"
            )


def _check_condition(text: str, where: str) -> None:
    try:
        read = condition(text)
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix('claims: ')}") from None
    if read.low > read.high:
        raise InputError(f"{where}: {text!r} contains no number; write the smaller end first.")

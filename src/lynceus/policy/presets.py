"""The table of policies: every published system and baseline is one row, composed of parts.

A row is a function of the two things that the papers vary, the depth of look-ahead and the timeout; what a row does not use
it refuses, so that no option is ignored in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lynceus.acquisition.gains import ConstrainedImprovement
from lynceus.choose import (
    Amount,
    ByPrice,
    FirstOf,
    LatinHypercube,
    Quadrature,
    QuasiRandom,
    Rollout,
    Uniform,
    UniformRows,
)
from lynceus.errors import InputError
from lynceus.policy import baselines, subsampling
from lynceus.policy.default import default
from lynceus.policy.policy import Policy
from lynceus.space.column import nearest
from lynceus.stopping import SmallGain
from lynceus.surrogate.gaussian_process import GaussianProcess
from lynceus.surrogate.trees import Trees
from lynceus.timeout import (
    HighestCost,
    IncumbentCap,
    LinearProgress,
    LowerBound,
    NoCap,
    Nothing,
    PublishedProgram,
    Timeout,
    TruncatedMean,
    WholeRun,
)

TIMEOUTS: Mapping[str, Timeout] = MappingProxyType(
    {
        "none": Timeout(NoCap(), LowerBound()),
        "tg": Timeout(IncumbentCap(), TruncatedMean()),
        "tg-first": Timeout(IncumbentCap(first_runs_too=True), TruncatedMean()),
        "tg-30s": Timeout(IncumbentCap(every_s=30.0), TruncatedMean()),
        "linear": Timeout(IncumbentCap(every_s=30.0), LinearProgress()),
        "max-cost": Timeout(IncumbentCap(), HighestCost()),
        "no-info": Timeout(IncumbentCap(slack=2.0, measure="time"), Nothing()),
        "ideal": Timeout(IncumbentCap(), WholeRun()),
        "authors": Timeout(IncumbentCap(), PublishedProgram()),
        "capped": Timeout(IncumbentCap(first_runs_too=True), LowerBound()),
    }
)
"""Timeouts by the names of the command line."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    summary: str
    make: Callable[[int | None, Timeout | None], Policy]
    """(look-ahead depth, timeout) → policy; nothing stands for the row's own default."""


def preset(name: str, lookahead: int | None = None, timeout: str | Timeout | None = None) -> Policy:
    """A policy by name.

    >>> preset("lynceus-2020", lookahead=0).choose.choosers[1].depth
    0
    """
    if name not in PRESETS:
        hint = nearest(name, PRESETS)
        raise InputError(
            f"policy: there is no {name!r}; choose one of {', '.join(PRESETS)}, or give a policy file.{hint}"
        )
    if lookahead is not None and lookahead < 0:
        raise InputError(f"lookahead: {lookahead} came; give 0 or more runs to look ahead.")
    if isinstance(timeout, str):
        if timeout not in TIMEOUTS:
            hint = nearest(timeout, TIMEOUTS)
            raise InputError(f"timeout: there is no {timeout!r}; choose one of {', '.join(TIMEOUTS)}.{hint}")
        timeout = TIMEOUTS[timeout]
    return PRESETS[name].make(lookahead, timeout)


REFERENCE_TREES = Trees(trees=10, min_gain=1e-6, min_variance=0.001, same_luck=True, inputs="parameters")
"""The ensemble of the program published with ICDCS'20: Weka's rules for leaves.

Its rule σ = 10 μ where all trees agree exactly is left out: there, rounding keeps agreeing trees apart, so that the rule hardly ever
fires. Here agreement is recognised, and the rule would fire often (`zero_spread` has it)."""


def _lynceus_2020(lookahead: int | None, timeout: Timeout | None) -> Policy:
    planner = Rollout(ConstrainedImprovement(), depth=2 if lookahead is None else lookahead)
    return Policy("lynceus-2020", FirstOf((LatinHypercube(), planner)), Trees(), timeout or TIMEOUTS["tg"])


def _authors_2020(lookahead: int | None, timeout: Timeout | None) -> Policy:
    planner = Rollout(
        ConstrainedImprovement(guess="root sigma"),
        depth=2 if lookahead is None else lookahead,
        quadrature=Quadrature(rule="authors"),
        real_money=True,
    )
    return Policy("authors-2020", FirstOf((LatinHypercube(), planner)), REFERENCE_TREES, timeout or TIMEOUTS["authors"])


def _lynceus_2018(lookahead: int | None, timeout: Timeout | None) -> Policy:
    timeout = timeout or TIMEOUTS["linear"]
    # With timeouts the thesis starts from a single random run, without them from five.
    start = UniformRows(Amount(count=5 if isinstance(timeout.cap, NoCap) else 1))
    planner = Rollout(ConstrainedImprovement(), depth=2 if lookahead is None else lookahead)
    return Policy("lynceus-2018", FirstOf((start, planner)), Trees(), timeout)


def _obol(lookahead: int | None, timeout: Timeout | None) -> Policy:
    planner = Rollout(ConstrainedImprovement(), depth=2 if lookahead is None else lookahead)
    return Policy("obol", FirstOf((UniformRows(Amount(count=5)), planner)), Trees(), timeout or TIMEOUTS["none"])


def _bo(lookahead: int | None, timeout: Timeout | None) -> Policy:
    planner = Rollout(ConstrainedImprovement(), depth=lookahead or 0, per="run")
    return Policy("bo", FirstOf((LatinHypercube(), planner)), Trees(), timeout or TIMEOUTS["none"])


def _cherrypick(lookahead: int | None, timeout: Timeout | None) -> Policy:
    planner = Rollout(ConstrainedImprovement(), depth=lookahead or 0, per="run", sure=0.0)
    stop = SmallGain(0.10, after=6)
    return Policy(
        "cherrypick",
        FirstOf((QuasiRandom(), planner)),
        GaussianProcess(target="cost"),
        timeout or TIMEOUTS["none"],
        stop,
    )


def _random(lookahead: int | None, timeout: Timeout | None) -> Policy:
    _no_lookahead("random", lookahead)
    return Policy("random", FirstOf((LatinHypercube(), Uniform())), timeout=timeout or TIMEOUTS["none"])


def _random_timeouts(lookahead: int | None, timeout: Timeout | None) -> Policy:
    _no_lookahead("random+timeouts", lookahead)
    return Policy("random+timeouts", FirstOf((LatinHypercube(), Uniform())), timeout=timeout or TIMEOUTS["capped"])


def _sweep(lookahead: int | None, timeout: Timeout | None) -> Policy:
    _no_lookahead("sweep", lookahead)
    return Policy("sweep", ByPrice(), timeout=timeout or TIMEOUTS["capped"])


def _no_lookahead(name: str, lookahead: int | None) -> None:
    if lookahead:
        raise InputError(f"lookahead: policy {name!r} has no model to look ahead with; leave lookahead out.")


PRESETS: Mapping[str, Row] = MappingProxyType(
    {
        "lynceus": Row(
            "the default: every run capped, cheapest first, log time, processes and trees averaged", default
        ),
        "lynceus-2020": Row(
            "ICDCS'20: LHS 3 %, 10 trees, EIc per dollar of a path, look-ahead 2, truncated-Gaussian timeouts",
            _lynceus_2020,
        ),
        "authors-2020": Row(
            "the program published with ICDCS'20, its deviations from the paper included", _authors_2020
        ),
        "lynceus-2018": Row(
            "the thesis: 1 random run, look-ahead 2, linear timeouts watched every 30 s", _lynceus_2018
        ),
        "obol": Row("OBOL: 5 random runs, look-ahead 2, no timeouts", _obol),
        "bo": Row("plain Bayesian optimisation: LHS 3 %, 10 trees, EIc", _bo),
        "cherrypick": Row(
            "CherryPick: 3 quasi-random runs, Gaussian process, EIc, stops under 10 % after 6 runs", _cherrypick
        ),
        "random": Row("LHS 3 %, then at random, every run to its end", _random),
        "random+timeouts": Row("the same, every run capped from the first on", _random_timeouts),
        "nephele": Row(
            "Nephele: any data fraction may win; LHS for a tenth of the budget, 5 trees per target, EIc per dollar",
            subsampling.nephele,
        ),
        "fabulinus": Row(
            "Fabulinus: best on all data within limits, learnt on samples; constrained entropy search per dollar",
            subsampling.fabulinus,
        ),
        "fabolas": Row("Fabolas: the same without regard to limits", subsampling.fabolas),
        "trimtuner": Row("TrimTuner: as Fabulinus with trees, only promising runs are weighed", subsampling.trimtuner),
        "trimtuner-gp": Row("TrimTuner with Gaussian processes", subsampling.trimtuner_gp),
        "eic-full": Row("Gaussian processes, EIc, all data only", subsampling.eic_full),
        "ei-full": Row("the same with EI, limits not regarded", subsampling.ei_full),
        "disjoint": Row(
            "job parameters on a random reference cluster first, then the cluster for them", baselines.disjoint
        ),
        "arrow": Row("Arrow: LHS 3 %, trees over pairs of runs that also read low-level metrics, EIc", baselines.arrow),
        "ernest": Row(
            "Ernest: two runs of every machine type, a scale-out model each, then the lowest predictions",
            baselines.ernest,
        ),
        "scout": Row(
            "Scout: 1 random run, then where runs of other jobs, given what a run was short of, promise most",
            baselines.scout,
        ),
        "sweep": Row("cheapest price first, every run capped, no model", _sweep),
    }
)
"""Every named policy."""

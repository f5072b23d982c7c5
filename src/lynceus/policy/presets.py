"""The table of policies: every published system and baseline is one row, composed of parts.

A row is a function of the two settings that the papers vary, the depth of look-ahead and the timeout; a row refuses a setting that it
does not use, so that no option is ignored silently. Plugins add rows, see `lynceus.policy.plugins`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from lynceus.acquisition.functions import ConstrainedImprovement
from lynceus.errors import InputError, did_you_mean
from lynceus.models.gaussian_process import GaussianProcess
from lynceus.models.trees import Trees
from lynceus.policy import baselines, multi_fidelity, past_systems
from lynceus.policy.default import default
from lynceus.policy.designs import Amount, LatinHypercube, QuasiRandom, UniformRows
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.simple import ByPrice, FirstOf, Uniform
from lynceus.policy.plugins import Row, policy_plugins
from lynceus.policy.policy import Policy
from lynceus.policy.stopping import SmallImprovement
from lynceus.policy.timeouts.by_name import TIMEOUTS, timeout_named
from lynceus.policy.timeouts.rules import NoTimeout
from lynceus.policy.timeouts.timeout import Timeout


def preset(name: str, lookahead: int | None = None, timeout: str | Timeout | None = None) -> Policy:
    """A policy by name. Plugins are only loaded for names that are not built in.

    >>> preset("lynceus-2020", lookahead=0).choose.choosers[1].depth
    0
    """
    known = PRESETS if name in PRESETS else all_presets()
    if name not in known:
        hint = did_you_mean(name, known)
        raise InputError(
            f"policy: there is no {name!r}.{hint} List them with: lynceus policies; or give a policy file."
        )
    if lookahead is not None and lookahead < 0:
        raise InputError(f"lookahead: got {lookahead}; give the number of runs to look ahead, 0 or more.")
    return known[name].make(lookahead, timeout_named(timeout) if isinstance(timeout, str) else timeout)


def all_presets() -> dict[str, Row]:
    """Every named policy: the built-in ones first, then those of plugins."""
    found = dict(PRESETS)
    for plugin in policy_plugins():
        for name, row in plugin.presets.items():
            found.setdefault(name, row)
    return found


def _lynceus_2020(lookahead: int | None, timeout: Timeout | None) -> Policy:
    planner = Lookahead(ConstrainedImprovement(), depth=2 if lookahead is None else lookahead)
    return Policy("lynceus-2020", FirstOf((LatinHypercube(), planner)), Trees(), timeout or TIMEOUTS["tg"])


def _lynceus_2020_stop(lookahead: int | None, timeout: Timeout | None) -> Policy:
    return replace(_lynceus_2020(lookahead, timeout), name="lynceus-2020+stop", stop=SmallImprovement(0.01))


def _lynceus_2018(lookahead: int | None, timeout: Timeout | None) -> Policy:
    timeout = timeout or TIMEOUTS["linear"]
    # With timeouts the thesis starts with one random run, without them with five.
    start = UniformRows(Amount(count=5 if isinstance(timeout.rule, NoTimeout) else 1))
    planner = Lookahead(ConstrainedImprovement(), depth=2 if lookahead is None else lookahead)
    return Policy("lynceus-2018", FirstOf((start, planner)), Trees(), timeout)


def _obol(lookahead: int | None, timeout: Timeout | None) -> Policy:
    planner = Lookahead(ConstrainedImprovement(), depth=2 if lookahead is None else lookahead)
    return Policy("obol", FirstOf((UniformRows(Amount(count=5)), planner)), Trees(), timeout or TIMEOUTS["none"])


def _bo(lookahead: int | None, timeout: Timeout | None) -> Policy:
    planner = Lookahead(ConstrainedImprovement(), depth=lookahead or 0, per="run")
    return Policy("bo", FirstOf((LatinHypercube(), planner)), Trees(), timeout or TIMEOUTS["none"])


def _cherrypick(lookahead: int | None, timeout: Timeout | None) -> Policy:
    planner = Lookahead(ConstrainedImprovement(), depth=lookahead or 0, per="run", confidence=0.0)
    stop = SmallImprovement(0.10, after=6)
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
            "the default: cheapest run first, a Gaussian process of log time, improvement per dollar, timeouts, a floor",
            default,
        ),
        "lynceus-2020": Row(
            "ICDCS'20: LHS 3 %, 10 trees, EIc per dollar of a path, look-ahead 2, truncated-Gaussian timeouts",
            _lynceus_2020,
        ),
        "lynceus-2020+stop": Row(
            "the same, stops when no run is expected to save 1 % of the best cost (optional in ICDCS'20)",
            _lynceus_2020_stop,
        ),
        "lynceus-2018": Row(
            "the thesis: 1 random run, look-ahead 2, linear timeouts watched every 30 s", _lynceus_2018
        ),
        "obol": Row("OBOL: 5 random runs, look-ahead 2, no timeouts", _obol),
        "bo": Row("plain Bayesian optimization: LHS 3 %, 10 trees, EIc", _bo),
        "cherrypick": Row(
            "CherryPick: 3 quasi-random runs, Gaussian process, EIc, stops under 10 % after 6 runs", _cherrypick
        ),
        "random": Row("LHS 3 %, then at random, without timeouts", _random),
        "random+timeouts": Row("the same, every run with a timeout", _random_timeouts),
        "nephele": Row(
            "Nephele: any data fraction may be recommended; LHS for a tenth of the budget, 5 trees per target, EIc per dollar",
            multi_fidelity.nephele,
        ),
        "fabulinus": Row(
            "Fabulinus, mended: learns on samples about the best feasible run on all data, and checks what it recommends",
            multi_fidelity.fabulinus,
        ),
        "fabulinus-2019": Row(
            "Fabulinus as published: 3 % of the configurations on every sample, entropy search × CEA per dollar",
            multi_fidelity.fabulinus_2019,
        ),
        "fabolas": Row("Fabolas: the same without constraints", multi_fidelity.fabolas),
        "trimtuner": Row(
            "TrimTuner: as Fabulinus with trees, only for the most promising tenth of the rows",
            multi_fidelity.trimtuner,
        ),
        "trimtuner-gp": Row("TrimTuner with Gaussian processes", multi_fidelity.trimtuner_gp),
        "eic-full": Row("Gaussian processes, EIc, all data only", multi_fidelity.eic_full),
        "ei-full": Row("the same with EI, without constraints", multi_fidelity.ei_full),
        "disjoint": Row(
            "job parameters on a random reference cluster first, then the cluster for them", baselines.disjoint
        ),
        "arrow": Row("Arrow: LHS 3 %, trees over pairs of runs with low-level metrics, EIc", baselines.arrow),
        "ernest": Row(
            "Ernest: two runs of every machine type, a scale-out model each, then the lowest predictions",
            baselines.ernest,
        ),
        "scout": Row(
            "Scout: 1 random run, then the likeliest improvement by moves in other jobs (better, fair, worse)",
            baselines.scout,
        ),
        "paris": Row(
            "PARIS: two reference runs, then the best predictions of a forest over past jobs (history)",
            past_systems.paris,
        ),
        "quasar": Row(
            "Quasar: two random runs, then the best predictions of collaborative filtering over past jobs (history)",
            past_systems.quasar,
        ),
        "ottertune": Row(
            "OtterTune: three random runs, then EI of a Gaussian process around the nearest past job (history)",
            past_systems.ottertune,
        ),
        "karasu": Row(
            "Karasu: three random runs, then EI of past and own models, weighted by their ranking loss (history)",
            past_systems.karasu,
        ),
        "flora": Row("Flora: no model, in the order of what past jobs cost on average (history)", past_systems.flora),
        "ernest-sizes": Row(
            "Ernest over input sizes: its law over past jobs of other sizes, then the lowest predictions (history)",
            past_systems.ernest_sizes,
        ),
        "staged": Row(
            "machines and parallelism first, then the other settings on the best of them; lowest price first, no model",
            baselines.staged,
        ),
        "known-cost": Row(
            "lowest known objective (or price) first until a run meets every constraint: the first wins",
            baselines.known_cost,
        ),
        "sweep": Row("lowest price first, every run with a timeout, no model", _sweep),
    }
)
"""The built-in policies."""

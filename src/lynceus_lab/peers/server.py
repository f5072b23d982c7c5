"""The server process of a peer: it runs in the peers' environment, does not import Lynceus, and exchanges JSON, one message per line.

    {"start": {...}}   → {"ok": true}       a job: points, features, deadline, seed
    {"tell": {...}}    → {"ok": true}       time and cost of a run, its objective, and by how much it breaks each limit
    {"ask": [rows]}    → {"row": n}         the next row, one of the open ones

Candidates are a finite list that does not contain every combination of parameters: a library that suggests another one is asked again
(SMAC3 accepts forbidden combinations, but then takes half a minute for a suggestion). After `ASKS` suggestions, the open row nearest to
the last one is taken, with ties broken at random, and the library is told the point that was run.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

ASKS = 10
"""Suggestions of a library before the nearest open row is taken."""


class Job:
    """What a peer knows: the points, and the runs so far."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.seed: int = given["seed"] % 2**31
        self.parameters: list[dict[str, Any]] = given["parameters"]
        self.codes = np.array(given["codes"])
        self.features = np.array(given["features"], dtype=float)
        self.kinds: list[str] = given["kinds"]
        self.deadline: float | None = given["deadline"]
        self.rows: list[int] = []
        self.usd: list[float] = []
        self.seconds: list[float] = []
        self._random = np.random.default_rng(self.seed)

    def row(self, suggest: Callable[[], list[int]], open_rows: list[int]) -> int:
        """The open row that a library suggests; after many suggestions of other points, the nearest."""
        for _ in range(ASKS):
            codes = suggest()
            here = np.flatnonzero((self.codes[open_rows] == codes).all(axis=1))
            if len(here):
                return open_rows[int(here[0])]
        return self._nearest(codes, open_rows)

    def random_row(self, open_rows: list[int]) -> int:
        """A random open row."""
        return int(self._random.choice(open_rows))

    def _nearest(self, codes: list[int], open_rows: list[int]) -> int:
        """The open row with the fewest steps between the codes (any two categories are one step apart)."""
        candidates = self.codes[open_rows]
        ordered = np.array([parameter["ordered"] for parameter in self.parameters])
        widths = np.maximum(np.array([parameter["values"] for parameter in self.parameters]) - 1, 1)
        steps = np.abs(candidates - np.array(codes))
        distance = np.where(ordered, steps / widths, steps > 0).sum(axis=1)
        return open_rows[int(self._random.choice(np.flatnonzero(distance <= distance.min() + 1e-9)))]

    def late(self, seconds: float) -> float:
        """ln(time / deadline); positive values violate the deadline."""
        return math.log(seconds / self.deadline) if self.deadline else -1.0


class Optuna:
    """Optuna's study, one distribution per parameter, limits as constraints."""

    def __init__(self, job: Job, name: str) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna, self._job = optuna, job
        sampler = (
            optuna.samplers.TPESampler(seed=job.seed, n_startup_trials=0)
            if name == "optuna-tpe"
            else optuna.samplers.GPSampler(seed=job.seed, n_startup_trials=0, deterministic_objective=True)
        )
        self._study = optuna.create_study(sampler=sampler, direction="minimize")
        self._spaces: dict[str, Any] = {
            parameter["name"]: optuna.distributions.IntDistribution(0, parameter["values"] - 1)
            if parameter["ordered"]
            else optuna.distributions.CategoricalDistribution(list(range(parameter["values"])))
            for parameter in job.parameters
        }

    def tell(self, run: dict[str, Any]) -> None:
        """Add the point that was run as a finished trial."""
        names = [parameter["name"] for parameter in self._job.parameters]
        trial = self._optuna.trial.create_trial(
            params=dict(zip(names, self._job.codes[run["row"]].tolist(), strict=True)),
            distributions=self._spaces,
            value=run["value"],
        )
        for place, excess in enumerate(run["broken"]):
            trial.set_constraint(f"limit {place}", excess)
        self._study.add_trial(trial)

    def ask(self, open_rows: list[int]) -> int:
        """The sampler's suggestion."""
        return self._job.row(self._suggestion, open_rows)

    def _suggestion(self) -> list[int]:
        trial = self._study.ask(self._spaces)
        # `tell` adds the point that was run; the sampler ignores failed trials.
        self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        return [trial.params[parameter["name"]] for parameter in self._job.parameters]


class Smac:
    """SMAC3's random-forest facade, trained for every suggestion. Without constraints: a late run counts as the most expensive so far."""

    def __init__(self, job: Job, name: str) -> None:
        import logging

        from smac import HyperparameterOptimizationFacade as Facade
        from smac import Scenario

        logging.disable(logging.CRITICAL)
        self._job, self._space = job, self._configuration_space(job)
        # By default it examines 10,000 random points; in a small space, ten per point cover everything and save time.
        challengers = min(10_000, 10 * math.prod(parameter["values"] for parameter in job.parameters))
        self._folder = tempfile.TemporaryDirectory(prefix="lynceus-smac-")  # for its log, which is not used
        scenario = Scenario(
            self._space,
            deterministic=True,
            n_trials=10_000,
            seed=job.seed,
            output_directory=self._folder.name,
            use_default_config=False,
        )
        self._smac = Facade(
            scenario,
            lambda config, seed=0: 0.0,
            model=self._forest(self._space, job),
            initial_design=Facade.get_initial_design(scenario, n_configs=0),
            # By default it learns from every eighth run, which suits simulations of milliseconds; a run here costs dollars.
            config_selector=Facade.get_config_selector(scenario, retrain_after=1),
            acquisition_maximizer=Facade.get_acquisition_maximizer(scenario, challengers=challengers),
            overwrite=True,
            logging_level=logging.CRITICAL,
        )

    def tell(self, run: dict[str, Any]) -> None:
        """Add a run in dollars: the facade takes the logarithm itself."""
        from ConfigSpace import Configuration
        from smac.runhistory import TrialInfo, TrialValue

        row, usd, seconds = run["row"], run["usd"], run["seconds"]
        names = [parameter["name"] for parameter in self._job.parameters]
        config = Configuration(self._space, dict(zip(names, self._job.codes[row].tolist(), strict=True)))
        cost = max([*self._job.usd, usd]) if self._job.late(seconds) > 0 else usd
        self._smac.tell(TrialInfo(config, seed=0), TrialValue(cost=cost, time=0.0), save=False)

    def ask(self, open_rows: list[int]) -> int:
        """SMAC's next configuration. It never suggests one twice, but may suggest initial samples again."""
        from smac.main.exceptions import ConfigurationSpaceExhaustedException

        try:
            return self._job.row(self._suggestion, open_rows)
        except (ConfigurationSpaceExhaustedException, StopIteration):
            # After sixteen points that it had suggested before, it gives up for good.
            return self._job.random_row(open_rows)

    def _suggestion(self) -> list[int]:
        config = self._smac.ask().config
        return [int(config[parameter["name"]]) for parameter in self._job.parameters]

    @staticmethod
    def _configuration_space(job: Job) -> Any:
        from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, OrdinalHyperparameter

        space = ConfigurationSpace(seed=job.seed)
        for parameter in job.parameters:
            values = list(range(parameter["values"]))
            kind = OrdinalHyperparameter if parameter["ordered"] else CategoricalHyperparameter
            space.add(kind(parameter["name"], values))
        return space

    @staticmethod
    def _forest(space: Any, job: Job) -> Any:
        """The facade's own forest, but without memory for a million leaves, which costs a tenth of a second per tree."""
        from smac.model.random_forest.random_forest import RandomForest

        return RandomForest(
            space,
            log_y=True,
            n_trees=10,
            ratio_features=1.0,
            min_samples_split=2,
            min_samples_leaf=1,
            max_leaf_nodes=len(job.codes) + 1,
            seed=job.seed,
            n_jobs=1,
        )


class BoTorch:
    """Gaussian processes on log cost and log time, log expected improvement under the deadline, best of the open rows."""

    def __init__(self, job: Job, name: str) -> None:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(job.seed)
        self._torch, self._job, self._per_cost = torch, job, name == "botorch-ceipc"
        columns = []
        for place, kind in enumerate(job.kinds):
            values = job.features[:, place]
            if kind == "categorical":
                columns += [(values == value).astype(float) for value in np.unique(values)]
            else:
                span = np.ptp(values)
                columns.append((values - values.min()) / (span if span > 0 else 1.0))
        self._x = torch.tensor(np.stack(columns, axis=1), dtype=torch.double)

    def tell(self, run: dict[str, Any]) -> None:
        """The job keeps the runs; there is no further state."""

    def ask(self, open_rows: list[int]) -> int:
        """The open row with the largest acquisition value."""
        from botorch.acquisition.analytic import LogConstrainedExpectedImprovement, LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from botorch.models.transforms import Standardize
        from gpytorch.mlls import ExactMarginalLogLikelihood, SumMarginalLogLikelihood

        torch, job = self._torch, self._job
        x = self._x[job.rows]
        targets = [np.log(job.usd), np.log(job.seconds)] if job.deadline else [np.log(job.usd)]
        models = [
            SingleTaskGP(x, torch.tensor(y, dtype=torch.double).unsqueeze(-1), outcome_transform=Standardize(1))
            for y in targets
        ]
        best = [math.log(usd) for usd, s in zip(job.usd, job.seconds, strict=True) if job.late(s) <= 0]
        incumbent = min(best) if best else max(math.log(usd) for usd in job.usd)
        if job.deadline:
            model: Any = ModelListGP(*models)
            fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
            score = LogConstrainedExpectedImprovement(
                model,
                best_f=incumbent,
                objective_index=0,
                constraints={1: (None, math.log(job.deadline))},
                maximize=False,
            )
        else:
            model = models[0]
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            score = LogExpectedImprovement(model, best_f=incumbent, maximize=False)
        with torch.no_grad():
            candidates = self._x[open_rows]
            utility = score(candidates.unsqueeze(1))
            if self._per_cost:
                utility = utility - models[0].posterior(candidates).mean.squeeze(-1)
        return open_rows[int(torch.argmax(utility))]


LIBRARIES = {"optuna": Optuna, "smac": Smac, "botorch": BoTorch}


def main(library: str) -> None:
    """Answer messages until the pipe is closed."""
    out, sys.stdout = sys.stdout, sys.stderr  # libraries that print must not write into the pipe
    try:
        __import__(library)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), file=out, flush=True)
        return
    print(json.dumps({"ready": library}), file=out, flush=True)
    job: Job | None = None
    peer: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        answer: dict[str, Any] = {"ok": True}
        try:
            if "start" in message:
                job = Job(message["start"])
                peer = LIBRARIES[library](job, message["start"]["peer"])
            elif job is not None and "tell" in message:
                run = message["tell"]
                job.rows.append(run["row"])
                job.usd.append(run["usd"])
                job.seconds.append(run["seconds"])
                peer.tell(run)
            else:
                answer = {"row": peer.ask(message["ask"])}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

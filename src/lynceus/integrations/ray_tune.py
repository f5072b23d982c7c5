"""Lynceus inside Ray Tune: a searcher, and a stopper that ends trials at the timeouts which it gave them.

from ray import tune
from lynceus.integrations.ray_tune import LynceusSearcher, TimeoutStopper

searcher = LynceusSearcher(price="0.1 * nodes", objective="cost", constraints=["runtime <= 20m"], budget="5 USD")
tune.Tuner(run, param_space={"nodes": tune.randint(1, 9)}, tune_config=tune.TuneConfig(search_alg=searcher, num_samples=-1),
           run_config=tune.RunConfig(stop=TimeoutStopper())).fit()
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

from ray.tune.search import Searcher
from ray.tune.search.sample import Categorical, Domain, Float, Integer, LogUniform, Quantized
from ray.tune.stopper import Stopper

from lynceus.errors import InputError
from lynceus.integrations.candidate_table import Dimension, GivenTable, Table
from lynceus.integrations.search_settings import SearchSettings
from lynceus.policy.policy import Policy
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.space.table import Space
from lynceus.storage.memory import MemoryJournal
from lynceus.study.study import Study
from lynceus.trial.order import Order
from lynceus.trial.trial import Trial, TrialState

FOR_TRIAL = "lynceus"
"""The entry of a trial's config with its `timeout_s`, `price_usd_per_hour` and `deadline_s`; what has no value is None."""
RUNTIME_S = "runtime_s"
"""What a trial reports as its running time; without it, Ray's `time_total_s` counts."""
_VALUE = "tune_value"


class TimeoutStopper(Stopper):
    """Stops a trial that has run for the timeout in its config. Trials are seen when they report."""

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Whether the trial should end now."""
        given = (result.get("config") or {}).get(FOR_TRIAL) or {}
        limit_s = given.get("timeout_s")
        return limit_s is not None and _ran_s(result) >= limit_s

    def stop_all(self) -> bool:
        """Never: the searcher says when the search is over."""
        return False


class LynceusSearcher(Searcher):
    """Suggests configurations by what they cost and how long they take, until the search is over or the budget is spent."""

    def __init__(
        self,
        space: Space | None = None,
        *,
        price: str | float = 1.0,
        objective: str = "value",
        constraints: Sequence[str | Constraint] = (),
        budget: float | str | Budget = math.inf,
        policy: str | Policy = "lynceus",
        seed: int = 0,
        grid_steps: int = 16,
    ) -> None:
        """As `LynceusSampler` of Optuna; `value` is the metric of `TuneConfig(metric=…, mode=…)`.

        Other metrics of objective and constraints are read from what trials report.
        """
        super().__init__(metric=None, mode=None)
        self._settings = SearchSettings(space, price, objective, tuple(constraints), budget, policy, seed, grid_steps)
        self._table: Table | None = None if space is None else GivenTable(space)
        self._fixed: dict[str, Any] = {}
        self._study: Study | None = None
        self._trials: dict[str, int] = {}
        """Ray's trial → our trial."""

    @property
    def study(self) -> Study:
        """The study as Lynceus sees it: for `recommend()`, `spent_usd` and the like."""
        if self._study is None:
            self._study = self._make()
        return self._study

    # What Ray asks

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        """Take metric, mode and space from the Tuner."""
        if metric is not None:
            self._metric = metric
        if mode is not None:
            self._mode = mode
        if config and self._table is None:
            self._fixed = {
                name: one for name, one in config.items() if not isinstance(one, Domain) and not _is_grid(one)
            }
            ranges = {name: one for name, one in config.items() if name not in self._fixed}
            if not ranges:
                raise InputError(
                    "param_space has no parameter to search; use tune.choice, tune.randint or tune.uniform."
                )
            self._table = self._settings.table(
                _dimension(name, one, self._settings.grid_steps) for name, one in ranges.items()
            )
        return True

    def suggest(self, trial_id: str) -> Any:
        """The next configuration; None while open trials may change that, FINISHED when the search is over."""
        order = self.study.runs.order()
        if order is None:
            return None if self.study.pending else Searcher.FINISHED
        self._trials[trial_id] = order.number
        assert self._table is not None
        return {**self._fixed, **self._table.choices(order.row), FOR_TRIAL: self._for_trial(order)}

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Nothing: a trial teaches when it has ended."""

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """How a trial ended: finished, stopped at its timeout, or failed."""
        number = self._trials.pop(trial_id, None)
        if number is None:
            return
        seconds = _ran_s(result or {})
        if error or result is None:
            self._failed(number, seconds, "the trial failed in Ray")
            return
        seconds = max(seconds, 1e-6)
        limit_s = next(order.timeout_s for order in self.study.pending if order.number == number)
        stopped = seconds >= limit_s
        reported = {name: float(result[name]) for name in self.study.problem.metrics if name in result}
        if _VALUE in self.study.problem.metrics and not stopped and self._metric in result:
            reported[_VALUE] = float(result[self._metric])
        metrics = {name: value for name, value in reported.items() if math.isfinite(value)}
        if len(metrics) < len(reported) and not stopped:
            bad = ", ".join(
                f"{self._metric if name == _VALUE else name} = {value}"
                for name, value in reported.items()
                if name not in metrics
            )
            self._failed(number, seconds, f"the trial reported {bad}", metrics)
            return
        state = TrialState.TIMEOUT if stopped else TrialState.COMPLETE
        self.study.tell(number, runtime=seconds, state=state, metrics=metrics)

    def _failed(self, number: int, seconds: float, detail: str, metrics: Mapping[str, float] | None = None) -> None:
        """The configuration is at fault: it is not suggested again."""
        self.study.tell(
            number, runtime=seconds, state=TrialState.FAIL, reason="job", detail=detail, metrics=metrics or {}
        )

    def add_evaluated_point(
        self,
        parameters: dict[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        """A past run, as free knowledge. `value` is its time or cost, by which its running time is known."""
        study, table = self.study, self._table
        row = None if table is None else table.row(parameters)
        if row is None:
            raise InputError(f"add_evaluated_point: {parameters} is not in the space; give one of its configurations.")
        if study.problem.kind == "metric":
            raise InputError(
                "add_evaluated_point: the value is a metric, so the running time is not known; use searcher.study.add_trial(…)."
            )
        seconds = value if study.problem.kind == "time" else float(study.problem.run_costs.seconds_at(value, row))  # type: ignore[arg-type]
        state = TrialState.FAIL if error else TrialState.TIMEOUT if pruned else TrialState.COMPLETE
        study.add_trial(study.problem.space.point(row), runtime=seconds, state=state)

    def save(self, checkpoint_path: str) -> None:
        """Write down what the searcher knows."""
        state = {"record": self.study.record, "trials": self._trials, "metric": self._metric, "mode": self._mode}
        with open(checkpoint_path, "wb") as file:
            pickle.dump({**state, "table": self._table, "fixed": self._fixed}, file)

    def restore(self, checkpoint_path: str) -> None:
        """Go on where `save` was called."""
        with open(checkpoint_path, "rb") as file:
            state = pickle.load(file)  # our own file, beside Ray's, which are pickled, too
        self._trials, self._metric, self._mode = state["trials"], state["metric"], state["mode"]
        self._table, self._fixed = state["table"], state["fixed"]
        self._study = self._make(MemoryJournal(state["record"]))

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_study"] = None if self._study is None else self._study.record
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if state["_study"] is not None:
            self._study = self._make(MemoryJournal(state["_study"]))

    # How it is done

    def _make(self, journal: MemoryJournal | None = None) -> Study:
        if self._table is None:
            raise InputError("The searcher has no space; give it one, or param_space to the Tuner.")
        objective = self._settings.goal(_VALUE, maximise=self._mode == "max")
        made = self._settings.study(self._table.space, objective)
        if journal is None:
            return made
        seed, rules = self._settings.seed, made.retry_rules
        return Study(made.problem, made.policy, seed=seed, journal=journal, retry_rules=rules)

    def _for_trial(self, order: Order) -> dict[str, float | None]:
        trial, deadline_s = Trial.of(self.study.problem, order), self.study.problem.deadline_s
        return {
            "timeout_s": trial.timeout,
            "price_usd_per_hour": trial.price_usd_per_hour,
            "deadline_s": deadline_s if math.isfinite(deadline_s) else None,
        }


def _ran_s(result: Mapping[str, Any]) -> float:
    """The reported running time; Ray's own where that is no time."""
    for name in (RUNTIME_S, "time_total_s"):
        seconds = float(result.get(name, math.nan))
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return 0.0


def _is_grid(value: object) -> bool:
    return isinstance(value, dict) and set(value) == {"grid_search"}


def _dimension(name: str, given: Any, steps: int) -> Dimension:
    """A domain of Ray as a list of values; a continuous one becomes a grid."""
    if _is_grid(given):
        return Dimension(name, "categorical", tuple(given["grid_search"]))
    if isinstance(given, Categorical):
        return Dimension(name, "categorical", tuple(given.categories))
    sampler: Any = given.get_sampler() if isinstance(given, Domain) else None  # type: ignore[no-untyped-call]
    quantized = isinstance(sampler, Quantized)
    step = sampler.q if quantized else None
    log = isinstance(sampler.sampler if quantized else sampler, LogUniform)
    if isinstance(given, Integer):
        # Ray leaves out the upper end of an integer, unless the domain is quantized.
        high = given.upper if step is not None else given.upper - 1
        return Dimension.of_range(name, given.lower, high, kind="integer", step=step or 1, log=log)
    if isinstance(given, Float) and math.isfinite(given.lower) and math.isfinite(given.upper):
        return Dimension.of_range(name, given.lower, given.upper, kind="float", step=step, log=log, steps=steps)
    raise InputError(
        f"param_space: {name!r} is {given!r}; a finite space is needed: tune.choice, randint, uniform, loguniform."
    )

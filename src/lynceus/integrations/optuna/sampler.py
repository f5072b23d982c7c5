"""The sampler: Lynceus chooses the configurations of an Optuna study, and gives each trial its timeout."""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.search_space import intersection_search_space
from optuna.study import Study as OptunaStudy
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from lynceus.errors import InputError, LynceusError
from lynceus.integrations.candidate_table import Dimension, Table
from lynceus.integrations.optuna.attributes import DEADLINE_S, ORDER, PRICE, RAN_S, RUNTIME_S, TIMEOUT_S, WHY, timeout_s
from lynceus.integrations.optuna.distributions import dimension, distributions_of
from lynceus.integrations.optuna.mirror import VALUE, StudyMirror
from lynceus.integrations.search_settings import OWN_VALUE, SearchSettings
from lynceus.policy.policy import Policy
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.space.table import Space
from lynceus.study.study import Study
from lynceus.trial.order import Order
from lynceus.trial.stop import Stopped, StopReason

_LIMITED = (StopReason.BUDGET, StopReason.TRIALS, StopReason.WALL_CLOCK)
"""Ends beyond which a further run would break a limit of the user."""


class SearchOverError(LynceusError, optuna.exceptions.OptunaError):
    """A trial was asked for although the money or the trials of the budget are used up."""


class LynceusSampler(BaseSampler):
    """Chooses the configurations of an Optuna study, by what they cost and how long they take.

    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> sampler = LynceusSampler(price="0.1 * nodes", objective="cost", constraints=["runtime <= 20m"], budget="$1", seed=1)
    >>> study = optuna.create_study(sampler=sampler)
    >>> def run(trial):
    ...     seconds = 3000 / trial.suggest_int("nodes", 1, 8) + 120
    ...     return min(seconds, trial.user_attrs.get("lynceus:timeout_s", seconds))
    >>> study.optimize(sampler.objective_of(run), callbacks=[sampler.stop_when_over])
    >>> study.best_params, round(study.best_value, 3), sampler.lynceus_study(study).spent_usd < 1.0
    ({'nodes': 3}, 0.093, True)
    """

    def __init__(
        self,
        space: Space | None = None,
        *,
        price: str | float = 1.0,
        objective: str = "value",
        constraints: Sequence[str | Constraint] = (),
        budget: float | str | Budget = math.inf,
        policy: str | Policy = "lynceus",
        seed: int | None = None,
        grid_steps: int = 16,
    ) -> None:
        """`space` lists the configurations; without one, the space is what the objective function suggests, with `price` in dollars per
        hour (a number or an expression over parameters), and continuous parameters take `grid_steps` values.

        `objective` is `value` (what the function returns), or as in `lynceus.create_study`: `cost`, `time`, `maximize accuracy`, a formula.
        Metrics of objective and constraints are read from the trial's user attributes.
        """
        seed = secrets.randbits(32) if seed is None else seed
        self._settings = SearchSettings(space, price, objective, tuple(constraints), budget, policy, seed, grid_steps)
        self._random = np.random.default_rng(seed)
        self._mirrors: dict[str, StudyMirror] = {}
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: one for name, one in self.__dict__.items() if name not in ("_lock", "_mirrors")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._mirrors, self._lock = {}, threading.RLock()

    def reseed_rng(self) -> None:
        """Copies of the sampler in parallel jobs draw other random values where nothing is known yet."""
        self._random = np.random.default_rng()

    # What Optuna asks

    def infer_relative_search_space(self, study: OptunaStudy, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters of the space that was given, or those that every trial so far has suggested."""
        return self._search_space(study)

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The next configuration. Its price, timeout, deadline and reason become attributes of the trial."""
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        with self._lock:
            mirror = self._mirror(study, search_space, asking=trial.number)
            decision = mirror.next_step().decision
            if isinstance(decision, Stopped):
                return self._beyond(mirror, decision)
            self._announce(study, trial, mirror, decision)
            return mirror.table.choices(decision.row)

    def sample_independent(
        self, study: OptunaStudy, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A value of the grid at random, for parameters that not every trial has: the first trial, and conditional ones."""
        self._raise_error_if_multi_objective(study)
        choices = dimension(param_name, param_distribution, self._settings.grid_steps).choices
        with self._lock:
            return choices[int(self._random.integers(len(choices)))]

    def after_trial(
        self, study: OptunaStudy, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Write down how long the trial ran, and by how much it met each constraint, as Optuna's own samplers do."""
        told = trial.user_attrs.get(RUNTIME_S)
        if told is None:
            began = trial.datetime_start
            told = 0.0 if began is None else max((datetime.now() - began).total_seconds(), 1e-6)
        study._storage.set_trial_system_attr(trial._trial_id, RAN_S, float(told))
        if state is TrialState.COMPLETE and self._settings.constraints:
            for name, excess in self._excesses(study, trial, float(told)).items():
                study._storage.set_trial_system_attr(trial._trial_id, f"constraints:{name}", excess)

    # What programs ask

    def objective_of(self, run: Callable[[Trial], float | Mapping[str, float]]) -> Callable[[Trial], float]:
        """An objective function for Optuna from one that runs a configuration and returns seconds, or `runtime` and metrics.

        A run that took its timeout or longer is pruned; the others have the cost, the time, the metric or the formula as their value.
        """

        def objective(trial: Trial) -> float:
            result = run(trial)
            limit_s = timeout_s(trial.user_attrs)
            known = dict(result) if isinstance(result, Mapping) else {"runtime": float(result)}
            for name, value in known.items():
                trial.set_user_attr(RUNTIME_S if name == "runtime" else name, float(value))
            if limit_s is not None and known.get("runtime", 0.0) >= limit_s:
                raise optuna.TrialPruned(f"stopped at its timeout of {limit_s:g} s")
            return self._value(trial, known)

        return objective

    def stop_when_over(self, study: OptunaStudy, trial: FrozenTrial) -> None:
        """A callback of `study.optimize`: ends the study when Lynceus would run nothing more."""
        if self.stop_reason(study) is not None:
            study.stop()

    def stop_reason(self, study: OptunaStudy) -> str | None:
        """Why Lynceus would run nothing more; None while it would."""
        search_space = self._search_space(study)
        if not search_space:
            return None
        with self._lock:
            decision = self._mirror(study, search_space).next_step().decision
        return decision.reason if isinstance(decision, Stopped) else None

    def lynceus_study(self, study: OptunaStudy) -> Study:
        """The study as Lynceus sees it: for `recommend()`, `spent_usd` and the like."""
        search_space = self._search_space(study)
        if not search_space:
            raise InputError(
                "The study has no trial yet from which the space could be known; run one, or give a space."
            )
        with self._lock:
            return self._mirror(study, search_space).study

    # How it is done

    def _search_space(self, study: OptunaStudy) -> dict[str, BaseDistribution]:
        self._raise_error_if_multi_objective(study)
        if self._settings.space is not None:
            return distributions_of(self._settings.space)
        found = intersection_search_space(study.get_trials(deepcopy=False), include_pruned=True)
        return {name: one for name, one in found.items() if not one.single()}

    def _mirror(
        self, study: OptunaStudy, search_space: Mapping[str, BaseDistribution], asking: int | None = None
    ) -> StudyMirror:
        """The Lynceus study that stands for an Optuna study, up to date."""
        trials = study.get_trials(deepcopy=False)
        kept = self._mirrors.get(study.study_name)
        if kept is None or kept.distributions != search_space or not self._fits(kept, trials):
            kept = None
        if kept is None or not kept.follow(trials, asking):
            table = self._table(search_space, trials)
            kept = StudyMirror(table, self._study(table.space, study.direction), search_space)
            kept.follow(trials, asking)
            self._mirrors[study.study_name] = kept
        return kept

    def _fits(self, mirror: StudyMirror, trials: Sequence[FrozenTrial]) -> bool:
        """Whether every configuration that was run is in the table, or cannot be."""
        return self._settings.space is not None or all(
            mirror.table.row(one.params) is not None or not mirror.distributions.keys() <= one.params.keys()
            for one in trials
            if one.state.is_finished()
        )

    def _table(self, search_space: Mapping[str, BaseDistribution], trials: Sequence[FrozenTrial]) -> Table:
        dimensions = (dimension(name, one, self._settings.grid_steps) for name, one in search_space.items())
        return self._settings.table(dimensions, [one.params for one in trials if one.state.is_finished()])

    def _study(self, space: Space, direction: StudyDirection) -> Study:
        maximise = direction is StudyDirection.MAXIMIZE
        objective = self._settings.goal(VALUE, maximise=maximise)
        if objective.maximise != maximise:
            raise InputError(
                f"The sampler is to {objective}, but the study was created with direction={direction.name.lower()!r}; make them agree."
            )
        return self._settings.study(space, objective)

    def _announce(self, study: OptunaStudy, trial: FrozenTrial, mirror: StudyMirror, order: Order) -> None:
        """Write down what was decided, before the run starts."""
        problem, storage = mirror.study.problem, study._storage
        told: dict[str, Any] = {WHY: order.plan.why, PRICE: float(problem.price[order.row]) * 3600}
        if math.isfinite(order.timeout_s):
            told[TIMEOUT_S] = order.timeout_s
        if math.isfinite(problem.deadline_s):
            told[DEADLINE_S] = problem.deadline_s
        storage.set_trial_system_attr(trial._trial_id, ORDER, mirror.ordered(trial.number, order))
        for name, value in told.items():
            storage.set_trial_user_attr(trial._trial_id, name, value)
            trial.user_attrs[name] = (
                value  # the running trial reads its attributes from this copy, not from the storage
            )

    def _beyond(self, mirror: StudyMirror, stopped: Stopped) -> dict[str, Any]:
        """Optuna asks for more trials than Lynceus would run: the best configuration again, unless that breaks a limit."""
        if stopped.kind in _LIMITED:
            raise SearchOverError(
                f"{stopped.reason}; end the study with callbacks=[sampler.stop_when_over], or give the sampler a larger budget."
            )
        best = mirror.study.recommend()
        row = int(self._random.integers(len(mirror.table.space))) if best is None else best.row
        return mirror.table.choices(row)

    def _one_run(self, study: OptunaStudy, params: Mapping[str, object]) -> tuple[Study, int] | None:
        """A study in which a configuration has a row, to compute what a run costs; None if it is not in the space."""
        kinds = {bool: "categorical", int: "integer", float: "float"}
        table = self._settings.table(
            Dimension(name, kinds.get(type(one), "categorical"), (one,))  # type: ignore[arg-type]
            for name, one in params.items()
        )
        row = table.row(params)
        return None if row is None else (self._study(table.space, study.direction), row)

    def _value(self, trial: Trial, known: Mapping[str, float]) -> float:
        """The objective of a finished run, for Optuna."""
        if self._settings.objective == OWN_VALUE:
            if "value" not in known:
                raise InputError(
                    f"The function returned {sorted(known)} for trial {trial.number}; it must return 'value', too."
                )
            return known["value"]
        if "runtime" not in known:
            raise InputError(
                f"The function returned {sorted(known)} for trial {trial.number}; it must return 'runtime' in seconds."
            )
        found = self._one_run(trial.study, trial.params)
        if found is None:
            raise InputError(
                f"Trial {trial.number} ran {trial.params}, which is not in the space of the sampler; suggest its values."
            )
        problem, row = found[0].problem, found[1]
        metrics = {name: value for name, value in known.items() if name != "runtime"}
        return problem.objective.sign * problem.value(row, known["runtime"], metrics)

    def _excesses(self, study: OptunaStudy, trial: FrozenTrial, seconds: float) -> dict[str, float]:
        """By how much each constraint is violated, negative where it is met; a metric that was not reported violates it."""
        if (found := self._one_run(study, trial.params)) is None:
            return {}
        problem, row = found[0].problem, found[1]
        known = {**trial.user_attrs, "time": seconds, "cost": problem.cost(row, seconds)}
        excesses = {}
        for one in problem.constraints:
            value = float(known.get(one.metric, math.inf if not one.at_least else -math.inf))
            excesses[str(one)] = one.bound - value if one.at_least else value - one.bound
        return excesses

"""The sampler inside real Optuna studies."""

import pickle
import time
from pathlib import Path

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.trial import Trial, TrialState

import lynceus
from lynceus.errors import InputError
from lynceus.integrations.candidate_table import CandidateTable, Dimension
from lynceus.integrations.optuna import LynceusSampler, SearchOverError, TimeoutPruner
from optuna_storages import optuna_storage
from told_times import local, seconds_of, space, told

optuna.logging.set_verbosity(optuna.logging.WARNING)


def sampler_of_job(**changes: object) -> LynceusSampler:
    given: dict[str, object] = {"objective": "cost", "constraints": ["runtime <= 20m"], "budget": "2 USD", "seed": 3}
    return LynceusSampler(space(), **given | changes)  # type: ignore[arg-type]


def run(trial: Trial) -> float:
    """One run, stopped at its timeout."""
    params = {"vm": trial.suggest_categorical("vm", ["small", "large"]), "nodes": trial.suggest_int("nodes", 1, 8)}
    return min(seconds_of(params), trial.user_attrs.get("lynceus:timeout_s", 1e9))


def through_optuna(study: optuna.Study, sampler: LynceusSampler, **more: object) -> list[tuple[object, ...]]:
    study.optimize(sampler.objective_of(run), callbacks=[sampler.stop_when_over], **more)  # type: ignore[arg-type]
    return told(sampler.lynceus_study(study))


def test_a_study_has_the_trials_that_lynceus_alone_would_run() -> None:
    sampler = sampler_of_job()
    study = optuna.create_study(sampler=sampler)
    assert through_optuna(study, sampler) == local()
    states = {TrialState.COMPLETE: "COMPLETE", TrialState.PRUNED: "TIMEOUT"}
    assert [states[one.state] for one in study.trials] == [state for _, state, _ in local()]
    assert study.best_params == sampler.lynceus_study(study).best_params


def test_a_study_goes_on_in_another_process(tmp_path: Path) -> None:
    """All that the sampler knows is in Optuna's storage: a new sampler, and even a pickled one, goes on alike."""
    url = f"sqlite:///{tmp_path}/optuna.db"
    with optuna_storage(url) as storage:
        study = optuna.create_study(study_name="one", storage=storage, sampler=sampler_of_job())
        study.optimize(sampler_of_job().objective_of(run), n_trials=5)
        sampler = pickle.loads(pickle.dumps(study.sampler))
    assert isinstance(sampler, LynceusSampler)
    with optuna_storage(url) as storage:
        again = optuna.load_study(study_name="one", storage=storage, sampler=sampler)
        assert through_optuna(again, sampler) == local()


def test_ask_and_tell_with_told_run_times_and_bills() -> None:
    sampler = sampler_of_job()
    study = optuna.create_study(sampler=sampler)
    trial = study.ask()
    params = {"vm": trial.suggest_categorical("vm", ["small", "large"]), "nodes": trial.suggest_int("nodes", 1, 8)}
    attributes = trial.user_attrs
    assert attributes["lynceus:deadline_s"] == 1200.0
    assert attributes["lynceus:timeout_s"] <= 2400.0  # the first run may take twice the deadline
    price = (0.1 if params["vm"] == "small" else 0.25) * params["nodes"]
    assert attributes["lynceus:price_usd_per_hour"] == pytest.approx(price)
    assert sampler.lynceus_study(study).reserved_usd > 0
    trial.set_user_attr("runtime_s", 300.0)
    trial.set_user_attr("charged_usd", 0.5)
    study.tell(trial, 0.5)
    seen = sampler.lynceus_study(study)
    assert (seen.spent_usd, seen.reserved_usd) == (0.5, 0.0)
    assert study.trials[0].constraints == {"time <= 20m": -900.0}


def test_the_budget_is_never_exceeded_and_asking_beyond_it_is_refused() -> None:
    sampler = sampler_of_job(budget="0.1 USD")
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(SearchOverError, match="larger budget"):
        study.optimize(sampler.objective_of(run), n_trials=40)
    assert 0 < sampler.lynceus_study(study).spent_usd <= 0.1
    assert study.trials[-1].state is TrialState.FAIL


def test_failures_and_foreign_trials_count() -> None:
    sampler = sampler_of_job()
    study = optuna.create_study(sampler=sampler)

    def failing(trial: Trial) -> float:
        run(trial)
        trial.set_user_attr("failure_reason", "oom")
        raise MemoryError

    study.optimize(failing, n_trials=2, catch=(MemoryError,))
    study.enqueue_trial({"vm": "large", "nodes": 8})
    study.optimize(sampler.objective_of(run), n_trials=1)
    study.add_trial(
        optuna.create_trial(
            params={"vm": "large", "nodes": 7},
            distributions={
                "vm": optuna.distributions.CategoricalDistribution(["small", "large"]),
                "nodes": optuna.distributions.IntDistribution(1, 8),
            },
            value=0.1,
            user_attrs={"runtime_s": 360.0},
        )
    )
    seen = sampler.lynceus_study(study)
    assert [str(one.reason) for one in seen.trials[:2]] == ["oom", "oom"]
    assert seen.trials[2].params == {"vm": "large", "nodes": 8}
    assert seen.trials[2].charged_usd
    assert seen.trials[3].charged_usd == 0.0
    assert seen.trials[0].params != seen.trials[1].params, "a configuration that ran out of memory is not tried again"


def test_the_pruner_ends_a_trial_at_its_timeout() -> None:
    sampler = LynceusSampler(
        lynceus.Space.build([lynceus.Integer("nodes", 1, 4)], price=1.0),
        objective="cost",
        constraints=["runtime <= 0.05s"],
    )
    study = optuna.create_study(sampler=sampler, pruner=TimeoutPruner())

    def slow(trial: Trial) -> float:
        trial.suggest_int("nodes", 1, 4)
        for step in range(1000):
            time.sleep(0.01)
            if trial.should_prune():
                raise optuna.TrialPruned
            trial.report(step, step)
        return 1.0

    study.optimize(slow, n_trials=1)
    assert study.trials[0].state is TrialState.PRUNED
    seen = sampler.lynceus_study(study).trials[0]
    assert str(seen.state) == "TIMEOUT"
    assert (seen.runtime_s or 0) >= 0.05


def test_another_pruner_may_prune_earlier() -> None:
    pruner = TimeoutPruner(also=optuna.pruners.ThresholdPruner(upper=1.0))
    study = optuna.create_study(sampler=sampler_of_job(), pruner=pruner)
    trial = study.ask()
    run(trial)
    assert not trial.should_prune()
    trial.report(2.0, 0)
    assert trial.should_prune()


def test_values_are_maximised_in_the_space_that_the_function_suggests() -> None:
    sampler = LynceusSampler(seed=1)
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def objective(trial: Trial) -> float:
        x, depth = trial.suggest_float("x", -1.0, 1.0), trial.suggest_int("depth", 1, 6)
        trial.set_user_attr("runtime_s", 10.0 * depth)
        return 1.0 - (x - 0.2) ** 2 - 0.02 * (depth - 4) ** 2

    study.optimize(objective, n_trials=30)
    assert study.best_value > 0.97
    assert len({one.params["x"] for one in study.trials}) <= 16, "a continuous parameter takes the values of its grid"


def test_a_direction_that_does_not_fit_is_refused() -> None:
    study = optuna.create_study(direction="maximize", sampler=sampler_of_job())
    with pytest.raises(InputError, match="make them agree"):
        run(study.ask())


def test_the_same_seed_gives_the_same_trials() -> None:
    def trials(seed: int) -> list[dict[str, object]]:
        sampler = LynceusSampler(price="0.1 * nodes", objective="cost", seed=seed)
        study = optuna.create_study(sampler=sampler)
        study.optimize(sampler.objective_of(lambda trial: 600 / trial.suggest_int("nodes", 1, 32)), n_trials=8)
        return [one.params for one in study.trials]

    assert trials(1) == trials(1) != trials(2)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["float", "integer", "stepped", "log", "categorical"]),
            st.floats(-1e6, 1e6),
            st.floats(1e-3, 1e6),
        ),
        min_size=1,
        max_size=6,
    ),
    st.integers(2, 40),
)
def test_a_table_has_bounded_size_and_finds_its_own_rows(given: list[tuple[str, float, float]], steps: int) -> None:
    """Any mixture of ranges: at most the rows that are allowed, every value within its range, every row found again."""
    dimensions = []
    for place, (kind, low, width) in enumerate(given):
        name = f"p{place}"
        if kind == "categorical":
            dimensions.append(Dimension(name, "categorical", (None, True, 1, "a", low)))
        elif kind == "integer":
            dimensions.append(Dimension.of_range(name, int(low), int(low) + int(width) + 1, kind="integer", step=1))
        elif kind == "stepped":
            dimensions.append(Dimension.of_range(name, low, low + width, kind="float", step=width / 7))
        elif kind == "log":
            dimensions.append(Dimension.of_range(name, width, 10 * width, kind="float", log=True, steps=steps))
        else:
            dimensions.append(Dimension.of_range(name, low, low + width, kind="float", steps=steps))
    table = CandidateTable(dimensions, most_rows=500)
    assert 1 <= len(table.space) <= 500
    for row in range(0, len(table.space), 37):
        assert table.row(table.choices(row)) == row

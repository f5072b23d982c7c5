"""The same study with told run times, through every door: the same trials for the same seed."""

from pathlib import Path
from typing import Any

import optuna
import pytest

import lynceus
from dashboards import READ, WRITE, served
from lynceus.integrations.optuna import LynceusSampler
from lynceus.integrations.ray_tune import LynceusSearcher
from lynceus.replay.job import load_job
from lynceus.replay.run import replay
from told_times import JOB, Told, local, seconds_of, space, told

GIVEN: dict[str, Any] = {"objective": "cost", "constraints": ["runtime <= 20m"], "budget": "2 USD"}


def through_optuna(seed: int) -> list[Told]:
    sampler = LynceusSampler(space(), seed=seed, **GIVEN)
    study = optuna.create_study(sampler=sampler)
    while sampler.stop_reason(study) is None:
        trial = study.ask()
        params = {"vm": trial.suggest_categorical("vm", ["small", "large"]), "nodes": trial.suggest_int("nodes", 1, 8)}
        limit_s = trial.user_attrs.get("lynceus:timeout_s", 1e9)
        seconds = seconds_of(params)
        trial.set_user_attr("runtime_s", min(seconds, limit_s))
        if seconds >= limit_s:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, seconds)
    return told(sampler.lynceus_study(study))


def through_ray_tune(seed: int) -> list[Told]:
    searcher = LynceusSearcher(space(), seed=seed, **GIVEN)
    for number in range(1000):
        config = searcher.suggest(str(number))
        if config == "FINISHED":
            break
        limit_s = config["lynceus"]["timeout_s"] or 1e9
        searcher.on_trial_complete(str(number), {"runtime_s": min(seconds_of(config), limit_s)})
    return told(searcher.study)


def through_http(seed: int, folder: Path) -> list[Told]:
    with served(f"sqlite:///{folder}/s.db", folder, read=READ) as server:
        remote = lynceus.Client(server.url, WRITE).create_study({**JOB, "seed": seed})
        remote.optimize(lambda trial: min(seconds_of(trial.params), trial.timeout or 1e9))
        return told(remote)


def through_replay(seed: int, folder: Path) -> list[Told]:
    """A table of all run times."""
    rows = [space().point(row) for row in range(len(space()))]
    usd = [float(price) * 3600 for price in space().price_per_second]
    lines = [f"{one['vm']},{one['nodes']},{price!r},{seconds_of(one)!r}" for one, price in zip(rows, usd, strict=True)]
    (folder / "told.csv").write_text("\n".join(["vm,nodes,usd,time", *lines]) + "\n")
    (folder / "told.yaml").write_text(
        "table: told.csv\nparameters: {vm: {kind: ordinal, order: [small, large]}, nodes: {kind: numeric}}\nprice: usd\n"
        "time: time\nobjective: cost\ndeadline: 20m\nbudget: 2 USD\n"
    )
    found = replay(load_job(folder / "told.yaml"), lynceus.preset("lynceus"), seed, until="end")
    return [(dict(step.params), step.state, round(step.seconds, 6)) for step in found.steps]


def cost(one: Told) -> float:
    """What a run costs."""
    params, _, seconds = one
    return seconds * (0.1 if params["vm"] == "small" else 0.25) * float(str(params["nodes"]))


@pytest.mark.parametrize("seed", [3, 4])
def test_every_door_leads_to_the_same_trials(tmp_path: Path, seed: int) -> None:
    expected = local(seed)
    assert len(expected) >= 5
    assert through_optuna(seed) == expected
    assert through_ray_tune(seed) == expected
    assert through_http(seed, tmp_path) == expected
    *search, last = expected
    assert through_replay(seed, tmp_path) == search
    best = min((one for one in search if one[1] == "COMPLETE"), key=cost)
    assert last == best, (
        "a table has one time per configuration, so that a replay need not confirm the best one by a second run"
    )

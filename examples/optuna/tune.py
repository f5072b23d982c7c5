"""Tune a training with Optuna and Lynceus: the cheapest machine and settings that reach the accuracy, for a fixed budget.

Each trial really trains and is timed. The price of a core is invented; on a cloud it would be that of the machine.
"""

import time

import optuna
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from lynceus.integrations.optuna import LynceusSampler, TimeoutPruner

IMAGES, LABELS = load_digits(return_X_y=True)
TRAIN_X, TEST_X, TRAIN_Y, TEST_Y = train_test_split(IMAGES, LABELS, random_state=0)


def run(trial: optuna.Trial) -> dict[str, float]:
    trees, depth = trial.suggest_int("trees", 10, 200, step=10), trial.suggest_int("depth", 2, 16, step=2)
    limit_s = trial.user_attrs.get("lynceus:timeout_s", float("inf"))
    began = time.perf_counter()
    model = RandomForestClassifier(0, max_depth=depth, warm_start=True, random_state=0)
    for grown in range(10, trees + 10, 10):
        model.set_params(n_estimators=grown).fit(TRAIN_X, TRAIN_Y)
        if time.perf_counter() - began >= limit_s:
            break  # it cannot win any more: Lynceus learns that it takes longer
    return {"runtime": time.perf_counter() - began, "accuracy": model.score(TEST_X, TEST_Y)}


def main() -> None:
    sampler = LynceusSampler(price=1.0, objective="cost", constraints=["accuracy >= 0.95"], budget="0.002 USD", seed=0)
    study = optuna.create_study(sampler=sampler, pruner=TimeoutPruner())
    study.optimize(sampler.objective_of(run), n_trials=25, callbacks=[sampler.stop_when_over])
    spent = sampler.lynceus_study(study).spent_usd
    print(f"best: {study.best_params} for ${study.best_value:.6f} a run; the search cost ${spent:.6f}")


if __name__ == "__main__":
    main()

"""Tune a training with Ray Tune and Lynceus on a local Ray cluster: the cheapest settings that reach the accuracy, within a budget.

Each trial really trains and is timed. The price of a core is invented.
"""

import tempfile
import time

import ray
from ray import tune
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from lynceus.integrations.ray_tune import LynceusSearcher, TimeoutStopper


def train(config: dict) -> None:
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(images, labels, random_state=0)
    model = RandomForestClassifier(0, max_depth=config["depth"], warm_start=True, random_state=0)
    began = time.perf_counter()
    for grown in range(10, config["trees"] + 10, 10):
        model.set_params(n_estimators=grown).fit(train_x, train_y)
        # The stopper ends the trial here, if it has run for its timeout.
        tune.report({"runtime_s": time.perf_counter() - began, "accuracy": model.score(test_x, test_y)})


def main() -> None:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    searcher = LynceusSearcher(
        price=1.0, objective="cost", constraints=["accuracy >= 0.95"], budget="0.002 USD", seed=0
    )
    tuner = tune.Tuner(
        train,
        param_space={"trees": tune.qrandint(10, 100, 10), "depth": tune.qrandint(2, 16, 2)},
        tune_config=tune.TuneConfig(search_alg=searcher, num_samples=8, max_concurrent_trials=1),
        run_config=tune.RunConfig(storage_path=tempfile.mkdtemp(), stop=TimeoutStopper(), verbose=0),
    )
    results = tuner.fit()
    good = [one.metrics for one in results if one.metrics and one.metrics.get("accuracy", 0) >= 0.95]
    best = min(good, key=lambda one: one["runtime_s"], default=None)
    print(f"trials: {len(results)}, best: {None if best is None else best['config']}")


if __name__ == "__main__":
    main()

"""Sample studies in real storages: a Spark-like job whose times follow a formula, driven through ask and tell."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from lynceus.jobfile.prepared_study import prepare_file
from lynceus.library.open_study import OpenStudy, create_or_open
from lynceus.trial.order import Expected, Order, Plan
from lynceus.trial.outcome import End, FailureReason, Observation, Outcome, TrainingTarget
from lynceus.trial.trial import Trial

JOB = """\
version: 1
name: {name}
run: [spark-submit, --num-executors, "${{nodes}}", --executor-memory, "${{memory}}", sessions.py, --partitions, "${{partitions}}"]
space:
  machine: {{ordinal: [m6.large, m6.xlarge, m6.2xlarge]}}
  nodes: {{int: [2, 16], step: 2}}
  memory: [4g, 8g, 12g]
  partitions: {{int: [50, 800], log: true, steps: 5}}
  codec: [lz4, zstd]
derived:
  cores: {{map: machine, values: {{m6.large: 2, m6.xlarge: 4, m6.2xlarge: 8}}}}
price: 0.048 * cores * nodes
billing: {{boot: 90s}}
constraints: ["runtime <= {deadline}", "accuracy >= 0.9"]
budget: {{cost: {budget} USD}}
policy: {policy}
seed: {seed}
baseline: {{machine: m6.2xlarge, nodes: 8, memory: 8g, partitions: 50, codec: lz4}}
"""


def job_file(
    folder: Path, name: str, *, deadline: str = "45m", budget: float = 25.0, policy: str = "lynceus", seed: int = 7
) -> Path:
    """A job file in a folder."""
    file = folder / f"{name}.yaml"
    file.write_text(JOB.format(name=name, deadline=deadline, budget=budget, policy=policy, seed=seed), encoding="utf-8")
    return file


def seconds_of(trial: Trial, rng: np.random.Generator) -> float:
    """How long a run takes: Amdahl's law, too few or too many partitions, swapping, and noise."""
    params = trial.params
    cores = {"m6.large": 2, "m6.xlarge": 4, "m6.2xlarge": 8}[str(params["machine"])] * int(str(params["nodes"]))
    partitions = float(str(params["partitions"]))
    swapping = {"4g": 1.5, "8g": 1.06, "12g": 1.0}[str(params["memory"])]
    spread = 1 + 0.16 * math.log(partitions / (8 * cores)) ** 2
    codec = 0.93 if params["codec"] == "zstd" else 1.0
    return float((260 + 11_000 / cores * swapping * spread * codec) * rng.lognormal(0, 0.04))


def drive(one: OpenStudy, trials: int, *, seed: int = 7) -> None:
    """Ask and tell `trials` times; some runs fail."""
    rng = np.random.default_rng(seed)
    study = one.study
    for _ in range(trials):
        trial = study.ask()
        if trial is None:
            return
        seconds = seconds_of(trial, rng)
        failing = trial.params["memory"] == "4g" and trial.params["partitions"] == 50
        if failing:
            study.tell(
                trial, runtime=90.0, state="FAIL", reason="oom", detail="exit code 137: java.lang.OutOfMemoryError"
            )
        elif trial.timeout is not None and seconds > trial.timeout:
            study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            curve = [(seconds * step / 20, 1 - (1 - step / 20) ** 1.3) for step in range(1, 21)]
            study.tell(trial, runtime=seconds, accuracy=float(rng.normal(0.93, 0.012)), progress=curve)


def sample_study(
    folder: Path,
    name: str,
    trials: int,
    *,
    seed: int = 7,
    policy: str = "lynceus",
    budget: float = 25.0,
    deadline: str = "45m",
) -> OpenStudy:
    """A study of the sample job with some trials, in `studies.db` of the folder."""
    file = job_file(folder, name, seed=seed, policy=policy, budget=budget, deadline=deadline)
    one = create_or_open(prepare_file(file), f"sqlite:///{folder}/studies.db")
    drive(one, trials, seed=seed)
    return one


LARGE_JOB = """\
version: 1
name: {name}
run: [echo, "${{machine}}", "${{nodes}}"]
space:
  machine: [m.large, m.xlarge, m.2xlarge, c.large, c.xlarge, c.2xlarge]
  nodes: {{int: [2, 40]}}
  memory: [4, 8, 12, 16]
  partitions: {{int: [50, 800], log: true, steps: 8}}
  codec: [lz4, zstd, snappy]
derived:
  unit: {{map: machine, values: {{m.large: 0.1, m.xlarge: 0.2, m.2xlarge: 0.4, c.large: 0.09, c.xlarge: 0.18, c.2xlarge: 0.36}}}}
price: unit * nodes
constraints: ["runtime <= 45m", "accuracy >= 0.8"]
budget: {{cost: 50000 USD}}
policy: random
trial: {{timeout: capped}}
baseline: {{machine: m.2xlarge, nodes: 20, memory: 8, partitions: 50, codec: lz4}}
"""


def large_study(folder: Path, name: str, trials: int, *, seed: int = 7) -> OpenStudy:
    """A study of 22,464 configurations with thousands of trials, written at once."""
    file = folder / f"{name}.yaml"
    file.write_text(LARGE_JOB.format(name=name), encoding="utf-8")
    one = create_or_open(prepare_file(file), f"sqlite:///{folder}/studies.db")
    rng = np.random.default_rng(seed)
    space = one.study.problem.space
    rows = rng.permutation(len(space))[:trials].tolist()
    observations = [_observation(one, number, row, rng) for number, row in enumerate(rows)]
    one.study.journal.imported(observations, [space.point(row) for row in rows])
    return one


def _observation(one: OpenStudy, number: int, row: int, rng: np.random.Generator) -> Observation:
    problem = one.study.problem
    params = problem.space.point(row)
    family, size = str(params["machine"]).split(".")
    power = {"large": 1.0, "xlarge": 1.9, "2xlarge": 3.4}[size] * (1.25 if family == "c" else 1.0)
    spread = 1 + 0.3 * abs(math.log(float(str(params["partitions"])) / 200))
    seconds = float((60 + 60_000 / (int(str(params["nodes"])) * power) * spread) * rng.lognormal(0, 0.1))
    timeout_s = 2700.0
    prediction = Expected("log time", (math.log(seconds) + float(rng.normal(0, 0.2)), 0.85), (0.25, 0.03))
    why = f"expected improvement ${rng.random():.4f} for ${3 * rng.random():.2f}"
    plan = Plan(row, why=why, gain=0.1, probability=0.8, usd=1.0, expected=prediction if number > 20 else None)
    order = Order(number, row, timeout_s, problem.cost(row, timeout_s), plan)
    if rng.random() < 0.02:
        failed = Outcome(
            End.FAILED, seconds / 10, problem.cost(row, seconds / 10), reason=FailureReason.JOB, detail="exit code 1"
        )
        return Observation(order, failed, None)
    if seconds > timeout_s:
        stopped = Outcome(End.TIMEOUT, timeout_s, problem.cost(row, timeout_s))
        return Observation(order, stopped, TrainingTarget(1.3 * timeout_s, censored=True, bound_s=timeout_s))
    metrics = {"accuracy": float(rng.uniform(0.75, 0.95))}
    return Observation(
        order, Outcome(End.FINISHED, seconds, problem.cost(row, seconds), metrics), TrainingTarget(seconds, metrics)
    )

"""A study over eight configurations whose times are known."""

from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space
from lynceus.study.create import create_study
from lynceus.study.study import Study
from lynceus.trial.trial import Trial

SPACE = Space.build(
    [Categorical("vm", ("small", "large")), Integer("nodes", 1, 4)], price="nodes if vm == 'small' else 3 * nodes"
)


def study_of(policy: str = "random", **given: object) -> Study:
    return create_study(space=SPACE, policy=policy, **{"budget": "$20", "seed": 1, **given})  # type: ignore[arg-type]


def ask(study: Study) -> Trial:
    trial = study.ask()
    assert trial is not None, study.reason
    return trial


def seconds_of(trial: Trial) -> float:
    return 3000.0 / (int(str(trial.params["nodes"])) * (2.5 if trial.params["vm"] == "large" else 1.0)) + 60.0


def run(trial: Trial) -> tuple[float, str]:
    """Simulate a trial: (seconds, state) up to its timeout."""
    needed = seconds_of(trial)
    if trial.timeout is not None and needed > trial.timeout:
        return trial.timeout, "TIMEOUT"
    return needed, "COMPLETE"

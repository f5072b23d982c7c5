"""Small jobs for tests of the look-ahead, and plans for them."""

from __future__ import annotations

from dataclasses import dataclass

from lynceus.models.interfaces import Surrogate
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.testing.job import SmallJob, small_job
from lynceus.trial.order import Plan

SEED = 4


@dataclass(frozen=True)
class Generic:
    """The same model without `pick`, so that the generic path is used."""

    trees: Surrogate

    def __call__(self, state: State, seed: int) -> Prediction:
        return self.trees(state, seed)


BOOTED = Billing(minimum_s=120.0, boot_s=60.0, fee_usd=0.002)


WARM = Billing(boot_s=90.0, fee_usd=0.004, warm=("vm",))


JOBS = {
    "deadline": small_job("runtime <= 30m"),
    "no feasible run yet": small_job("runtime <= 12m"),
    "no limit": small_job(),
    "tight budget": small_job("runtime <= 30m", budget=Budget(usd=4.2)),
    "booted": small_job("runtime <= 30m", budget=Budget(usd=5.5), billing=BOOTED),
    "warm": small_job("runtime <= 30m", budget=Budget(usd=5.5), billing=WARM),
    "warm and tight": small_job("runtime <= 30m", budget=Budget(usd=4.27), billing=WARM),
    "two metrics": small_job("runtime <= 30m", "accuracy >= 0.88", budget=Budget(usd=6.0)),
    "time": small_job(objective="time", budget=Budget(usd=5.0)),
    "accuracy": small_job("runtime <= 30m", objective="maximize accuracy", budget=Budget(usd=5.0)),
}


def state_of(job: SmallJob, runs: int = 8) -> State:
    return State.present(job.problem, job.finished(job.order_of_runs[:runs]))


def planned(lookahead: Lookahead, state: State, surrogate: Surrogate) -> Plan:
    plan = lookahead(state, surrogate, SEED)
    assert plan is not None
    return plan

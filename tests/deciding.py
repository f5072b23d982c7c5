"""`next_step` for tests of policies: failures are always retried and never pause the study."""

from lynceus.policy.next_step import next_step
from lynceus.policy.policy import Policy
from lynceus.policy.retries import RetryRules
from lynceus.problem.problem import Problem
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observations
from lynceus.trial.record import OpenRun, Record
from lynceus.trial.stop import Stopped

UNLIMITED_RETRIES = RetryRules(retries_infra=10**6, retries_preempted=10**6, max_failures=0)


def decide(
    problem: Problem,
    policy: Policy,
    observations: Observations,
    pending: tuple[Order, ...] = (),
    *,
    seed: int,
    elapsed_s: float = 0.0,
    slots: int = 1,
) -> Order | Stopped:
    record = Record("test", observations, tuple(OpenRun(order) for order in pending))
    return next_step(problem, policy, UNLIMITED_RETRIES, record, seed=seed, elapsed_s=elapsed_s, slots=slots).decision

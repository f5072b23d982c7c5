"""How often the result of a study will be used, whether the user says so or not."""

from __future__ import annotations

import math

from lynceus.policy.policy import Policy
from lynceus.policy.stopping import assumed_uses
from lynceus.problem.future_use import ASSUMED_RUNS, FutureUse
from lynceus.problem.problem import Problem


def future_use(problem: Problem, policy: Policy) -> FutureUse:
    """As the user says, otherwise as the policy's stopping rule assumes, otherwise 100 runs."""
    if problem.future is not None:
        return problem.future
    uses = assumed_uses(policy.stop)
    return FutureUse(runs=uses if uses is not None and 0 < uses < math.inf else ASSUMED_RUNS)

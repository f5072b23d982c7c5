"""What is optimized: objective, constraints, budget, billing, baseline, future use, data fraction, preemption, and their units."""

from lynceus.problem.baseline import Baseline
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.future_use import FutureUse
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem

__all__ = ["Baseline", "Billing", "Budget", "Constraint", "FutureUse", "Objective", "Problem"]

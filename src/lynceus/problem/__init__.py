"""What is optimized: objective, constraints, budget, billing, data fraction, preemption, and the units they are written in."""

from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem

__all__ = ["Billing", "Budget", "Constraint", "Objective", "Problem"]

"""What the user tells a sampler of Optuna or a searcher of Ray Tune about the search, and the study that follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lynceus.errors import InputError, expect
from lynceus.integrations.candidate_table import CandidateTable, Dimension, GivenTable, Table
from lynceus.policy.policy import Policy
from lynceus.policy.retries import RetryRules
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint, Objective
from lynceus.space.table import Space
from lynceus.study.create import create_study
from lynceus.study.study import Study

OWN_VALUE = "value"
"""The objective that the other tool names: what its function returns or its trials report."""


@dataclass(frozen=True)
class SearchSettings:
    """Settings that are the same in every tool; names and meanings are those of `lynceus.create_study`."""

    space: Space | None
    """None: the space of the other tool, with `price` and `grid_steps` values of a continuous parameter."""
    price: str | float
    """Dollars per hour: a number, or an expression over parameters."""
    objective: str
    constraints: Sequence[str | Constraint]
    budget: float | str | Budget
    policy: str | Policy
    seed: int
    grid_steps: int

    def __post_init__(self) -> None:
        expect(self.space, (Space, type(None)), "space", "a lynceus.Space")
        expect(self.grid_steps, int, "grid_steps", "a whole number such as 16")
        if self.grid_steps < 2:
            raise InputError(f"grid_steps is {self.grid_steps}; give at least 2.")

    def table(self, dimensions: Iterable[Dimension], seen: Iterable[Mapping[str, object]] = ()) -> Table:
        """The configurations: the given ones, or those of the other tool and all that were `seen`."""
        if self.space is not None:
            return GivenTable(self.space)
        return CandidateTable(list(dimensions), price=self.price, seen=seen)

    def goal(self, own_metric: str, *, maximise: bool) -> Objective:
        """The objective; that of the other tool has the name `own_metric` and the direction of the other tool."""
        return Objective(own_metric, maximise) if self.objective == OWN_VALUE else Objective.parse(self.objective)

    def study(self, space: Space, objective: Objective) -> Study:
        """A study over these configurations. The other tool decides whether failures end the search."""
        return create_study(
            space=space,
            objective=objective,
            constraints=self.constraints,
            budget=self.budget,
            policy=self.policy,
            seed=self.seed,
            retry_rules=RetryRules(max_failures=0),
        )

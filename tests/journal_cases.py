"""Small orders and observations for tests of journals."""

from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Observation, Outcome, TrainingTarget


def order(number: int) -> Order:
    return Order(number, row=number, timeout_s=60.0, reserved_usd=1.0, plan=Plan(number, why="because"))


def observation(number: int, charged_usd: float = 0.5) -> Observation:
    return Observation(order(number), Outcome(End.FINISHED, 10.0 + number, charged_usd), TrainingTarget(10.0 + number))

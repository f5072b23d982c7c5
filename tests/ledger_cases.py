"""Small orders and observations for tests of ledgers."""

from lynceus.history import End, Observation, Order, Outcome, Plan, Told


def order(number: int) -> Order:
    return Order(number, row=number, cap_s=60.0, reserved_usd=1.0, plan=Plan(number, why="because"))


def seen(number: int, charged_usd: float = 0.5) -> Observation:
    return Observation(order(number), Outcome(End.FINISHED, 10.0 + number, charged_usd), Told(10.0 + number))

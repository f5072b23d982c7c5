"""Choosers without a model: one after the other, at random, by price, and only inside a part of the space."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.history import Plan
from lynceus.parts import Chooser, Surrogate
from lynceus.randomness import generator
from lynceus.situation import Situation
from lynceus.units import format_money


@dataclass(frozen=True)
class FirstOf:
    """Ask each chooser in turn; the first that has something to say is heard."""

    choosers: tuple[Chooser, ...]

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The first plan that comes."""
        return next(
            (plan for chooser in self.choosers if (plan := chooser(situation, surrogate, seed)) is not None), None
        )


@dataclass(frozen=True, slots=True)
class Uniform:
    """Any open row, all equally likely."""

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """A random open row; nothing when all are closed."""
        rows = np.flatnonzero(situation.open)
        if not len(rows):
            return None
        return Plan(
            int(generator(seed, "uniform", situation.started).choice(rows)), why=f"random, one of {len(rows)} left"
        )


@dataclass(frozen=True, slots=True)
class ByPrice:
    """The open row with the lowest price per second; ties by the study's luck."""

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The cheapest open row; nothing when all are closed."""
        rows = np.flatnonzero(situation.open)
        if not len(rows):
            return None
        price = situation.problem.price
        luck = generator(seed, "price ties").permutation(len(price))
        row = int(rows[np.lexsort((luck[rows], price[rows]))[0]])
        return Plan(row, why=f"cheapest price left, {format_money(float(price[row]) * 3600)}/h")


@dataclass(frozen=True)
class Within:
    """Let a chooser see only the rows where an expression over the space's columns is true (disjoint optimisation)."""

    expression: str
    chooser: Chooser

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The inner chooser's plan, were all other rows closed."""
        inside = situation.open & situation.problem.space.mask(self.expression)
        return self.chooser(replace(situation, open=inside), surrogate, seed) if inside.any() else None

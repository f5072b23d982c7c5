"""Choosers without a model: in sequence, at random, by price, and inside a part of the space."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.seeds import generator
from lynceus.models.state import State
from lynceus.policy.interfaces import Chooser
from lynceus.problem.units import format_money, format_number
from lynceus.trial.order import Plan


@dataclass(frozen=True)
class FirstOf:
    """Several choosers in turn; the first proposal is used."""

    choosers: tuple[Chooser, ...]

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The first proposal; None when no chooser has one."""
        return next((plan for chooser in self.choosers if (plan := chooser(state, surrogate, seed)) is not None), None)


@dataclass(frozen=True, slots=True)
class Uniform:
    """A random open row, all equally likely."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """A random open row; None when all are closed."""
        rows = np.flatnonzero(state.open)
        if not len(rows):
            return None
        return Plan(int(generator(seed, "uniform", state.started).choice(rows)), why=f"random, one of {len(rows)} left")


@dataclass(frozen=True, slots=True)
class ByPrice:
    """The open row with the lowest price per second; ties are broken at random."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The cheapest open row; None when all are closed."""
        rows = np.flatnonzero(state.open)
        if not len(rows):
            return None
        price = state.problem.price
        tie_break = generator(seed, "price ties").permutation(len(price))
        row = int(rows[np.lexsort((tie_break[rows], price[rows]))[0]])
        return Plan(row, why=f"lowest price left, {format_money(float(price[row]) * 3600)}/h")


@dataclass(frozen=True, slots=True)
class ByKnownCost:
    """The open row with the lowest objective where that is known before anything runs, else with the lowest price; ties at random."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The best open row by what is known; None when all are closed."""
        known = state.problem.goal.known
        if known is None:
            return ByPrice()(state, surrogate, seed)
        rows = np.flatnonzero(state.open)
        if not len(rows):
            return None
        tie_break = generator(seed, "price ties").permutation(len(known))
        row = int(rows[np.lexsort((tie_break[rows], known[rows]))[0]])
        return Plan(row, why=f"best known objective left, {format_number(abs(float(known[row])))}")


@dataclass(frozen=True)
class Within:
    """Restricts a chooser to the rows where an expression over the space's columns is true."""

    expression: str
    chooser: Chooser

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The inner chooser's plan, with all other rows closed."""
        inside = state.open & state.problem.space.mask(self.expression)
        return self.chooser(replace(state, open=inside), surrogate, seed) if inside.any() else None
